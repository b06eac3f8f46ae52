"""`aftershock results` with its further words: what each prints, and its exit code."""

import json
from pathlib import Path

import pytest

from aftershock.run import batch_job, derive
from experiments.errors import EnvironmentFailure
from experiments.spec import Experiment
from results.runs import store
from results.runs.machine import experiment_digest
from results.tables.schema import SCHEMA_VERSION
from tests.unit.results import synthetic
from tests.unit.results.regression.past import publish


@pytest.fixture
def two_runs(home):
    return [synthetic.make_run(home / "runs", run_id=name) for name in ("run-1", "run-2")]


def test_an_export_names_what_it_wrote(call, as_json, two_runs, tmp_path):
    assert call(f"results export run-1 run-2 run-1 --out {tmp_path}/out.zip") == (
        0,
        f"2 runs, 28 files: {tmp_path}/out.zip\n",
        "",
    )
    assert call(f"results export run-1 --out {tmp_path}/one.zip")[1].startswith("1 run, 14 files:")
    found = as_json(f"results export run-2 --out {tmp_path}/out")
    assert [run["run_id"] for run in found["runs"]] == ["run-2"]
    assert json.loads((tmp_path / "out" / "manifest.json").read_text()) == found


def test_nothing_is_computed_again_where_there_is_nothing(as_json, call):
    assert as_json("results recompute all") == {"recomputed": [], "failed": {}}
    assert call("results recompute all")[1] == "0 of 0 runs were computed again\n"


def test_of_all_runs_those_that_cannot_be_computed_again_are_named(call, two_runs):
    code, out, err = call("results recompute all --json")
    assert code == 3
    found = json.loads(out)
    assert found["recomputed"] == []
    assert set(found["failed"]) == {"run-1", "run-2"}  # made up, without logs and experiment
    assert [line.split(":")[0] for line in err.splitlines()] == ["1 of 2", "2 of 2"]
    assert {run.run_id for run in store.all_finished()} == {"run-1", "run-2"}


def test_one_damaged_run_is_said_and_stops_nothing(call, as_json, two_runs):
    (two_runs[0].root / "status.json").write_text("{")
    listed = {run["run_id"]: run for run in as_json("results")["runs"]}
    assert (listed["run-1"]["state"], listed["run-2"]["state"]) == ("unreadable", "done")
    (line,) = [line for line in call("results")[1].splitlines() if "run-1" in line]
    assert "damaged" in line
    assert "status.json of run-1 is damaged" in json.loads(call("results recompute all --json")[1])["failed"]["run-1"]
    assert as_json("results prune --keep 0")["removed"] == ["run-2"]


def test_published_runs_are_told_and_listed_apart(call, as_json, two_runs, tmp_path, monkeypatch):
    monkeypatch.setenv("AFTERSHOCK_PUBLISHED", str(tmp_path / "published"))
    publish("run-2")
    *_, own, _, told = call("results")[1].splitlines()
    assert own.endswith("  run-1")
    assert told == "1 published run came with the repository: see `aftershock results --published`"
    _, shown = call("results --published")[1].splitlines()
    assert shown.endswith("  run-2")
    for words, run_id, is_published in (("results", "run-1", False), ("results --published", "run-2", True)):
        found = as_json(words)
        (run,) = found["runs"]
        assert (run["run_id"], run["state"], run["published"]) == (run_id, "done", is_published)
        assert found["published_runs"] == 1
    store.remove("run-1")
    assert call("results")[1].splitlines()[::2] == ["no run yet: start one with `aftershock benchmark`", told]


def raw_run(home):
    run = synthetic.make_run(home / "runs", run_id="run-3")
    run.raw.mkdir()
    store.write_json(run.root / "experiment.json", Experiment().model_dump(mode="json"))
    return run


def test_a_job_that_failed_leaves_its_log_where_it_says(call, home, monkeypatch):
    def fail(run, owner):
        (run.raw / "logs").mkdir()
        (run.raw / "logs" / batch_job.LOG).write_text("OutOfMemoryError")
        raise EnvironmentFailure("the job build failed (OutOfMemoryError)", "see its log")

    monkeypatch.setattr(derive, "tabulate", fail)
    run = raw_run(home)
    before = run.status()
    code, _, err = call("results recompute run-3")
    log = Path(err.strip().split("see ")[1])
    assert (code, log.read_text(), log.parent) == (3, "OutOfMemoryError", home / "logs")
    assert run.status() == before


def test_a_failure_before_there_is_a_log_is_told_as_it_is(call, home, monkeypatch):
    def fail():
        raise EnvironmentFailure("the jars cannot be fetched", "go online")

    monkeypatch.setattr(batch_job, "ensure_jars", fail)
    raw_run(home)
    code, _, err = call("results recompute run-3")
    assert code == 3
    assert "the jars cannot be fetched" in err
    assert "run-3" in json.loads(call("results recompute all --json")[1])["failed"]


def test_a_run_that_is_computed_again_says_what_it_ran_in_the_terms_of_now(call, home, monkeypatch):
    for step in ("tabulate", "predict", "validate", "report"):
        monkeypatch.setattr(derive, step, lambda *run, **owner: None)
    run = raw_run(home)
    assert call("results recompute run-3")[0] == 0
    assert run.status().experiment_digest == experiment_digest(Experiment())


@pytest.mark.extended
@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("results recompute", "RUN"),
        ("results prune", "--older-than DAYS"),
        ("results prune --keep -1", "--keep: -1"),
        ("results prune --keep some", "'some'"),
        ("results prune --older-than nan", "--older-than: nan"),
        ("results recompute no-such-run", "'no-such-run'"),
        ("results recompute ../../etc", "'../../etc'"),
        ("results export", "RUN"),
        ("results export run-1", "--out"),
        ("results export run-1 ../run-2 --out new", "'../run-2'"),
        ("results export run-1 --out README.md", "a path where nothing is yet"),
        ("results export run-1 --out no/such/out.zip", "a path in a folder that exists"),
        ("results run-1 --published", "--published: 'run-1'"),
        ("results compare all", "the id of a finished run"),
        ("results compare run-1", "two runs or more"),
        ("results compare run-1 run-2 run-1", "each run once"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(call, two_runs, words, named):
    code, out, err = call(words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert named in err


@pytest.mark.extended
@pytest.mark.parametrize("version", [SCHEMA_VERSION, SCHEMA_VERSION - 1])
def test_runs_are_removed_by_number_but_no_baseline(call, as_json, home, version):
    """Of one experiment the latest five are compared with the twenty before, if need be once computed again."""
    for day in range(27):
        run = synthetic.make_run(home / "runs", run_id=f"run-{day}")
        comparable = {
            "started_ns": day,
            "machine": "mine",
            "experiment_digest": "same",
            "schema_version": version,
        }
        store.write_json(run.root / "status.json", run.status().to_json() | comparable)
    store.write_json(
        synthetic.make_run(home / "runs", run_id="failed").root / "status.json",
        run.status().to_json() | {"run_id": "failed", "state": "failed"},
    )
    baselines = [f"run-{day}" for day in range(2, 26)]
    planned = as_json("results prune --keep 1 --dry-run")
    assert planned == {
        "removed": ["run-0", "run-1"],
        "logs": [],
        "baselines_kept": planned["baselines_kept"],
        "kept": 26,
        "dry_run": True,
    }
    assert sorted(planned["baselines_kept"]) == sorted(baselines)
    assert len(store.all_finished()) == 28
    code, out, _ = call("results prune --keep 1")
    assert (code, out.splitlines()[0]) == (0, "removed run-0")
    assert {run.run_id for run in store.all_finished()} == {*baselines, "run-26", "failed"}
    assert as_json("results prune --keep 1")["removed"] == [], "those that wait to be a baseline stay, too"
    assert as_json("results prune --older-than 1000000")["removed"] == []
    assert call("results prune --older-than 1000000")[1] == "nothing to remove\n"
