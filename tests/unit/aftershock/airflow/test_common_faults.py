"""The plain fields of common faults: which fault spec they stand for."""

import json

import pytest

from aftershock.airflow import common_faults, trigger_form
from experiments import spec
from experiments.errors import BadInput
from tests.unit.experiments.test_inventory import GATEWAY, host
from tests.unit.ssh_keys import new_key


def faults(**params):
    return spec.validate(trigger_form.fold({"experiment": "wordcount"} | params)).faults


def processes(found):
    return [(each.kind.value, each.scope.value, each.rate, each.heal_after) for each in found.processes]


def test_a_rate_by_host_replaces_the_experiments_faults_and_keeps_their_time_to_heal():
    found = faults(experiment="nexmark-q12", host_fault_rate=0.02)
    assert (processes(found), found.events) == ([("kill", "host", 0.02, 2.0)], ())


def test_a_rate_replaces_bursts_too():
    document = trigger_form.fold({"experiment": "wordcount", "faults": {"bursts": [{"at": 5, "hosts": 2}]}})
    assert spec.validate(document).faults.bursts
    common_faults.put(document := spec.validate(document).model_dump(mode="json"), {"host_fault_rate": 0.1})
    assert not spec.validate(document).faults.bursts


def test_a_rate_of_0_is_a_control_run():
    found = faults(host_fault_rate=0)
    assert not found.can_fail


def test_racks_are_dealt_and_die_as_one():
    found = faults(rack_fault_rate=0.001, racks=2, time_to_heal_s=5)
    assert found.hosts == {"worker-1": ("rack-1",), "worker-2": ("rack-2",), "worker-3": ("rack-1",)}
    assert processes(found) == [("kill", "domain", 0.001, 5.0)]


def test_both_rates_at_once():
    found = faults(host_fault_rate=0.01, rack_fault_rate=0.002, racks=1)
    assert processes(found) == [("kill", "host", 0.01, 2.0), ("kill", "domain", 0.002, 2.0)]


def test_the_time_to_heal_alone_changes_the_experiments_own_faults():
    listed = faults(experiment="dataflow-passive", time_to_heal_s=7)
    assert [fault.heal_after for fault in listed.events] == [7.0, 7.0, 7.0]
    assert processes(faults(time_to_heal_s=7)) == [("kill", "host", 0.009, 7.0)]


def test_racks_follow_the_number_of_workers_that_was_asked_for():
    found = faults(racks=4, **{"cluster.workers": 4})
    assert list(found.hosts.values()) == [("rack-1",), ("rack-2",), ("rack-3",), ("rack-4",)]


def test_a_rate_of_racks_needs_racks():
    with pytest.raises(BadInput, match=r"^rack_fault_rate: 0\.1 is not usable; allowed: 0, or racks as well"):
        faults(rack_fault_rate=0.1)
    assert not faults(rack_fault_rate=0).can_fail


def test_the_racks_of_an_inventory_that_the_form_names_are_racks(tmp_path):
    new_key(tmp_path / "key")
    hosts = [GATEWAY, *(host(f"w-{n}", domains=[f"switch-{n % 2}"]) for n in (1, 2, 3))]
    (tmp_path / "inventory.json").write_text(json.dumps({"hosts": hosts}), encoding="utf-8")
    cluster = {"cluster.driver": "ssh", "cluster.inventory": str(tmp_path / "inventory.json")}
    found = faults(rack_fault_rate=0.1, **cluster)
    assert found.hosts == {"worker-1": ("switch-1",), "worker-2": ("switch-0",), "worker-3": ("switch-1",)}
    assert processes(found) == [("kill", "domain", 0.1, 2.0)]


def test_more_racks_than_workers_are_refused():
    with pytest.raises(BadInput, match=r"^racks: 9 is not usable; allowed: at most one for each worker"):
        faults(racks=9)


@pytest.mark.parametrize("field", ["host_fault_rate", "rack_fault_rate", "time_to_heal_s"])
def test_a_trace_says_which_faults_there_are_and_when_they_heal(tmp_path, field):
    trace = tmp_path / "trace.csv"
    trace.write_text("at,targets\n1,worker-1\n", encoding="utf-8")
    with pytest.raises(BadInput, match=rf"^faults\.trace: .* allowed: left empty, or {field} is: both say"):
        faults(racks=1, **{field: 7, "faults.trace": str(trace)})
    found = faults(racks=1, **{"faults.trace": str(trace)})
    assert (found.hosts["worker-1"], [fault.at for fault in found.events]) == (("rack-1",), [1.0])


@pytest.mark.parametrize("experiment", spec.available())
def test_every_example_takes_racks(experiment):
    assert set(faults(experiment=experiment, racks=1, host_fault_rate=0.01).hosts.values()) == {("rack-1",)}


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"racks": "many"}, "^racks: 'many' is not usable; allowed: a whole number"),
        ({"racks": 0}, "^racks: 0 is not usable"),
        ({"time_to_heal_s": -1}, "^time_to_heal_s: -1 is not usable"),
        ({"host_fault_rate": True}, "^host_fault_rate: True is not usable; allowed: a number"),
        ({"racks": 2, "cluster.workers": "few"}, "^cluster.workers: 'few' is not usable"),
        ({"experiment": 5}, "^experiment: 5 is not usable; allowed: a text"),
        ({"experiment_file": ["a"]}, "^experiment_file: .* is not usable; allowed: a text"),
    ],
)
def test_a_value_of_another_type_is_refused_by_the_field_that_has_it(params, message):
    with pytest.raises(BadInput, match=message):
        faults(**params)
