"""Why a run lacks a metric."""

import numpy as np
import pytest

from results.regression import not_measured
from results.regression.not_measured import Lack, lacks, reasons
from results.runs import store
from results.summary.metrics import METRICS, metrics_of
from tests.unit.results import synthetic

pytestmark = pytest.mark.usefixtures("home")


def run_with(**changes):
    return synthetic.make_run(store.home() / "runs", run_id="one", changes=changes)


def why(run, name):
    assert name not in metrics_of(run)
    return reasons(run, [name])[name]


@pytest.mark.parametrize(
    ("name", "changed", "reason"),
    [
        ("restore_s", {"restored_ns": None, "restore_s": np.nan}, not_measured.NOT_REACHED),
        ("restore_s", {"ready_ns": None, "restore_s": np.nan}, not_measured.NO_BEGIN),
        ("detect_s", {"notice_ns": None, "detect_s": np.nan}, not_measured.NOT_NOTICED),
        ("restart_s", {"faults": 2}, not_measured.NEVER_ALONE),
    ],
)
def test_a_phase_that_no_median_has(name, changed, reason):
    assert why(run_with(recoveries=lambda rows: rows.assign(**changed)), name) == reason


def test_of_several_recoveries_one_from_a_single_fault_was_not_noticed():
    def changed(rows):
        return rows.assign(faults=[1, *[2] * (len(rows) - 1)], notice_ns=rows["notice_ns"].mask(rows.index == 0),
                           restart_s=rows["restart_s"].mask(rows.index == 0))  # fmt: skip

    assert why(run_with(recoveries=changed), "restart_s") == not_measured.NOT_NOTICED_ALONE


@pytest.mark.parametrize(
    ("table", "name"), [("recoveries", "restore_s"), ("faults", "detect_s"), ("checkpoints", "checkpoint_s")]
)
def test_a_table_that_is_missing_says_nothing_of_the_run(table, name):
    run = run_with()
    run.table_path(table).unlink()
    assert reasons(run, [name]) == {name: not_measured.UNKNOWN}


def test_faults_without_a_recovery():
    assert why(run_with(recoveries=lambda rows: rows.iloc[:0]), "restart_s") == not_measured.NO_RECOVERY


def test_no_usual_checkpoint():
    assert why(run_with(checkpoints=lambda rows: rows.assign(in_window=False)), "checkpoint_s") == (
        not_measured.NO_CHECKPOINT
    )


@pytest.mark.parametrize(
    ("mode", "reason"), [("rate", not_measured.NOT_SEARCHED), ("sustainable", not_measured.NOT_FOUND)]
)
def test_a_rate_that_was_not_searched_for_or_not_found(mode, reason):
    run = run_with()
    assert why(run, "sustainable_rate") == not_measured.UNKNOWN
    store.write_json(run.experiment_path, {"load": {"mode": mode}})
    assert why(run, "sustainable_rate") == reason


def test_a_prediction_that_is_missing_says_why_in_the_words_of_its_table():
    told = "1 fault took effect; at least 3 are needed"
    run = run_with(predictions=lambda rows: rows.assign(predicted=np.nan, why=told))
    assert why(run, "model_error") == told


def test_what_no_table_explains_is_not_measured():
    run = run_with(runs=lambda rows: rows.assign(utilization=np.nan))
    assert reasons(run, ["utilization"]) == {"utilization": not_measured.UNKNOWN}
    run.table_path("recoveries").write_text("damaged")
    assert reasons(run, ["detect_s"]) == {"detect_s": not_measured.UNKNOWN}


def test_a_run_without_tables_lacks_all_for_one_reason():
    run = run_with()
    run.table_path("runs").unlink()
    assert set(reasons(run, METRICS).values()) == {not_measured.NO_TABLES}


def test_metrics_and_runs_that_share_a_reason_are_told_together():
    found = lacks([{"lost": "a", "wrong": "a"}, {}, {"lost": "a", "wrong": "a", "detect_s": "b"}])
    assert found == [Lack(("lost", "wrong"), (0, 2), "a"), Lack(("detect_s",), (2,), "b")]
