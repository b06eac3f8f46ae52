"""What a run is compared by: each figure taken from the tables by hand, and missing where it was not measured."""

import numpy as np
import pandas as pd
import pytest

from results.damage import Damaged
from results.runs.store import write_json
from results.summary.findings import utilizations
from results.summary.metrics import METRICS, Better, Scale, metrics_of
from results.tables.schema import TABLES
from tests.unit.results.synthetic import KILLS_S, make_run

PHASES = ("detect_s", "restart_s", "restore_s", "catch_up_s")
ENDS = {"restart_s": "ready_ns", "restore_s": "restored_ns", "catch_up_s": "normal_ns"}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("metrics"))


def with_load(run, mode):
    write_json(run.root / "experiment.json", {"load": {"mode": mode}})
    return run


def test_every_figure_of_a_run(run):
    found = metrics_of(run)
    assert list(found) == [name for name in METRICS if name not in ("sustainable_rate", "tentative_accuracy")]
    facts, recoveries = run.table("runs").iloc[0], run.table("recoveries")
    assert found["utilization"] == facts["utilization"]
    assert found["service_rate"] == facts["service_rate"]
    for phase in PHASES:
        middle = sorted(recoveries[phase])[len(KILLS_S) // 2 - 1 : len(KILLS_S) // 2 + 1]
        assert found[phase] == pytest.approx(sum(middle) / 2)
    usual = run.table("checkpoints").query("undisturbed")
    assert found["checkpoint_s"] == pytest.approx(usual["checkpoint_s"].sum() / len(usual))
    assert found["model_error"] == abs(utilizations(run).measured - utilizations(run).predicted)
    assert (found["lost"], found["wrong"]) == (0, 0)
    assert found["duplicated"] == run.table("quality")["duplicated"].sum() > 0


def test_p99_counts_records(tmp_path):
    def slow_seconds(frame):
        return pd.DataFrame({
            "second": [0, 1, 2], "records": [980, 11, 9], "p50_s": 0.1, "p99_s": [0.5, 7.0, 30.0], "p999_s": 31.0,
        })  # fmt: skip

    run = with_load(make_run(tmp_path, changes={"latency": slow_seconds}), "rate")
    assert metrics_of(run)["p99_latency_s"] == 7.0


def test_latency_under_a_saturating_load_is_no_figure_of_the_query(tmp_path):
    assert "p99_latency_s" not in metrics_of(with_load(make_run(tmp_path), "saturating"))


def test_what_was_not_measured_is_missing(tmp_path):
    found = metrics_of(make_run(tmp_path, kills=(), without=("quality", "latency", "predictions")))
    assert set(found) == {"utilization", "service_rate", "checkpoint_s"}


def test_nulls_are_not_measured(tmp_path):
    changes = {
        "runs": lambda frame: frame.assign(utilization=np.nan, service_rate=np.nan),
        "recoveries": lambda frame: frame.assign(detect_s=[np.nan] * (len(frame) - 1) + [3.0]),
        "checkpoints": lambda frame: frame.assign(undisturbed=False),
    }
    found = metrics_of(make_run(tmp_path, changes=changes))
    assert not {"utilization", "service_rate", "checkpoint_s"} & set(found)
    assert found["detect_s"] == 3.0


@pytest.mark.parametrize(
    ("unseen", "median"), [(0, 3.0), (1, 4.0), (2, 5.0), (3, None), (5, None)], ids=lambda value: str(value)
)
@pytest.mark.parametrize("phase", ENDS)
def test_a_recovery_whose_phase_was_not_seen_to_end_took_longer_than_all_others(tmp_path, phase, unseen, median):
    """Of five that took 1, 2, 3, 4 and 5 s, the shortest are not seen to end."""

    def five(frame):
        rows = pd.concat([frame[:1]] * 5, ignore_index=True).assign(recovery=range(5), **{phase: np.arange(1.0, 6.0)})
        missing, end = rows["recovery"] < unseen, ENDS[phase]
        return rows.assign(**{phase: rows[phase].mask(missing), end: rows[end].astype("Int64").mask(missing)})

    assert metrics_of(make_run(tmp_path, changes={"recoveries": five})).get(phase) == median


def test_an_outage_that_nobody_noticed_has_no_restart(tmp_path):
    def unnoticed(frame):
        return frame.assign(restart_s=[np.nan] * (len(frame) - 1) + [3.0])

    assert metrics_of(make_run(tmp_path, changes={"recoveries": unnoticed}))["restart_s"] == 3.0


@pytest.mark.parametrize(
    ("faults", "ended", "restart_s"),
    [([1, 1, 1], 3, 2.0), ([1, 1, 2], 3, 1.5), ([2, 2, 2], 3, None), ([1, 1, 2], 2, 2.0)],
)
def test_a_restart_that_another_fault_made_longer_is_left_out(tmp_path, faults, ended, restart_s):
    """Of three that took 1, 2 and 21 s; one that did not end counts, whatever struck during it."""

    def three(frame):
        rows = pd.concat([frame[:1]] * 3, ignore_index=True).assign(recovery=range(3), faults=faults)
        seen = rows["recovery"] < ended
        return rows.assign(restart_s=pd.Series([1.0, 2.0, 21.0]).where(seen), ready_ns=rows["ready_ns"].where(seen))

    assert metrics_of(make_run(tmp_path, changes={"recoveries": three})).get("restart_s") == restart_s


def test_a_run_without_tables_measured_nothing(tmp_path):
    assert metrics_of(make_run(tmp_path, without=tuple(TABLES))) == {}


def test_tables_of_an_older_version_give_what_they_have(tmp_path):
    changes = {"faults": lambda frame: frame.drop(columns="outcome")}
    found = metrics_of(make_run(tmp_path, changes=changes))
    assert "model_error" not in found
    assert "detect_s" in found


@pytest.mark.parametrize("name", ["recoveries", "checkpoints", "latency", "quality"])
def test_a_damaged_table_is_not_taken_for_one_that_measured_nothing(tmp_path, name):
    run = make_run(tmp_path)
    (run.tables / f"{name}.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(Damaged, match=f"table {name} of "):
        metrics_of(run)


def test_every_metric_says_how_far_a_change_must_go():
    for name, metric in METRICS.items():
        assert metric.name == name
        assert (metric.minimum_effect is None) == (metric.scale is Scale.COUNT)
        assert (metric.resolution > 0) == (metric.scale is Scale.RATIO)
    higher = {name for name, metric in METRICS.items() if metric.better is Better.HIGHER}
    assert higher == {"utilization", "service_rate", "sustainable_rate", "tentative_accuracy"}
