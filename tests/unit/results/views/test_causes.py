"""From a verdict to its cause: the planted second is found, and where nothing parts nothing is said."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from experiments.wording import significant
from plugins.present import causes
from results.runs.store import Run, write_json
from results.summary.judged_checks import JudgedCheck
from results.views.causes import (
    MOMENTS,
    PARTINGS,
    PREDICTION,
    parts_from_baseline,
    parts_from_model,
    parts_from_prediction,
    seconds_of,
)
from tests.unit.results import synthetic
from tests.unit.results.figures import too_precise

PARTED_S = 100


def slower(column, by_s):
    """From the planted second on, each second adds so much less to a curve."""

    def change(rows):
        late = np.clip(rows["second"] - PARTED_S, 0, None)
        return rows.assign(**{column: rows[column] - by_s * late})

    return change


@pytest.fixture
def make(tmp_path):
    def made(run_id, seed=7, **changes):
        changes["runs"] = lambda rows: rows.assign(seed=seed)
        return synthetic.make_run(tmp_path, run_id=run_id, changes=changes)

    return made


@pytest.fixture
def baseline(make):
    return [make(f"base-{number}") for number in range(3)]


def test_a_run_that_agrees_with_its_replay_parts_nowhere(make):
    assert parts_from_model(make("good")) is None


def test_the_second_at_which_a_run_leaves_its_replay_for_good(make):
    def stalls(rows):
        late = rows["second"] >= PARTED_S
        return rows.assign(measured_s=rows["measured_s"] - np.where(late, 112.34, 0.0))

    found = parts_from_model(make("bad", useful_time=stalls))
    assert (found.table, found.second) == ("useful_time", PARTED_S)
    assert "less useful time than replayed, at the end by 11" in found.words
    assert too_precise(found.words) == []


def test_a_run_that_comes_back_to_its_replay_has_not_parted(make):
    def dips(rows):
        inside = rows["second"].between(50, 60)
        return rows.assign(measured_s=rows["measured_s"] - np.where(inside, 12.0, 0.0))

    assert parts_from_model(make("dips", useful_time=dips)) is None


def test_the_fault_that_cost_most_against_the_replay_is_named(make):
    def one_long(rows):
        return rows.assign(difference_s=np.where(rows.index == 3, 9.0, 0.1))

    run = make("bad", useful_time=slower("measured_s", 0.2), replayed_recoveries=one_long)
    at = significant(synthetic.KILLS_S[3])
    assert f"the fault at {at} s differs most from the replay: it cost 9 s more" in parts_from_model(run).words


def test_each_check_that_says_where_a_run_parts_looks_at_a_table_with_moments():
    assert {check.table for check, _ in PARTINGS.values()} <= MOMENTS.keys()
    assert len(PARTINGS) == 10


@pytest.mark.parametrize("check", [PREDICTION, *PARTINGS])
def test_a_run_without_tables_or_experiment_says_nothing(make, check):
    assert parts_from_prediction(make("good", useful_time=lambda rows: rows[:0]), check) is None


def test_without_a_replay_nothing_is_said(tmp_path):
    assert parts_from_model(synthetic.make_run(tmp_path, without=("useful_time",))) is None


def test_the_second_at_which_a_run_leaves_its_baseline(make, baseline):
    worse = make("worse", throughput=lambda rows: rows.assign(committed_records=_halved(rows)))
    found = parts_from_baseline(worse, baseline, "service_rate")
    assert found.table == "throughput"
    assert PARTED_S <= found.second < PARTED_S + 20  # the sum must first fall behind by a hundredth of the whole
    assert re.search(r"at the end [\d,]+ records instead of [\d,]+ \(throughput\.committed_records\)", found.words)
    assert parts_from_baseline(baseline[0], baseline[1:], "service_rate") is None


def _halved(rows):
    return rows["committed_records"] * np.where(rows["second"] >= PARTED_S, 0.5, 1.0)


def test_the_first_recovery_that_is_longer_than_any_of_the_baseline(make, baseline):
    def longer(rows):
        return rows.assign(restart_s=rows["restart_s"] + np.where(rows["recovery"] >= 2, 30.0, 0.0))

    found = parts_from_baseline(make("worse", recoveries=longer), baseline, "restart_s")
    assert (found.table, found.second) == ("recoveries", pytest.approx(synthetic.KILLS_S[2]))
    assert found.words.startswith("second 77: restart is 3")
    assert parts_from_baseline(make("same"), baseline, "restart_s") is None


def test_only_restarts_that_the_metric_counts_are_compared(make):
    """In every run a second fault makes the first restart 60 s longer, which is no cause and hides none."""

    def longer(by_s):
        def change(rows):
            again, late = rows["recovery"] == 0, rows["recovery"] >= 2
            took_s = rows["restart_s"] + np.where(late, by_s, 0.0) + np.where(again, 60.0 + by_s, 0.0)
            return rows.assign(restart_s=took_s, faults=np.where(again, 2, 1))

        return change

    others = [make(f"other-{number}", recoveries=longer(0.0)) for number in range(2)]
    found = parts_from_baseline(make("slow", recoveries=longer(30.0)), others, "restart_s")
    assert (found.table, found.second) == ("recoveries", pytest.approx(synthetic.KILLS_S[2]))
    assert "at most 4.88 s in its baseline" in found.words
    assert parts_from_baseline(make("same", recoveries=longer(0.0)), others, "restart_s") is None


def test_only_checkpoints_that_the_metric_counts_are_compared(make):
    """A batch before the window, and one that an outage touched, cost 5 s in every run: they are no cause."""

    def dearer(by_s):
        def change(rows):
            usual = rows["undisturbed"] & (rows.index > 0)
            cost_s = np.where(usual, rows["checkpoint_s"] + by_s, 5.0)
            return rows.assign(checkpoint_s=cost_s, in_window=rows.index > 0)

        return change

    others = [make(f"other-{number}", checkpoints=dearer(0.0)) for number in range(2)]
    found = parts_from_baseline(make("dear", checkpoints=dearer(1.0)), others, "checkpoint_s")
    assert (found.table, found.second) == ("checkpoints", 16.0)
    assert parts_from_baseline(make("same", checkpoints=dearer(0.0)), others, "checkpoint_s") is None


def test_the_first_second_whose_latency_no_run_of_the_baseline_had(make, baseline):
    def late(rows):
        return rows.assign(p99_s=rows["p99_s"] + np.where(rows["second"] >= PARTED_S, 1000.0, 0.0))

    found = parts_from_baseline(make("worse", latency=late), baseline, "p99_latency_s")
    assert found.table == "latency"
    assert PARTED_S <= found.second < PARTED_S + 10


def test_runs_under_the_same_seed_go_before_others(make, baseline):
    """The other seed's recoveries are so long that this one's would hide among them."""
    other = make("other", seed=8, recoveries=lambda rows: rows.assign(restart_s=rows["restart_s"] + 100.0))
    worse = make("worse", recoveries=lambda rows: rows.assign(restart_s=rows["restart_s"] + 30.0))
    assert parts_from_baseline(worse, [*baseline, other], "restart_s") is not None
    assert parts_from_baseline(worse, [other], "restart_s") is None


def test_a_metric_without_a_course_over_time_and_a_baseline_that_is_gone_say_nothing(baseline, tmp_path):
    assert parts_from_baseline(baseline[0], baseline[1:], "sustainable_rate") is None
    assert parts_from_baseline(baseline[0], [], "utilization") is None
    gone = replace(baseline[1], root=tmp_path / "gone")
    assert parts_from_baseline(baseline[0], [gone], "utilization") is None


def test_a_damaged_table_is_no_cause(make, baseline):
    bad = make("bad")
    (bad.tables / "throughput.parquet").write_bytes(b"no table")
    assert parts_from_baseline(bad, baseline, "service_rate") is None


def test_when_rows_were_is_known_of_seconds_moments_and_faults(make):
    run: Run = make("one")
    assert seconds_of(run, "throughput", run.table("throughput")).tolist()[:2] == [0.0, 1.0]
    assert seconds_of(run, "recoveries", run.table("recoveries")).iat[0] == pytest.approx(synthetic.KILLS_S[0])
    assert seconds_of(run, "faults", run.table("faults")).tolist() == pytest.approx(
        sorted([*synthetic.KILLS_S, synthetic.ABSORBED_S])
    )
    assert seconds_of(run, "verdicts", pd.DataFrame({"check": []})) is None


def twice(rows):
    return pd.concat([rows, rows.iloc[[5]]], ignore_index=True).sort_values("second", ignore_index=True)


def test_a_second_that_is_there_twice_counts_once(make, baseline):
    worse = make("worse", throughput=lambda rows: twice(rows.assign(committed_records=_halved(rows))))
    once = make("once", throughput=lambda rows: rows.assign(committed_records=_halved(rows)))
    others = [make("double", throughput=twice), *baseline]
    expected = parts_from_baseline(once, baseline, "service_rate")
    assert parts_from_baseline(worse, baseline, "service_rate") == expected
    assert parts_from_baseline(once, others, "service_rate") == expected


@pytest.mark.parametrize("metric", ["utilization", "model_error", "p99_latency_s", "restart_s"])
@pytest.mark.parametrize("value", [None, "soon", []], ids=["nothing", "a word", "a list"])
def test_columns_of_another_type_are_no_cause(make, baseline, monkeypatch, metric, value):
    table = Run.table

    def spoilt(run, name):
        rows = table(run, name).astype(object)
        return rows.assign(**{column: [value] * len(rows) for column in rows}) if run.run_id == "bad" else rows

    monkeypatch.setattr(Run, "table", spoilt)
    bad = make("bad")
    assert parts_from_baseline(bad, baseline, metric) is None
    write_json(bad.experiment_path, synthetic.experiment().model_dump(mode="json"))
    failed = [JudgedCheck.of({"check": check, "verdict": "fail"}) for check in (PREDICTION, *PARTINGS)]
    assert causes(bad, failed) == {}
