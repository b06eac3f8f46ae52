"""`aftershock results` with its further words: what each prints, and its exit code."""

import json

import pytest

from results import store
from results.schema import SCHEMA_VERSION
from tests.unit.results import synthetic


@pytest.fixture
def two_runs(home):
    return [synthetic.make_run(home / "runs", run_id=name) for name in ("run-1", "run-2")]


def test_an_export_names_what_it_wrote(call, as_json, two_runs, tmp_path):
    assert call(f"results export run-1 run-2 run-1 --out {tmp_path}/out.zip") == (
        0,
        f"2 runs, 24 files: {tmp_path}/out.zip\n",
        "",
    )
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
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(call, two_runs, words, named):
    code, out, err = call(words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert named in err


@pytest.mark.parametrize("version", [SCHEMA_VERSION, SCHEMA_VERSION - 1])
def test_runs_are_removed_by_number_but_no_baseline(call, as_json, home, version):
    """Of one experiment the latest five are compared with the twenty before, if need be once computed again."""
    for day in range(27):
        run = synthetic.make_run(home / "runs", run_id=f"run-{day}")
        comparable = {
            "started_ns": day,
            "machine": "mine",
            "experiment_digest": "same",
            "schema_version": SCHEMA_VERSION,
        }
        store.write_json(run.root / "status.json", run.status() | comparable)
    store.write_json(
        synthetic.make_run(home / "runs", run_id="failed").root / "status.json",
        run.status() | {"run_id": "failed", "state": "failed"},
    )
    baselines = [f"run-{day}" for day in range(2, 26)]
    planned = as_json("results prune --keep 1 --dry-run")
    assert planned == {
        "removed": ["run-0", "run-1"],
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
