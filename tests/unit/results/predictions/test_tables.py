"""Predictions from the parameters that a run measured, on the made-up run and on spoilt ones."""

from __future__ import annotations

import pandas as pd
import pytest

from models.utilization import utilization
from results.damage import Damaged
from results.predictions.tables import write_predictions
from results.summary.findings import LAW_MODEL, LONG_RUN_MODEL, NO_FAULTS_MODEL, REPLAY_MODEL
from tests.unit.results import synthetic

WINDOW_S = 240.0
INPUTS = ["failure_rate", "checkpoint_cost_s", "recovery_time_s", "interval_s", "hop_delay_s", "depth"]


def predict(root, experiment=None, **options):
    """The rows by model, as written."""
    run = synthetic.make_run(root, without=("predictions",), **options)
    returned = write_predictions(run, experiment or synthetic.experiment())
    written = run.table("predictions")
    assert written["model"].tolist() == returned["model"].tolist()
    return run, {row["model"]: row for row in written.to_dict("records")}


def mean_recovery_s(recoveries):
    return pytest.approx((recoveries["detect_s"] + recoveries["restart_s"]).mean())


def test_a_run_with_faults_is_predicted_at_the_planned_and_at_the_lawful_rate(tmp_path):
    run, found = predict(tmp_path)
    assert list(found) == [REPLAY_MODEL, LONG_RUN_MODEL, LAW_MODEL]
    long_run = found.pop(LONG_RUN_MODEL)
    assert long_run["low"] <= long_run["predicted"] <= long_run["high"]
    struck = len(synthetic.KILLS_S)
    assert len(run.table("faults")) == struck + 1, "one was absorbed"
    assert found[REPLAY_MODEL]["failure_rate"] == pytest.approx(struck / WINDOW_S)
    assert found[LAW_MODEL]["failure_rate"] == pytest.approx(3 * 0.009)
    for row in found.values():
        assert row["quantity"] == "utilization"
        assert row["measured"] == pytest.approx(run.table("runs")["utilization"][0])
        assert row["low"] < row["predicted"] < row["high"]
    law = found[LAW_MODEL]
    assert law["predicted"] == pytest.approx(utilization(*(law[name] for name in INPUTS)))


def test_the_inputs_are_means_over_the_run(tmp_path):
    run, found = predict(tmp_path)
    row, recoveries = found[REPLAY_MODEL], run.table("recoveries")
    assert row["checkpoint_cost_s"] == pytest.approx(run.table("checkpoints")["checkpoint_s"].mean())
    assert row["recovery_time_s"] == mean_recovery_s(recoveries)
    assert (row["interval_s"], row["hop_delay_s"], row["depth"]) == (synthetic.INTERVAL_S, 0.0, 2)


def test_a_run_without_faults_is_predicted_by_the_model_without_them(tmp_path):
    _, found = predict(tmp_path, synthetic.experiment(faults={}), kills=())
    (row,) = found.values()
    assert (row["model"], row["failure_rate"]) == (NO_FAULTS_MODEL, 0.0)
    assert row["predicted"] == pytest.approx(1 - row["checkpoint_cost_s"] / row["interval_s"])
    assert row["low"] <= row["predicted"] <= row["high"]
    assert pd.isna(row["recovery_time_s"])


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_without_faults_the_window_may_have_one_checkpoint_more_or_less(tmp_path, more):
    def alike(checkpoints):
        return checkpoints.assign(checkpoint_s=synthetic.CHECKPOINT_S)

    _, found = predict(tmp_path, synthetic.experiment(faults={}), kills=(), changes={"checkpoints": alike})
    (row,) = found.values()
    measured = 1 - (WINDOW_S / synthetic.INTERVAL_S + more) * synthetic.CHECKPOINT_S / WINDOW_S
    assert row["low"] - 1e-9 <= measured <= row["high"] + 1e-9
    assert row["high"] - row["low"] == pytest.approx(2 * synthetic.CHECKPOINT_S / WINDOW_S)


def test_a_law_that_happened_to_strike_nothing_is_predicted_all_the_same(tmp_path):
    _, found = predict(tmp_path, kills=())
    assert list(found) == [NO_FAULTS_MODEL, LAW_MODEL]
    assert pd.isna(found[LAW_MODEL]["predicted"]), "no recovery was seen, so its time is unknown"
    assert not pd.isna(found[NO_FAULTS_MODEL]["predicted"])


def test_batches_outside_the_window_or_without_input_say_nothing_of_the_cost(tmp_path):
    def spoil(checkpoints):
        checkpoints.loc[0, ["checkpoint_s", "in_window"]] = [50.0, False]
        checkpoints.loc[1, ["checkpoint_s", "records"]] = [50.0, 0]
        return checkpoints

    _, found = predict(tmp_path, changes={"checkpoints": spoil})
    assert found[REPLAY_MODEL]["checkpoint_cost_s"] == pytest.approx(synthetic.CHECKPOINT_S, rel=0.1)


def test_batches_that_overrun_the_trigger_make_the_interval_longer(tmp_path):
    def overrun(frame):
        first_ns = frame["started_ns"].iloc[0]
        return frame.assign(started_ns=first_ns + (frame["started_ns"] - first_ns) * 5 // 4)

    _, found = predict(tmp_path, changes={"checkpoints": overrun})
    assert found[REPLAY_MODEL]["interval_s"] == pytest.approx(1.25 * synthetic.INTERVAL_S)


def test_an_outage_that_a_second_fault_disturbed_is_no_sample_of_the_recovery_time(tmp_path):
    disturbed = 2
    second_ns = synthetic.ns(synthetic.KILLS_S[disturbed] + 2.0)

    def strike_again(faults):
        row = faults[faults["fault"] == disturbed].assign(fault=len(faults), actual_ns=second_ns)
        return pd.concat([faults, row], ignore_index=True)

    run, found = predict(tmp_path, changes={"faults": strike_again})
    kept = run.table("recoveries").drop(disturbed)
    assert found[REPLAY_MODEL]["recovery_time_s"] == pytest.approx((kept["detect_s"] + kept["restart_s"]).mean())
    assert found[REPLAY_MODEL]["failure_rate"] == pytest.approx((len(synthetic.KILLS_S) + 1) / WINDOW_S)


def test_an_outage_that_the_window_cut_off_is_no_sample_either(tmp_path):
    kills = (*synthetic.KILLS_S, WINDOW_S - 2.0)
    run, found = predict(tmp_path, kills=kills)
    kept = run.table("recoveries")[:-1]
    assert found[REPLAY_MODEL]["recovery_time_s"] == pytest.approx((kept["detect_s"] + kept["restart_s"]).mean())


def test_a_run_that_committed_nothing_has_unknown_predictions(tmp_path):
    _, found = predict(tmp_path, changes={"checkpoints": lambda same: same[:0]})
    assert all(pd.isna(row[name]) for row in found.values() for name in ("predicted", "low", "high"))


def test_the_same_run_gives_the_same_interval(tmp_path):
    _, first = predict(tmp_path / "first")
    _, again = predict(tmp_path / "again")
    assert first[LAW_MODEL] == again[LAW_MODEL]


def test_the_interval_is_the_time_between_undisturbed_batches(tmp_path):
    _, found = predict(tmp_path)  # the first batch after each kill starts much later than an interval
    assert found[REPLAY_MODEL]["interval_s"] == pytest.approx(synthetic.INTERVAL_S, rel=0.01)


def test_the_law_expects_no_faults_beyond_its_duration(tmp_path):
    faults = {"duration": 60, "processes": [{"rate": 0.01}]}
    _, found = predict(tmp_path, synthetic.experiment(faults=faults))
    assert found[LAW_MODEL]["failure_rate"] == pytest.approx(3 * 0.01 * 60 / WINDOW_S)


def test_a_run_whose_table_has_no_row_is_damaged(tmp_path):
    with pytest.raises(Damaged, match="table runs"):
        predict(tmp_path, changes={"runs": lambda frame: frame.iloc[:0]})
