"""The plain fields of common faults: which fault spec they stand for."""

import pytest

from aftershock.airflow import common_faults, trigger_form
from experiments import spec
from experiments.errors import BadInput


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


def test_more_racks_than_workers_are_refused():
    with pytest.raises(BadInput, match=r"^racks: 9 is not usable; allowed: at most one for each worker"):
        faults(racks=9)
