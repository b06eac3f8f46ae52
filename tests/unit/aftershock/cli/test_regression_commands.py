"""`aftershock results regress` and `compare`: what they print, and their exit codes."""

import json
import os

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from results.runs import store
from tests.unit.results import synthetic
from tests.unit.results.protection.runs import write_protections
from tests.unit.results.regression.past import publish, steady, write_nights

MATRIX_FILES = ("matrix.csv", "matrix.png", "matrix.svg")


def slow_nights():
    return write_nights([*steady(12), *steady(5, 6000 / 1.3, seed=2)])


def test_regress_ends_with_1_on_worse_and_says_what(call):
    slow_nights()
    code, out, err = call("results regress")
    assert (code, err) == (1, "")
    head, entry = out.rstrip().split("\n\n")
    assert head.startswith("worse (regression-")
    first, line = entry.splitlines()
    assert first == "wordcount: worse, 5 runs against 12, on a machine"
    assert line.split()[:3] == ["✗", "worse", "service_rate"]
    assert "records/s" in line


def test_regress_as_a_document(call):
    slow_nights()
    code, out, _ = call("results regress wordcount --json")
    document = json.loads(out)
    assert (code, document["verdict"]) == (1, "worse")
    assert [row["metric"] for row in document["metrics"]] == ["service_rate"]
    assert document["experiments"][0]["sentences"][0].startswith("worse: service_rate")


def test_regress_ends_with_0_on_anything_else(call):
    write_nights(steady(7))
    assert call("results regress")[0] == 0
    write_nights(steady(12), first=7)
    assert call("results regress")[0] == 0


def test_regress_of_what_was_never_run_is_bad_input(call):
    code, out, err = call("results regress nothing")
    assert (code, out) == (2, "")
    assert err.startswith("aftershock: experiment: 'nothing'")


def test_a_metric_that_became_worse_says_which_run_parts_from_its_baseline_and_where(call):
    """The newest run for which it is known: of the last one, there is no curve."""
    names = slow_nights()
    seconds = np.arange(100)
    for number, name in enumerate(names[:-1]):
        committed = np.where((seconds >= 40) & (number >= 12), 3000, 6000)
        curve = {"second": seconds, "due_records": 6000, "committed_records": committed, "lag_records": 0}
        synthetic.write_table(store.stored(name), "throughput", pd.DataFrame(curve))
    where = f"{names[-2]}, table throughput: from second 4"
    for words in ("regress", f"compare {' '.join(names[12:])} --against {' '.join(names[:12])}"):
        out = call(f"results {words}")[1]
        (at,) = (number for number, line in enumerate(out.splitlines()) if line.startswith("  ✗ worse"))
        told = out.splitlines()[at + 1 :]
        assert told[0].strip().startswith(where)
        assert "420,000 records instead of 600,000" in " ".join(" ".join(told).split())
        assert max(map(len, told)) <= 92


def test_compare_shows_runs_side_by_side(call):
    write_nights([6000.0, 3000.0])
    code, out, _ = call("results compare night-000 night-001")
    assert code == 0
    assert out.splitlines()[:2] == ["  1  night-000", "  2  night-001"]
    assert out.splitlines()[-3].split() == ["service_rate", "6,000", "3,000", "records/s"]
    why = "night-000 has no utilization that eq. 10 describes"
    assert out.splitlines()[-1] == f"pooled utilization: unknown: {why}"


def test_what_regress_and_compare_print_fits_a_terminal(call):
    names = slow_nights()
    printed = call("results regress")[1] + call(f"results compare {names[0]} --against {names[1]}")[1]
    assert "too few runs" in printed
    beside = call(f"results compare {' '.join(names[:7])}")[1]
    assert max(map(len, (printed + beside).splitlines())) <= 92
    rows = [line.split() for line in beside.splitlines()]
    assert [row for row in rows if row and all(map(str.isdigit, row))] == [list("12345"), list("67")]
    assert [len(row) for row in rows if row[:1] == ["service_rate"]] == [1 + 5 + 1, 1 + 2 + 1]


def test_compare_says_what_the_runs_do_not_share(call, as_json):
    write_nights([6000.0])
    write_nights([6000.0], prefix="other", machine="another", experiment_digest="d2")
    assert call("results compare night-000 other-000")[1].splitlines()[-2:] == [
        "the runs differ in their experiment", "the runs differ in their machine"
    ]  # fmt: skip
    found = as_json("results compare night-000 other-000")
    assert found["differ"] == ["experiment", "machine"]
    assert found["runs"][1] == {
        "run_id": "other-000", "experiment": "wordcount", "machine": "another", "metrics": {"service_rate": 6000.0},
        "published": False, "failed_checks": [], "not_measured": {},
    }  # fmt: skip


def test_compare_says_that_seeds_differ(as_json):
    write_nights([6000.0])
    write_nights([6000.0], prefix="other", seed=2)
    assert as_json("results compare night-000 other-000")["differ"] == ["seeds"]


def two_experiments(home, **differing):
    """Two runs of an experiment that differ in these fields of the engine, or only in the seed."""
    for name, seed in (("one", 7), ("two", 8)):
        run = synthetic.make_run(home / "runs", run_id=name)
        own = {"experiment_digest": f"d{seed if differing else 7}", "machine": "a machine"}
        store.write_json(run.root / "status.json", run.status().to_json() | own)
        engine = {"recovery": "query", "protocol": None} | (differing if name == "two" else {})
        processes = {"processes": [{"rate": 0.5}], "events": [{"at": 10.0 * seed}] * (2 if differing else 0)}
        document = {"name": "wordcount", "seed": seed, "engine": engine, "load": {"mode": "rate"}, "faults": processes}
        store.write_json(run.experiment_path, document)


def told(out: str, head: str) -> list[str]:
    """The lines of a paragraph below its head."""
    lines = out.splitlines()
    found = lines[lines.index(head) + 1 :]
    return found[: found.index("")] if "" in found else found


def test_compare_names_the_fields_in_which_experiments_differ(call, home, as_json):
    two_experiments(home, protocol="coordinated", checkpoint_interval_s=4.0)
    out = call("results compare one two")[1]
    assert told(out, "the experiments differ in these fields:") == [
        "  engine.checkpoint_interval_s: null (run 1), 4 (run 2)",
        "  engine.protocol: null (run 1), coordinated (run 2)",
        "  faults.events.0.at: 70 (run 1), 80 (run 2)",
        "  faults.events.1.at: 70 (run 1), 80 (run 2)",
    ]
    assert "the runs differ in their experiment" not in out
    fields = as_json("results compare one two")["fields"]
    assert fields["engine.protocol"] == [None, "coordinated"]
    assert list(fields) == sorted(fields)


def test_of_many_fields_compare_names_ten_those_first_that_all_experiments_have(call, home, as_json):
    two_experiments(home, recovery="task", **{f"a{number:02}": number for number in range(12)})
    named = told(call("results compare one two")[1], "the experiments differ in these fields:")
    assert [line.split(":")[0].strip() for line in named] == [
        *(f"engine.a{number:02}" for number in range(7)),
        "engine.recovery", "faults.events.0.at", "faults.events.1.at",
        "and 5 more",
    ]  # fmt: skip
    assert len(as_json("results compare one two")["fields"]) == 15


def test_compare_names_no_field_if_only_the_seeds_differ(call, home, as_json):
    two_experiments(home)
    assert "the experiments differ" not in call("results compare one two")[1]
    assert as_json("results compare one two")["fields"] == {}


def test_compare_still_says_that_experiments_differ_if_the_file_of_one_is_damaged(call, home):
    two_experiments(home, protocol="coordinated")
    store.finished("two").experiment_path.write_text("{")
    latency = store.finished("two").table_path("latency")
    latency.unlink()  # whose metric would have to know the load
    code, out, _ = call("results compare one two")
    assert code == 0
    assert "the runs differ in their experiment" in out.splitlines()


def test_compare_names_the_checks_that_a_run_failed(call, home, as_json):
    two_experiments(home)
    checks = ["faults.on_time", "utilization.replay", "runs.values", "load.saturated"]
    row = {"table": "faults", "observed": "1", "expected": "2", "detail": "late"}
    verdicts = [row | {"check": check, "verdict": "fail"} for check in checks] + [
        row | {"check": "x", "verdict": "pass"}
    ]
    synthetic.write_table(store.finished("two"), "verdicts", pd.DataFrame(verdicts))
    code, out, _ = call("results compare one two")
    assert told(out, "Failed checks (`aftershock results RUN_ID` tells more)") == [
        "  2  faults.on_time, utilization.replay and 2 more"
    ]
    assert code == 0  # the checks of a run are no verdict on the comparison
    assert [run["failed_checks"] for run in as_json("results compare one two")["runs"]] == [[], checks]


def test_compare_says_which_values_are_medians_over_recoveries(call, home):
    two_experiments(home)
    lines = call("results compare one two")[1].splitlines()
    medians = [line.split()[0] for line in lines if line.endswith(" s (median)")]
    assert medians == ["detect_s", "restart_s", "restore_s", "catch_up_s"]
    assert "  median: over the recoveries of a run; of restart_s, over those from a single fault" in lines
    write_nights([6000.0, 3000.0])
    assert "median" not in call("results compare night-000 night-001")[1]


def test_compare_says_why_a_value_is_missing(call, home, as_json):
    two_experiments(home)
    quiet = synthetic.make_run(home / "runs", run_id="quiet", kills=(), without=("quality",))
    store.write_json(quiet.experiment_path, {"load": {"mode": "saturating"}})
    out = call("results compare one quiet")[1]
    assert told(out, "Not measured (-)") == [
        "  detect_s, restart_s, restore_s, catch_up_s (run 2): no fault took effect",
        "  p99_latency_s (run 2): under a saturating load, latency grows with the length of the run",
        "  lost, wrong, duplicated (run 2): the experiment names nothing exact to compare its output",
        "    with",
    ]
    first, second = as_json("results compare one quiet")["runs"]
    assert first["not_measured"] == {}
    assert second["not_measured"]["detect_s"] == "no fault took effect"
    assert "Not measured" not in call("results compare one two")[1]
    assert max(map(len, out.splitlines())) <= 92


@pytest.mark.extended
def test_compare_judges_runs_against_a_baseline(call):
    names = slow_nights()
    words = f"results compare {' '.join(names[12:])} --against {' '.join(names[:12])}"
    code, out, _ = call(f"{words} --json")
    document = json.loads(out)
    assert (code, document["verdict"], document["differ"]) == (1, "worse", [])
    assert call(words)[1].splitlines()[0] == "worse"
    code, out, _ = call(f"results compare {' '.join(names[:5])} --against {' '.join(names[5:12])}")
    assert (code, out.splitlines()[0]) == (0, "same")


def test_compare_names_the_fields_in_which_runs_differ_from_their_baseline(call, home, as_json):
    two_experiments(home, protocol="coordinated", checkpoint_interval_s=4.0)
    out = call("results compare two --against one")[1]
    assert told(out, "the experiments differ in these fields:") == [
        "  engine.checkpoint_interval_s: 4 (baseline: null)",
        "  engine.protocol: coordinated (baseline: null)",
        "  faults.events.0.at: 80 (baseline: 70)",
        "  faults.events.1.at: 80 (baseline: 70)",
    ]
    assert "the runs differ in their experiment" not in out
    assert as_json("results compare two --against one")["fields"]["engine.protocol"] == ["coordinated", None]


@pytest.fixture
def one_published(tmp_path, monkeypatch):
    """A run of this installation, night-000, and a published one of the same experiment, night-001."""
    monkeypatch.setenv("AFTERSHOCK_PUBLISHED", str(tmp_path / "published"))
    write_nights([6000.0, 3000.0])
    publish("night-001")


@pytest.mark.usefixtures("one_published")
def test_compare_takes_published_runs_and_marks_them(call, as_json):
    code, out, _ = call("results compare night-000 night-001")
    assert code == 0
    assert out.splitlines()[:2] == ["  1  night-000", "  2  night-001 (published)"]
    assert out.splitlines()[-1].split() == ["service_rate", "6,000", "3,000", "records/s"]
    found = as_json("results compare night-001 night-000")
    assert [(run["run_id"], run["published"]) for run in found["runs"]] == [("night-001", True), ("night-000", False)]
    assert found["pooled"] is None  # though both are of one experiment


@pytest.mark.usefixtures("one_published")
def test_a_published_run_is_a_baseline_only_where_it_is_named(as_json):
    assert as_json("results compare night-000 --against night-001")["verdict"] == "unknown"  # too few
    assert as_json("results regress wordcount")["experiments"][0]["baseline"] == []


def test_runs_cannot_be_judged_by_themselves_or_alone(call):
    write_nights([6000.0])
    assert call("results compare night-000 --against night-000")[0] == 2
    assert call("results compare night-000")[0] == 2
    assert call("results compare night-000 gone")[0] == 2


@pytest.mark.extended
@pytest.mark.parametrize("text", ["[]", "{", '{"experiments": [{}]}', "[" * 100_000])
def test_a_damaged_comparison_stops_neither_regress_nor_prune(call, home, text):
    slow_nights()
    damaged = home / "regressions" / "regression-20260921-060000-abcd"
    damaged.mkdir(parents=True)
    (damaged / "regression.json").write_text(text)
    assert call("results regress")[0] == 1
    code, out, _ = call("results prune --keep 1 --dry-run")
    assert (code, "baselines" in out or "kept" in out) == (0, True)


@pytest.mark.extended
@pytest.mark.parametrize("damage", ["fifo", "link", "folder", "text", "column"])
def test_a_damaged_run_stops_neither_regress_nor_prune_nor_the_list(call, home, damage):
    name = write_nights([6000.0], prefix="odd")[0]
    slow_nights()
    table = home / "runs" / name / "tables" / "runs.parquet"
    if damage == "column":
        pq.write_table(pq.read_table(table).set_column(0, "run_id", pa.array([[1]])), table)
    else:
        table.unlink()
        ways = {"fifo": os.mkfifo, "link": lambda path: path.symlink_to("/dev/zero"), "folder": os.mkdir}
        ways.get(damage, lambda path: path.write_text("no table"))(table)
    assert call("results regress")[0] == 1
    assert call("results prune --keep 1 --dry-run")[0] == 0
    (line,) = [line for line in call("results")[1].splitlines() if name in line]
    assert f"table runs of {name} is damaged" in line
    code, _, err = call(f"results {name}")
    assert (code, err.count("\n")) == (3, 1)


def five_seeds(home, longer: float, digest: str | None = "d1") -> str:
    """Runs of six kills each, whose utilization is so much higher than their ledgers say."""
    for seed in range(5):
        kills = tuple(at + 1.7 * seed for at in synthetic.KILLS_S)
        changes = {"runs": lambda rows, seed=seed: rows.assign(seed=seed, utilization=rows["utilization"] + longer)}
        run = synthetic.make_run(home / "runs", run_id=f"run-{seed}", kills=kills, changes=changes)
        store.write_json(run.root / "status.json", run.status().to_json() | {"experiment_digest": digest})
    return "results compare " + " ".join(f"run-{seed}" for seed in range(5))


@pytest.mark.extended
@pytest.mark.parametrize(("longer", "verdict", "exit_code"), [(0.0, "pass", 0), (0.25, "fail", 1)])
def test_compare_holds_runs_of_one_experiment_against_eq_10_together(call, home, longer, verdict, exit_code):
    words = five_seeds(home, longer)
    code, out, _ = call(words)
    line = " ".join(out[out.index("pooled utilization: ") :].split())
    assert code == exit_code
    assert line.startswith(f"pooled utilization: {verdict}: 30 faults under 5 seeds: measured 0.")
    assert ", eq. 10 gives 0." in line
    found = json.loads(call(f"{words} --json")[1])["pooled"]
    assert (found["verdict"], found["seeds"], found["faults"]) == (verdict, 5, 30)
    assert (found["low"] <= found["measured"] <= found["high"]) == (verdict == "pass")


def test_compare_pools_no_runs_that_do_not_say_what_they_ran(call, home):
    words = five_seeds(home, 0.25, digest=None)
    code, out, _ = call(words)
    assert code == 0
    assert "pooled utilization" not in out
    assert json.loads(call(f"{words} --json")[1])["pooled"] is None


def test_compare_holds_protections_side_by_side(call, as_json, tmp_path):
    write_protections()
    code, out, _ = call(f"results compare --matrix wordcount --out {tmp_path / 'taken'}")
    assert code == 0
    assert out.splitlines()[-3:] == [f"written: {tmp_path / 'taken' / name}" for name in MATRIX_FILES]
    assert all((tmp_path / "taken" / name).is_file() for name in MATRIX_FILES)
    found = as_json("results compare --matrix")
    assert found["written"] == []
    (one,) = found["matrices"]
    assert [each["cost_s"]["value"] for each in one["protections"]] == pytest.approx([10.0, 4.0])
    assert [each["until"] for each in one["wins"]] == pytest.approx([1 / 44, 0.1])


def test_an_unknown_workload_is_refused_with_those_that_there_are(call):
    assert call("results compare --matrix nexmark")[2].endswith("or its first word: there is none yet\n")
    write_protections()
    code, out, err = call("results compare --matrix nexmark")
    assert (code, out) == (2, "")
    assert err.endswith("allowed: a workload of finished runs, or its first word: wordcount depth 1\n")


def test_a_matrix_takes_no_runs_and_a_folder_only_a_matrix(call):
    write_protections()
    for words in ("fast-0 --matrix", "--matrix wordcount --against fast-0", "fast-0 safe-0 --out taken", "--matrix no"):
        code, out, err = call(f"results compare {words}")
        assert (code, out, err.count("\n")) == (2, "", 1)
    assert call("results compare")[0] == 2
