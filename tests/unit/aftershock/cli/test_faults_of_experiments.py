"""`plan faults` of an experiment: the plan that its run will have."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from aftershock.run import steps
from aftershock.run.live_run import LiveRun
from experiments import spec
from results.runs import store

EXPERIMENT = """
name: mine
window_s: 600
seed: 11
cluster: {workers: 4}
faults:
  hosts: {worker-1: [rack-a], worker-2: [rack-a], worker-3: [rack-b], worker-4: [rack-b]}
  processes:
    - {rate: 0.01, heal_after: 3}
    - {scope: domain, rate: 0.005, spread: 4, heal_after: {low: 1, high: 9}}
  events:
    - {at: 595, targets: [worker-4], heal_after: 60}
  bursts:
    - {at: 100, hosts: 2, domains: 2, spread: 5, heal_after: 20}
"""


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(EXPERIMENT, encoding="utf-8")
    return path


def armed(experiment: spec.Experiment, monkeypatch: pytest.MonkeyPatch) -> dict:
    """The plan that the step `arm_faults` of a run hands to the injector."""
    monkeypatch.setattr(LiveRun, "spawn_module", lambda *_: None)
    monkeypatch.setattr(LiveRun, "wait", lambda *_: None)
    live = LiveRun(steps.begin(experiment.model_dump(mode="json")))
    live.plan_path.parent.mkdir(parents=True, exist_ok=True)
    steps.arm_faults(live.run_id)
    return store.read_json(live.plan_path)


@pytest.mark.parametrize("overrides", [[], ["seed=12"], ["window_s=700", "cluster.workers=5"]])
def test_the_plan_of_an_experiment_is_that_of_its_run(as_json, mine, monkeypatch, overrides):
    words = " ".join(f"--set {override}" for override in overrides)
    found = as_json(f"plan faults {mine} {words}")
    assert len(found["events"]) > 10
    assert found["events"] == armed(spec.load(str(mine), overrides), monkeypatch)["events"]


def test_the_seed_is_that_of_the_experiment_unless_one_is_given(as_json, mine):
    own, other = as_json(f"plan faults {mine}"), as_json(f"plan faults {mine} --seed 12")
    assert (own["experiment"], own["seed"], other["seed"]) == ("mine", 11, 12)
    assert as_json(f"plan faults {mine} --seed 11") == own
    assert as_json(f"plan faults {mine} --set seed=12") == other
    assert other["events"] != own["events"]


def test_an_example_goes_by_its_name_and_a_person_is_told_its_seed(call):
    code, out, err = call("plan faults twenty-kills")
    assert (code, err) == (0, "")
    assert out.startswith(f"experiment twenty-kills, seed {spec.load('twenty-kills').seed}\n\n")


def test_a_fault_that_outlasts_the_window_is_counted(as_json, mine):
    assert as_json(f"plan faults {mine}")["drawn"]["late_heals"] >= 1
    assert as_json(f"plan faults {mine} --set faults.processes=[] --set window_s=700")["drawn"]["late_heals"] == 0


def test_an_experiment_can_come_through_a_pipe(as_json, mine):
    read, write = os.pipe()
    try:
        os.write(write, EXPERIMENT.encode())
        os.close(write)
        assert as_json(f"plan faults /dev/fd/{read}") == as_json(f"plan faults {mine}")
    finally:
        os.close(read)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("name: mine\nfaults: {process: []}", "faults.process: [] is not usable; allowed: no such field"),
        ("window_s: 30\nfaults: {events: [{at: 40, targets: [worker-1]}]}", "faults.events.0.at: 40.0"),
        ("common: {}\nworkloads: {}\nengines: {}", "this is a matrix of experiments"),
    ],
)
def test_what_is_wrong_with_an_experiment_is_told_in_one_line(call, mine, text, told):
    mine.write_text(text, encoding="utf-8")
    code, out, err = call(f"plan faults {mine} --seed 1")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert told in err
