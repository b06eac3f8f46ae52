"""`benchmark --check`: whether an experiment can run here, and what to expect, without a start."""

from __future__ import annotations

import pytest

from aftershock.airflow import orchestrate
from aftershock.run import admission, room
from chaos.plan import faults_of
from experiments import spec
from experiments.errors import EnvironmentFailure
from results.runs.step_times import whole_s


@pytest.fixture(autouse=True)
def nothing_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orchestrate, "run", lambda _: pytest.fail("a run was started"))
    monkeypatch.setattr(room, "free_memory_mb", lambda: 100_000)
    monkeypatch.setattr(room, "free_disk_mb", lambda: 100_000)
    monkeypatch.setattr(room, "cores", lambda: 64)


def test_an_experiment_that_can_run_is_told_with_its_duration_and_faults(as_json, call, home):
    experiment = spec.load("wordcount", ["window_s=600"])
    assert as_json("benchmark wordcount --check --set window_s=600") == {
        "experiment": "wordcount",
        "takes": whole_s(experiment),
        "window": 600.0,
        "faults": len(list(faults_of(experiment))),
        "late_heals": 0,
        "warnings": [],
    }
    code, out, err = call("benchmark wordcount --check --set window_s=600")
    assert (code, err) == (0, "")
    assert out.startswith("wordcount can run here; it takes about 1")
    assert " min, of which 600 s are measured\n" in out
    assert list(home.iterdir()) == []


def test_a_heal_after_the_end_is_told_and_not_refused(call, tmp_path):
    """Reproductions kill hosts for good in this way."""
    path = tmp_path / "mine.yaml"
    path.write_text("faults: {events: [{at: 200, targets: [worker-1], heal_after: 3600}]}\n", encoding="utf-8")
    code, out, _ = call(f"benchmark {path} --check")
    assert code == 0
    assert "1 planned fault; heals after the end: 1" in out


def test_what_the_machine_lacks_at_present_is_told_as_the_run_would_tell_it_and_not_refused(call, as_json, monkeypatch):
    monkeypatch.setattr(room, "free_memory_mb", lambda: 1000)
    monkeypatch.setattr(room, "free_disk_mb", lambda: 3000)
    monkeypatch.setattr(room, "cores", lambda: 1)
    told = room.warnings(spec.load("wordcount").cluster)
    assert len(told) == 3
    assert as_json("benchmark wordcount --check")["warnings"] == told
    code, out, _ = call("benchmark wordcount --check")
    assert code == 0
    assert out.splitlines()[2:] == [f"warning: {each}" for each in told]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("gone", "'gone'"),
        ("wordcount --set engine.checkpoint_interval_s=241", "engine.checkpoint_interval_s: 241"),
        ("wordcount --set workload.corpus=/no/such", "workload.corpus: '/no/such'"),
        ("wordcount --set faults.processes.0.kind=power-off", "faults.processes.0.kind: 'power-off'"),
    ],
)
def test_what_refuses_the_run_refuses_the_check(call, home, words, told):
    code, out, err = call(f"benchmark {words} --check --json")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert told in err
    assert list(home.iterdir()) == []


def test_a_machine_that_lacks_something_is_exit_code_3(call, monkeypatch):
    def missing() -> None:
        raise EnvironmentFailure("no Java was found", "run `make setup`")

    monkeypatch.setattr(admission, "find_java", missing)
    code, out, err = call("benchmark wordcount --check")
    assert (code, out, err) == (3, "", "aftershock: no Java was found; run `make setup`\n")
