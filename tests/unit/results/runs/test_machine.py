"""Runs are comparable if they ran the same on machines of one class."""

import os
import re

import pytest

from experiments import engines, loads, spec
from experiments.spec import Experiment
from results.runs import machine
from results.runs.machine import _rounded, experiment_digest, machine_class


def test_the_class_of_this_machine_is_a_line():
    found = re.fullmatch(r"(\S.*), (\d+) cores, ([\d.]+) GiB", machine_class())
    assert int(found[2]) == len(os.sched_getaffinity(0))
    assert float(found[3]) == pytest.approx(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, rel=0.13)


@pytest.mark.parametrize(
    ("gib", "rounded"),
    [(0.97, 1), (1.94, 2), (3.8, 4), (3.4, 3.5), (7.6, 8), (15.5, 16), (23.4, 24), (31.2, 32), (62.7, 64)],
)
def test_memory_is_rounded_so_that_kernels_do_not_matter(gib, rounded):
    assert _rounded(gib) == rounded


def test_seed_tolerances_and_spelt_out_defaults_do_not_matter():
    plain = experiment_digest(Experiment())
    spelt_out = Experiment.model_validate(Experiment().model_dump(mode="json"))
    assert experiment_digest(spelt_out) == plain
    assert experiment_digest(Experiment(seed=99, tolerances={"utilization": 0.5})) == plain
    assert re.fullmatch(r"[0-9a-f]{16}", plain)


def test_whatever_else_differs_does():
    kill = {"kind": "kill", "rate": 0.01, "heal_after": 2}
    changes = [
        {}, {"name": "another"}, {"window_s": 241}, {"engine": {"checkpoint_interval_s": 9}},
        {"workload": {"name": "nexmark"}}, {"cluster": {"workers": 4}}, {"load": {"mode": "rate"}},
        {"faults": {"processes": [kill]}}, {"faults": {"processes": [kill | {"rate": 0.02}]}},
        {"faults": {"processes": [kill | {"heal_after": 3}]}}, {"faults": {"processes": [kill, kill]}},
    ]  # fmt: skip
    digests = [experiment_digest(Experiment.model_validate(change)) for change in changes]
    assert len(set(digests)) == len(changes)


def test_another_default_is_another_experiment(monkeypatch):
    before = experiment_digest(Experiment())
    field = Experiment.model_fields["window_s"]
    monkeypatch.setattr(field, "default", 90.0)
    Experiment.model_rebuild(force=True)
    try:
        assert Experiment().window_s == 90
        assert experiment_digest(Experiment()) != before
        assert experiment_digest(Experiment(window_s=240)) == before
    finally:
        monkeypatch.undo()
        Experiment.model_rebuild(force=True)


def test_what_is_left_to_the_window_and_the_cluster_is_filled_in():
    spelt_out = {"duration": 240.0, "hosts": {f"worker-{number}": [] for number in (1, 2, 3)}}
    assert experiment_digest(Experiment(faults=spelt_out)) == experiment_digest(Experiment())


def test_every_example_has_a_digest_of_its_own():
    names = spec.available()
    assert len({experiment_digest(spec.load(name)) for name in names}) == len(names)


def test_two_kinds_of_the_same_part_differ_though_neither_states_a_field():
    defaults = [Experiment.model_validate({"workload": {"name": name}}) for name in ("wordcount", "nexmark")]
    assert len({experiment_digest(found) for found in defaults}) == 2


TESTBED = {"workload": {"name": "nexmark", "query": "q12"}, "engine": {"name": "dataflow"}}
STAGGERED = ({}, {"staggered": False}, {"staggered": True})
SEARCH = {"load": {"mode": "sustainable"}}


def digest(*changes, **engine):
    document = {}
    for change in changes:
        document |= change
    if engine:
        document["engine"] = {**document.get("engine", {}), **engine}
    return experiment_digest(Experiment.model_validate(document))


def test_a_field_that_is_younger_than_published_runs_counts_only_if_it_changes_something(monkeypatch):
    left_out, false, true = (digest(TESTBED, protocol="uncoordinated", **given) for given in STAGGERED)
    assert left_out == false != true
    monkeypatch.setattr(machine, "NEW_FIELDS", set())
    assert digest(TESTBED, protocol="uncoordinated") != left_out


def test_what_an_engine_or_a_search_decides_is_part_of_what_is_run(monkeypatch):
    open_, stated = digest(TESTBED), digest(TESTBED, protocol="coordinated", records_per_message=1024, chaining=True)
    assert open_ == stated
    searched = digest(SEARCH)
    monkeypatch.setattr(engines, "RECORDS_PER_MESSAGE", 7)
    monkeypatch.setattr(loads, "PROBE_INTERVALS", 20)
    assert digest(TESTBED) != open_
    assert digest(TESTBED, protocol="coordinated", records_per_message=1024) == open_
    assert digest(SEARCH) != searched


def test_fields_that_a_load_mode_does_not_look_at_do_not_matter():
    assert digest({"load": {"rate": 77, "probes": 14}}) == digest()
    assert digest({"load": {"mode": "rate", "probes": 14}}) == digest({"load": {"mode": "rate"}})
    assert digest({"load": {"mode": "rate", "rate": 77}}) != digest({"load": {"mode": "rate"}})
    assert digest({"load": {"mode": "sustainable", "probes": 14}}) != digest(SEARCH)


@pytest.mark.parametrize("mode", ["rate", "saturating", "sustainable"])
def test_batches_set_runs_apart_and_those_without_are_what_they_were(mode):
    before = digest(TESTBED, {"load": {"mode": mode}})
    batched = {digest(TESTBED, {"load": {"mode": mode, "batch_records": records}}) for records in (100, 200)}
    assert len(batched | {before}) == 3
    document = {**TESTBED, "load": {"mode": mode}}
    assert "batch_records" not in Experiment.model_validate(document).load.used
