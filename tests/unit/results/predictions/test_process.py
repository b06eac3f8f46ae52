"""What a run measured of its checkpoints: a cost that was made up is no measurement."""

from __future__ import annotations

import pandas as pd
import pytest

from results.predictions.process import MeasuredProcess
from results.summary.metrics import metrics_of
from tests.unit.results import synthetic

MADE_UP = 3  # the place of the batch


def made_up(rows: pd.DataFrame) -> pd.DataFrame:
    """The report of a batch died with its driver: it has the cost of the batch before, and no time for a commit log."""
    own = rows["batch"] == rows["batch"].iloc[MADE_UP]
    rows["checkpoint_s"] = rows["checkpoint_s"].mask(own, rows["checkpoint_s"].iloc[MADE_UP - 1])
    unlogged = {name: rows[name].mask(own) for name in ("wal_s", "commit_log_s")}
    return rows.assign(undisturbed=rows["undisturbed"] | own, **unlogged)


def test_the_cost_of_a_batch_whose_report_was_made_up_does_not_count_again(tmp_path):
    run = synthetic.make_run(tmp_path, changes={"checkpoints": made_up})
    rows = run.table("checkpoints")
    measured = rows.drop(index=rows.index[MADE_UP])
    assert MeasuredProcess(run, synthetic.experiment()).costs_s == measured["checkpoint_s"].tolist()
    usual = measured[measured["undisturbed"]]["checkpoint_s"]
    assert metrics_of(run)["checkpoint_s"] == pytest.approx(usual.mean())


def test_on_the_testbed_which_has_no_commit_log_all_costs_count(tmp_path):
    unlogged = {"checkpoints": lambda rows: rows.assign(wal_s=None, commit_log_s=None)}
    run = synthetic.make_run(tmp_path, changes=unlogged)
    assert len(MeasuredProcess(run, synthetic.experiment()).costs_s) == len(run.table("checkpoints"))
