"""Table 1 of `utilization`, on made-up runs: it passes if they follow the model, and each check notices its error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from aftershock.airflow import missing_runs as command
from chaos.implications import drawn
from chaos.plan import plan
from experiments.spec import Experiment
from models.utilization import optimal_interval, utilization
from reproductions.catalogue import CATALOGUE
from reproductions.judging import judge
from reproductions.reproduce import missing_runs, reproduce
from reproductions.reproduction import Computed, ReproductionCheck
from reproductions.utilization.experiments import (
    DEFAULT_S,
    FEWEST_FAULTS,
    MEANS_S,
    ROWS,
    Interval,
    interval_of,
    row_of,
    seeds,
)
from results.predictions import pooled
from results.runs.store import Run
from tests.unit.reproductions.runs import Tables, put_published_run, put_run
from tests.unit.reproductions.utilization_shapes import as_modelled, inputs
from tests.unit.results.synthetic import START_NS

pytestmark = pytest.mark.usefixtures("home")

ID = "utilization/table-1"
CHECKS = [pytest.param(check, id=check.name) for check in CATALOGUE[ID].checks]
HOUR_NS = 3600 * 10**9


def run_all(tables_of: Callable[[Experiment], Tables] = as_modelled, size: int = 1) -> Computed:
    """The table, once everything that it lacks has been run."""
    while lacking := missing_runs(ID, size):
        for experiment in lacking:
            put_run(experiment, tables_of(experiment))
    return computed(size)


def computed(size: int = 1) -> Computed:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pooled, "RUNS", 20)  # of windows whose luck is simulated
        return Computed(ID, CATALOGUE[ID].compute(size, lambda done, total: None))


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Computed:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AFTERSHOCK_HOME", str(tmp_path_factory.mktemp("home")))
        return run_all()


def verdicts(found: Computed) -> dict[str, str | None]:
    return {check.name: judge(check, found)["verdict"] for check in CATALOGUE[ID].checks}


@pytest.mark.parametrize("check", CHECKS)
def test_a_check_notices_the_error_that_it_names(check: ReproductionCheck, sound: Computed) -> None:
    assert judge(check, sound)["verdict"] == "pass", judge(check, sound)
    assert judge(check, replace(sound, table=check.plant.change(sound.rows())))["verdict"] == "fail"


@pytest.mark.extended
def test_it_is_written_with_a_plot(tmp_path):
    run_all()
    found = reproduce(ID, tmp_path, 1)
    assert [row for row in found.verdicts if row["verdict"] != "pass"] == []
    assert len(pd.read_parquet(found.files["parquet"])) == 2 * len(ROWS)
    assert found.files["png"].read_bytes().startswith(b"\x89PNG")


def test_the_default_interval_goes_first_and_tells_the_best_one():
    first = missing_runs(ID, 1)
    assert [row_of(each) for each in first] == list(ROWS)
    assert {each.engine.checkpoint_interval_s for each in first} == {DEFAULT_S}
    for experiment in first[:2]:
        put_run(experiment, as_modelled(experiment))
    best = [each for each in missing_runs(ID, 1) if interval_of(each) is Interval.BEST]
    assert [row_of(each) for each in best] == list(ROWS[:2])
    for default, at_best in zip(first, best, strict=False):
        given = inputs(default)
        wanted_s = optimal_interval(given["failure_rate"], given["checkpoint_cost_s"])
        assert at_best.engine.checkpoint_interval_s == pytest.approx(wanted_s, abs=0.05)
        assert (at_best.seed, at_best.fault_spec, at_best.window_s) == (
            default.seed,
            default.fault_spec,
            default.window_s,
        )


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[Experiment]:
    """The experiments that the command runs, in their order; each run starts an hour after the one before."""
    experiments: list[Experiment] = []

    def run(experiment: Experiment) -> Run:
        experiments.append(experiment)
        return put_run(experiment, as_modelled(experiment), START_NS + len(experiments) * HOUR_NS)

    monkeypatch.setattr(command.orchestrate, "run", run)
    return experiments


def test_the_command_runs_both_of_a_pair_next_to_each_other(ran, capsys):
    command.run_missing(ID, None, None)
    assert [(row_of(each), interval_of(each)) for each in ran] == [(row, each) for row in ROWS for each in Interval]
    told = capsys.readouterr().err
    assert told.startswith(f"{ID}: 6 runs are missing, about ")
    assert all(f"{ID}: run {number} of " in told for number in range(1, 2 * len(ROWS) + 1))
    assert f"{ID}: run 1 of 6, {ran[0].name}" in told
    assert f"{ID}: run 2 of 7, {ran[1].name}" in told
    assert f"{ID}: run 12 of 12, {ran[-1].name}" in told


def test_the_command_goes_on_with_the_pair_that_was_interrupted(ran):
    half, *others = missing_runs(ID, 1)
    put_run(half, as_modelled(half))
    command.run_missing(ID, None, None)
    assert (row_of(ran[0]), interval_of(ran[0])) == (row_of(half), Interval.BEST)
    assert [row_of(each) for each in ran[1::2]] == [row_of(each) for each in others]


def test_the_command_goes_on_where_another_installation_stopped(ran, tmp_path, monkeypatch):
    """A pair was measured and published there; here the other ten runs are made, and the table has all twelve.

    It tells when each run started.
    """
    monkeypatch.setenv("AFTERSHOCK_PUBLISHED", str(tmp_path / "published"))
    for interval in Interval:
        experiment = missing_runs(ID, 1)[0]
        assert (row_of(experiment), interval_of(experiment)) == (ROWS[0], interval)
        put_published_run(experiment, as_modelled(experiment))
    command.run_missing(ID, None, None)
    assert [row_of(each) for each in ran] == [row for row in ROWS[1:] for _ in Interval]
    found = computed()
    assert set(verdicts(found).values()) == {"pass"}
    hours = (pd.to_datetime(found.rows()["started_at"]) - pd.Timestamp(START_NS, tz="UTC")) / pd.Timedelta(hours=1)
    assert list(hours) == [0, 0, *range(1, len(ran) + 1)]


def test_a_pair_of_two_sessions_is_noticed_and_pairs_of_different_ones_are_not(sound: Computed) -> None:
    table = sound.rows()
    pair = (table["mean_s"] == MEANS_S[1]) & (table["depth"] == ROWS[0].depth)
    assert pair.sum() == 2
    days_later = table.assign(started_at=table["started_at"].mask(pair, "2026-09-30T10:00:00+00:00"))
    assert verdicts(replace(sound, table=days_later))["pairs.adjoin"] == "pass"
    best = pair & (table["interval"] == Interval.BEST)
    two_hours_later = days_later["started_at"].mask(best, "2026-09-30T12:00:00+00:00")
    apart = replace(sound, table=days_later.assign(started_at=two_hours_later))
    found = {check.name: judge(check, apart) for check in CATALOGUE[ID].checks}
    assert [name for name, row in found.items() if row["verdict"] != "pass"] == ["pairs.adjoin"]
    assert found["pairs.adjoin"]["observed"] == "started 2.0 h apart at most"


def test_a_run_that_tells_no_best_interval_leaves_its_row_unknown():
    def without_costs(experiment: Experiment) -> Tables:
        tables = as_modelled(experiment)
        is_last = row_of(experiment) == ROWS[-1]
        costs = {"checkpoint_cost_s": None} if is_last else {}
        return tables | {"predictions": [row | costs for row in tables["predictions"]]}

    found = run_all(without_costs)
    assert len(found.rows()) == 2 * len(ROWS) - 1
    assert set(verdicts(found).values()) == {"unknown"}
    told = [judge(check, found)["detail"] for check in CATALOGUE[ID].checks]
    assert all("every 54 s, depth 3" in str(each) for each in told)


def test_without_any_run_it_is_unknown():
    found = reproduce(ID)
    assert {row["verdict"] for row in found.verdicts} == {"unknown"}
    assert "none of its 6 runs" in str(found.verdicts[0]["detail"])


@pytest.mark.parametrize("column", ["measured", "replayed", "eq_10", "started_at"])
def test_a_single_value_that_is_not_known_leaves_its_check_unknown(column: str, sound: Computed) -> None:
    table = sound.rows()
    gone = table[column].mask(table.index == 5)
    found = verdicts(replace(sound, table=table.assign(**{column: gone})))
    asked = {
        "measured": {"optimum.above_default", "replay.within_a_hundredth", "eq_10.pooled"},
        "replayed": {"replay.within_a_hundredth"},
        "eq_10": {"eq_10.pooled"},
        "started_at": {"pairs.adjoin"},
    }[column]
    assert found == {name: "unknown" if name in asked else "pass" for name in found}


def test_the_comparison_with_eq_10_tells_how_far_single_runs_are_off(sound: Computed) -> None:
    table = sound.rows()
    off = table["measured"].mask(table.index == 4, table["eq_10"] - 0.03).mask(table.index == 7, table["eq_10"] + 0.02)
    (asked,) = (check for check in CATALOGUE[ID].checks if check.name == "eq_10.pooled")
    row = judge(asked, replace(sound, table=table.assign(measured=off)))
    assert row["verdict"] == "pass"
    assert str(row["observed"]).endswith("; single runs are -0.0300 to +0.0200 off eq. 10")


def test_eq_10_stands_beside_itself_at_the_interval_that_was_set():
    experiment = missing_runs(ID, 1)[0]
    tables = as_modelled(experiment)
    as_run = [row | {"interval_s": 16.0} for row in tables["predictions"]]
    put_run(experiment, tables | {"predictions": as_run})
    row = computed().rows().set_index("run_id").dropna(subset="measured").iloc[0]
    given = inputs(experiment)
    assert given["interval_s"] == DEFAULT_S
    assert row["interval_s"] == 16.0
    assert row["eq_10_at_set"] == utilization(*given.values())
    assert row["eq_10"] == utilization(*(given | {"interval_s": 16.0}).values())


def test_fewer_faults_than_twenty_decide_nothing(sound: Computed) -> None:
    table = sound.rows()
    few = table["faults"].where(table.index != 3, FEWEST_FAULTS - 1)
    assert set(verdicts(replace(sound, table=table.assign(faults=few))).values()) == {"unknown"}


def test_replays_are_judged_run_by_run(sound: Computed) -> None:
    table = sound.rows()
    sign = np.where(table.index % 2 == 0, 1.0, -1.0)
    off = table.assign(replayed=table["measured"] + 0.011 * sign)  # .0 apart on average
    assert verdicts(replace(sound, table=off))["replay.within_a_hundredth"] == "fail"


def test_gains_are_means_over_replicates(sound: Computed) -> None:
    table = pd.concat([sound.rows().assign(replicate=replicate) for replicate in (1, 2)], ignore_index=True)
    one = (table["replicate"] == 2) & (table["mean_s"] == MEANS_S[0]) & (table["interval"] == Interval.BEST)
    assert one.any()
    default = table.loc[table["interval"] == Interval.DEFAULT, "measured"].min()
    lower = table.assign(measured=table["measured"].mask(one, default - 0.01))
    assert verdicts(replace(sound, table=lower))["optimum.above_default"] == "pass", "the other replicate gains more"


@pytest.mark.extended
def test_two_replicates_of_each_cell_pass():
    found = run_all(size=2)
    assert set(verdicts(found).values()) == {"pass"}
    assert len(found.rows()) == 4 * len(ROWS)
    assert set(found.rows()["replicate"]) == {seed for mean_s in MEANS_S for seed in seeds(mean_s, 2)}


def test_seeds_strike_often_enough_and_never_a_host_that_is_away():
    taken = [seed for mean_s in MEANS_S for seed in seeds(mean_s, 3)]
    assert len(set(taken)) == len(taken)
    for experiment in missing_runs(ID, 3):
        events = plan(experiment.fault_spec, experiment.seed)
        assert len(events) >= FEWEST_FAULTS
        assert drawn(experiment.fault_spec, events).absorbed == 0


def test_chosen_plans_have_fewer_short_gaps_than_eq_10_and_the_comparison_knows(sound: Computed) -> None:
    """A host that fails twice in a row costs less than two failures far apart, and no chosen plan has that."""
    added = sound.rows().groupby("mean_s")["added"].mean()
    assert -0.03 < added[24.0] < added[36.0] < added[54.0] < -0.002


def test_more_replicates_keep_the_runs_of_fewer():
    assert missing_runs(ID, 3)[: len(ROWS)] == missing_runs(ID, 1)
