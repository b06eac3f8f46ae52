"""The terminal summary and the JSON document say what the tables say."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path

import pandas as pd
import pytest

from experiments.wording import significant
from results.checks import validate
from results.predictions.described import REASONS
from results.runs.store import Run, write_json
from results.summary.findings import LAW_MODEL, REPLAY_MODEL, advice, the_run
from results.tables.schema import RUN_TABLES, TABLES, LedgerClass
from results.views.document import document
from results.views.report import write_report
from results.views.terminal import GUIDE, summary
from tests.unit.results import synthetic

PROTOCOL = "batch-aligned"
DOWN_BY_ITSELF = "the query was down once without a fault, which a replay of faults cannot know"


def test_the_document_has_the_fields_of_the_contract(good_run: Run) -> None:
    found = document(good_run)
    parts = {"run_id", "verdicts", "utilization", "sustainable", "ledger", "faults", "recoveries", "quality"}
    assert set(found) == parts
    assert found["sustainable"] == {"rate": None, "too_high": None}, "of a run that did not search"
    assert set(found["verdicts"][0]) == {"check", "verdict", "observed", "expected"}
    assert set(found["utilization"]) == {"measured", "predicted", "low", "high", "expected"}
    assert set(found["ledger"]) == {*LedgerClass, "window"}
    assert set(found["faults"][0]) == {"planned_at", "actual_at", "kind", "targets", "cause"}
    assert set(found["recoveries"][0]) == {"fault", "detect", "restart", "restore", "catch_up"}
    assert set(found["quality"]) == {"lost", "duplicated", "exact", "tentative_accuracy", "tentative_fidelity"}
    json.dumps(found, allow_nan=False)


def test_the_predicted_utilization_of_the_document_is_the_replays_and_eq_10_stands_beside_it(good_run: Run) -> None:
    found, rows = document(good_run)["utilization"], good_run.table("predictions").set_index("model")
    for name in ("predicted", "low", "high"):
        assert found[name] == pytest.approx(rows.loc[REPLAY_MODEL, name])
        assert found[name] != pytest.approx(rows.loc[LAW_MODEL, name])
    assert found["expected"] == pytest.approx(rows.loc[LAW_MODEL, "predicted"])


def test_the_document_counts_in_seconds_from_the_window_start(good_run: Run) -> None:
    found = document(good_run)
    assert found["faults"][0]["planned_at"] == pytest.approx(21.3)
    assert found["faults"][0]["actual_at"] == pytest.approx(21.3004)
    assert found["faults"][0]["targets"] == ["worker-1"]
    assert [fault["actual_at"] for fault in found["faults"]].count(None) == 1
    assert found["recoveries"][0]["restart"] == pytest.approx(synthetic.RESTART_S)
    assert [recovery["fault"] for recovery in found["recoveries"]] == [0, 1, 2, 4, 5, 6]


def test_the_ledger_of_the_document_adds_up(good_run: Run) -> None:
    ledger = document(good_run)["ledger"]
    assert ledger.pop("window") == pytest.approx(240.0)
    assert ledger == pytest.approx(synthetic.share(good_run.table("ledger")))
    assert sum(ledger.values()) == pytest.approx(240.0)


def test_an_output_that_was_not_compared_is_said_to_be_so(tmp_path: Path) -> None:
    run = synthetic.make_run(tmp_path)
    assert "Output against the exact result" in summary(run)
    (run.tables / "quality.parquet").unlink()
    assert "Output: not compared" in summary(run)


def test_quality_is_summed_over_windows(good_run: Run) -> None:
    nothing_tentative = {"tentative_accuracy": None, "tentative_fidelity": None}
    assert document(good_run)["quality"] == {"lost": 0, "duplicated": 225, "exact": 96_600, **nothing_tentative}


def test_what_was_not_measured_is_null(tmp_path: Path) -> None:
    run = synthetic.make_run(tmp_path, without=tuple(TABLES))
    found = document(run)
    assert set(found["utilization"].values()) == {None}
    assert set(found["ledger"].values()) == {None}
    assert (found["faults"], found["recoveries"], found["verdicts"]) == ([], [], [])


def test_the_summary_fits_a_terminal_and_tells_the_result(good_run: Run) -> None:
    text = summary(good_run)
    assert max(map(len, text.splitlines())) <= 92
    measured = document(good_run)["utilization"]["measured"]
    for words in (
        "Failures cost",
        f"measured   {significant(measured)}",
        "worker-3",
        "40 pass, 0 fail, 0 unknown",
        "0 lost, 0 wrong",
    ):
        assert words in text
    assert "✓ utilization.predicted" in text
    assert GUIDE not in text


def test_a_check_that_did_not_pass_leads_to_the_guide(good_run: Run, tmp_path: Path) -> None:
    run = synthetic.make_run(tmp_path)
    synthetic.write_table(run, "verdicts", good_run.table("verdicts").assign(verdict="unknown"))
    assert summary(run).splitlines()[-1] == f"  What to do: {GUIDE}"
    assert (Path(__file__).parents[4] / GUIDE).is_file()


def test_below_a_failed_prediction_is_where_the_run_parts_from_its_model(tmp_path: Path) -> None:
    def stalls(rows: pd.DataFrame) -> pd.DataFrame:
        return rows.assign(measured_s=rows["measured_s"].where(rows["second"] < 120, rows["measured_s"] - 12.0))

    run = synthetic.make_run(tmp_path, changes={"useful_time": stalls})

    def lines(verdict: str) -> list[str]:
        row = {"check": "utilization.predicted", "table": "predictions", "verdict": verdict, "observed": "0.6"}
        names = ("check", "table", "verdict", "observed", "expected", "detail")
        synthetic.write_table(run, "verdicts", pd.DataFrame([dict.fromkeys(names) | row]))
        return summary(run).splitlines()

    (at,) = (number for number, line in enumerate(lines("fail")) if line.startswith("  ✗ utilization.predicted"))
    _, *below, last = lines("fail")[at:]
    assert " ".join(" ".join(below).split()).startswith(
        "table useful_time: from second 120 on there is less useful time than replayed, at the end by "
    )
    assert last == f"  What to do: {GUIDE}"
    assert max(map(len, below)) <= 92
    for verdict in ("pass", "unknown"):
        assert "useful_time" not in " ".join(lines(verdict))


@pytest.mark.parametrize("why", [*REASONS, DOWN_BY_ITSELF])
def test_the_reason_why_nothing_is_predicted_fits_a_terminal(why: str, tmp_path: Path) -> None:
    def nothing(frame: pd.DataFrame) -> pd.DataFrame:
        model = why if why in REASONS else REPLAY_MODEL
        return frame[:1].assign(model=model, predicted=None, low=None, high=None, why=why)

    text = summary(synthetic.make_run(tmp_path, changes={"predictions": nothing}))
    assert why in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 92


def test_a_window_that_all_went_to_one_class_fits_a_terminal(tmp_path: Path) -> None:
    run = synthetic.make_run(tmp_path, changes={"ledger": lambda frame: frame.assign(**{"class": "useful"})})
    (line,) = (line for line in summary(run).splitlines() if line.startswith("  useful"))
    assert line.endswith("100 % " + "█" * 25)
    assert len(line) == 92


def test_the_replay_predicts_and_eq_10_expects(tmp_path: Path) -> None:
    """One word for each: what the summary says is predicted is of the replay, and all that eq. 10 says is expected."""
    run = synthetic.make_run(
        tmp_path, changes={"predictions": lambda frame: frame.assign(interval_s=3 * synthetic.INTERVAL_S)}
    )
    told = " ".join(summary(run).split("Checks:")[0].split())
    used, best = document(run)["utilization"], advice(run)
    predicted, expected, now, then = map(
        significant, (used["predicted"], used["expected"], best.expected, best.optimal_expected)
    )
    assert re.findall(r"predicted ([\d.]+)", told) == [predicted, predicted]
    assert told.count("predict") == 2
    assert "by a replay of the faults that struck" in told
    assert f"eq. 10 expects {now} at this interval, and {then} at the best one" in told
    assert f"expected {expected} by eq. 10 at the planned fault rate" in told
    assert f"expected utilization {now} {then}" in told


def test_an_interval_that_a_checkpoint_fills_leaves_no_utilization_to_expect(tmp_path: Path) -> None:
    """A checkpoint takes 0.7 s. Eq. 10 has a negative number here."""
    run = synthetic.make_run(tmp_path, changes={"predictions": lambda frame: frame.assign(interval_s=0.5)})
    assert "eq. 10 expects 0 at this interval, and 0." in " ".join(summary(run).split())


def test_without_faults_the_prediction_is_that_of_the_model_without_faults(tmp_path: Path) -> None:
    assert "by the model without faults" in summary(synthetic.make_run(tmp_path, kills=()))


def test_a_run_of_the_testbed_names_its_protocol_and_no_mode_of_spark(tmp_path: Path) -> None:
    run = synthetic.make_run(tmp_path)
    assert "structured-streaming (micro-batch, recovery by query)" in " ".join(summary(run).split())
    synthetic.write_table(run, "runs", the_run(run).to_frame().T.assign(engine="dataflow", protocol=PROTOCOL))
    told = " ".join(summary(run).split())
    assert f"on dataflow (protocol {PROTOCOL})," in told
    assert "recovery by" not in told


@pytest.mark.extended
def test_the_summary_marks_what_failed_and_what_is_unknown(tmp_path: Path) -> None:
    changes = {"quality": lambda frame: frame.assign(lost=2), "predictions": lambda frame: frame.iloc[3:]}
    run = synthetic.make_run(tmp_path, changes=changes)
    validate(run, synthetic.experiment())
    text = summary(run)
    assert "✗ quality.nothing_lost" in text
    assert "? utilization.predicted         no utilization was predicted for this run" in text
    assert "35 pass, 1 fail, 4 unknown" in text


def test_the_tables_have_the_labels_of_the_columns_that_they_show(tmp_path: Path) -> None:
    run = synthetic.make_run(tmp_path)
    synthetic.write_table(run, "probes", synthetic.probes())
    lines = summary(run).split("\n")
    shown = {
        "Faults and recoveries [s]": (
            *(("faults", name) for name in ("planned_ns", "lateness_s", "fault")),
            *(("recoveries", f"{part}_s") for part in ("detect", "restart", "executor", "restore", "catch_up")),
        ),
        "Search": (("probes", name) for name in ("rate", "watched_ns", "lag_median", "growth", "verdict")),
    }
    for title, columns in shown.items():
        head = next(below for above, below in pairwise(lines) if above.startswith(title))
        assert head.split() == " ".join(RUN_TABLES[table].by_name[name].label for table, name in columns).split()
    units = "Search: Rate and Growth [records/s], Lag median [records], Watched [s]"
    assert units in lines


def test_no_text_of_a_run_acts_on_the_terminal(tmp_path: Path) -> None:
    changes = {"runs": lambda frame: frame.assign(engine="\x1b[31mred", workload="\x00", trigger="\u202e")}
    lines = summary(synthetic.make_run(tmp_path, changes=changes)).split("\n")
    assert all(line.isprintable() for line in lines)
    assert r"\x00 on \x1b[31mred (\u202e" in lines[1]


@pytest.mark.extended
@pytest.mark.parametrize(("others", "told"), [(0.2, "window."), (0.6, "window: what is late, slow or unknown may be")])
def test_how_busy_others_kept_the_machine_is_said(tmp_path: Path, others: float, told: str) -> None:
    run = synthetic.make_run(tmp_path)
    assert "outside of the cluster" not in summary(run)
    write_json(run.root / "status.json", run.status().to_json() | {"cores": 2, "others_cores": others})
    told = f"Programs outside of the cluster kept {others} of the machine's 2 cores busy in the {told}"
    assert told in " ".join(summary(run).split())
    assert told in write_report(run, synthetic.experiment()).read_text().replace("&#39;", "'")


def test_how_fast_the_machine_was_is_said(tmp_path: Path) -> None:
    run = synthetic.make_run(tmp_path)
    assert "speed" not in summary(run)
    write_json(run.root / "status.json", run.status().to_json() | {"machine_speed": 43.91})
    told = "The machine's speed was 43.9 pieces of work a second before the start."
    assert told in " ".join(summary(run).split())


def test_the_summary_of_a_run_without_tables_says_that_nothing_was_measured(tmp_path: Path) -> None:
    run = synthetic.make_run(tmp_path, without=tuple(TABLES))
    assert "measured no utilization" in summary(run)


@pytest.mark.extended
def test_spark_s_part_of_a_restart_stands_beside_it_and_has_no_column_where_it_is_unknown(tmp_path: Path) -> None:
    """It is unknown in runs of Structured Streaming, and tables of an older version lack it."""
    run = synthetic.make_run(tmp_path)
    assert "Executor: Spark's part" in summary(run)
    kill, *_ = (line for line in summary(run).splitlines() if " worker-1 " in line)
    restart_s = synthetic.RESTART_S
    assert kill.split()[-4:-2] == [significant(restart_s), significant(0.8 * restart_s)]
    known = run.table("recoveries")
    for without in (known.assign(executor_s=pd.NA), known.drop(columns="executor_s")):
        synthetic.write_table(run, "recoveries", without)
        assert "Executor" not in summary(run)
        kill, *_ = (line for line in summary(run).splitlines() if " worker-1 " in line)
        assert kill.split()[-3] == significant(restart_s)
    assert write_report(run, synthetic.experiment()).is_file()


@pytest.mark.extended
def test_the_summary_of_a_control_run(control_run: Run) -> None:
    text = summary(control_run)
    assert "Faults and recoveries" not in text
    assert "faults.on_time" not in text


@pytest.mark.extended
def test_a_search_is_told_with_every_rate_that_was_tried(tmp_path: Path) -> None:
    found = {"sustainable_rate": 5657.0, "unsustainable_rate": 5907.0}
    run = synthetic.make_run(tmp_path, kills=(), changes={"runs": lambda frame: frame.assign(**found)})
    synthetic.write_table(run, "probes", synthetic.probes())
    assert document(run)["sustainable"] == {"rate": 5657.0, "too_high": 5907.0}
    text = summary(run)
    assert "The query sustains 5,657 records/s; 5,907 is too much. Failures cost" in text
    assert "      8,000       10       1,600     320  not-sustained: because" in text
    assert "Sustainable rate" in write_report(run, synthetic.experiment()).read_text()
    open_above = {"runs": lambda frame: frame.assign(sustainable_rate=70.0)}
    assert "70 records/s; no higher one was seen to fail." in summary(
        synthetic.make_run(tmp_path / "b", changes=open_above)
    )
