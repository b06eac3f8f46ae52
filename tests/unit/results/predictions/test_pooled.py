"""Eq. 10 against runs pooled over seeds: the right model passes, errors fail where there are enough faults."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from models import utilization as model
from models.uncertainty import simulate_windows
from results.predictions import pooled as module
from results.predictions.pooled import pooled
from results.predictions.tables import write_predictions
from results.summary.findings import REPLAY_MODEL, ModelInputs, judged_utilization
from tests.unit.results.simulated_runs import EXPERIMENT, Machine, Simulated

pytestmark = pytest.mark.usefixtures("home")

FAULTS = 20


def run_under(seed: int, faults: int = FAULTS) -> Simulated:
    return prepared(Machine(np.random.default_rng([31, seed]), faults), seed)


def prepared(machine: Machine, seed: int) -> Simulated:
    run = machine.run()
    run.tables["runs"] = run.tables["runs"].assign(seed=seed)
    write_predictions(run, EXPERIMENT)
    return run


def _runs(folder: Path, seeds: range) -> list[Simulated]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AFTERSHOCK_HOME", str(folder))
        return [run_under(seed) for seed in seeds]


@pytest.fixture(scope="module")
def twenty(tmp_path_factory: pytest.TempPathFactory) -> list[Simulated]:
    """400 faults under 20 seeds."""
    return _runs(tmp_path_factory.mktemp("nobody"), range(20))


@pytest.fixture(scope="module")
def many(twenty: list[Simulated], tmp_path_factory: pytest.TempPathFactory) -> list[Simulated]:
    """1,000 faults under 50 seeds."""
    return [*twenty, *_runs(tmp_path_factory.mktemp("nobody"), range(20, 50))]


@pytest.mark.extended
def test_the_right_model_passes(many: list[Simulated]) -> None:
    found = pooled(many)
    assert (found.verdict, found.seeds, found.faults) == ("pass", 50, 1000)
    assert found.low < found.measured < found.high
    assert found.measured == pytest.approx(np.mean([run.tables["runs"]["utilization"][0] for run in many]))
    assert found.high - found.low < 0.03, "so few faults' luck is left"
    assert pooled(many[:2]).verdict == "pass"


ERRORS = {
    "eq. 10 + 5 %": lambda *given: 1.05 * model.utilization(*given),
    "c doubled": lambda rate, cost, *given: model.utilization(rate, 2 * cost, *given),
}


@pytest.mark.extended
@pytest.mark.parametrize("error", ERRORS)
def test_an_error_in_eq_10_fails_with_enough_faults(many, error: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "utilization", ERRORS[error])
    assert pooled(many).verdict == "fail"
    assert pooled(many[:2]).verdict == "pass", "40 faults are too few to tell"


@pytest.mark.extended
def test_a_utilization_that_is_measured_too_high_fails(many: list[Simulated]) -> None:
    too_high = [changed(run, "runs", utilization=run.tables["runs"]["utilization"] + 0.03) for run in many]
    assert pooled(too_high).verdict == "fail"


def changed(run: Simulated, table: str, **columns: object) -> Simulated:
    return Simulated(run.tables | {table: run.tables[table].assign(**columns)})


@pytest.mark.parametrize(
    ("given", "seeds", "faults"), [(((1, 30),), 1, 30), (((1, 9), (2, 10)), 2, 19), (((1, 20), (1, 20)), 1, 20)]
)
def test_with_one_seed_or_few_faults_it_is_unknown(given: Sequence[tuple[int, int]], seeds: int, faults: int) -> None:
    found = pooled([run_under(*each) for each in given])
    assert (found.verdict, found.seeds, found.faults, found.measured) == ("unknown", seeds, faults, None)
    assert "2 seeds and 20 faults are needed" in found.sentence


def test_two_runs_under_one_seed_are_no_more_certain_than_one(twenty: list[Simulated]) -> None:
    once, twice = pooled(twenty[:2]), pooled([*twenty[:2], *twenty[:2]])
    assert twice.row() == pytest.approx(once.row())


def test_more_seeds_are_more_certain(twenty: list[Simulated]) -> None:
    few, all_of_them = pooled(twenty[:5]), pooled(twenty[:20])
    assert (few.high - few.low) / (all_of_them.high - all_of_them.low) == pytest.approx(2.0, rel=0.2)


class Absorbing(Machine):
    """Each strike is of one of three hosts; one of a host that is away changes nothing."""

    AWAY_S = 20.0

    def __init__(self, rng: np.random.Generator, strikes: int) -> None:
        super().__init__(rng, strikes)
        back_s = np.zeros(3)
        effective: list[float] = []
        for at_s, host in zip(self._struck_s, rng.integers(0, 3, strikes), strict=True):
            if at_s >= back_s[host]:
                effective.append(at_s)
                back_s[host] = at_s + self.AWAY_S
        self._struck_s, self.absorbed = effective, strikes - len(effective)


def absorbing(run: Simulated, strikes: int) -> Simulated:
    """The run, with the strikes in its table of faults that changed nothing."""
    faults = run.tables["faults"]
    nothing = faults.head(1).assign(outcome="absorbed")
    return Simulated(run.tables | {"faults": pd.concat([faults, *[nothing] * strikes], ignore_index=True)})


@pytest.mark.extended
def test_the_right_model_passes_where_strikes_were_absorbed() -> None:
    """About 400 strikes take effect, and 80 do not: eq. 10 at the rate of those that do is too high."""
    machines = [Absorbing(np.random.default_rng([47, seed]), 24) for seed in range(20)]
    found = pooled([absorbing(prepared(each, seed), each.absorbed) for seed, each in enumerate(machines)])
    assert (found.verdict, found.faults > 350) == ("pass", True)
    assert found.measured < found.expected


def test_the_interval_reaches_down_to_eq_10_with_the_absorbed_strikes(twenty: list[Simulated]) -> None:
    without, found = pooled(twenty[:2]), pooled([absorbing(run, strikes=5) for run in twenty[:2]])
    assert (found.expected, found.high, found.faults) == (without.expected, without.high, without.faults)
    judged = [judged_utilization(run.tables["predictions"], run.tables["faults"]) for run in twenty[:2]]
    inputs = [[float(row[name]) for name in ModelInputs.__annotations__] for row in judged if row is not None]
    lower = np.mean([model.utilization(1.25 * rate, *costs, int(depth)) for rate, *costs, depth in inputs])
    assert without.low - found.low == pytest.approx(without.expected - lower)
    assert found.low < without.low - 0.01


def without_recovery(run: Simulated) -> Simulated:
    return changed(run, "predictions", recovery_time_s=np.nan)


def test_a_run_without_an_undisturbed_recovery_gets_the_mean_of_the_others(twenty: list[Simulated]) -> None:
    found = pooled([without_recovery(twenty[0]), *twenty[1:10]])
    assert found.faults == 10 * FAULTS
    assert found.expected == pytest.approx(pooled(twenty[:10]).expected, abs=0.003)
    assert "no run says how long a recovery takes" in pooled([without_recovery(run) for run in twenty[:3]]).sentence


@pytest.mark.parametrize(
    ("table", "columns", "why"),
    [
        ("predictions", {"checkpoint_cost_s": np.nan}, "does not say its checkpoint_cost_s"),
        ("predictions", {"model": "another"}, "has no utilization that eq. 10 describes"),
        ("runs", {"utilization": pd.NA}, "has no utilization"),
        ("predictions", {"checkpoint_cost_s": 99.0}, "checkpoint_cost"),
    ],
)
def test_what_a_run_lacks_is_said(twenty: list[Simulated], table: str, columns: dict[str, Any], why: str) -> None:
    found = pooled([changed(twenty[0], table, **columns), twenty[1]])
    assert (found.verdict, why in found.sentence) == ("unknown", True), found.sentence


def waiting(run: Simulated, share: float) -> Simulated:
    """The run, so much of whose window went to waiting for input that more of it was idle by this share."""
    row = run.tables["ledger"][:1].assign(**{"class": "idle"}, seconds=share * run.tables["runs"]["window_s"][0])
    return Simulated(run.tables | {"ledger": pd.concat([run.tables["ledger"], row], ignore_index=True)})


def test_where_the_load_leaves_time_to_spare_it_is_unknown(twenty: list[Simulated]) -> None:
    found = pooled([twenty[0], waiting(twenty[1], 0.2)])
    assert (found.verdict, "simulated was idle for 2" in found.sentence) == ("unknown", True), found.sentence
    assert pooled([waiting(run, 0.02) for run in twenty[:2]]).row() == pooled(twenty[:2]).row()


def test_where_no_ledger_says_how_much_time_was_left_it_is_unknown(twenty: list[Simulated]) -> None:
    without = Simulated(twenty[1].tables | {"ledger": twenty[1].tables["ledger"][:0]})
    assert "simulated has no ledger" in pooled([twenty[0], without]).sentence


def test_where_other_hosts_went_on_it_is_unknown(twenty: list[Simulated]) -> None:
    found = pooled([twenty[0], changed(twenty[1], "runs", recovery="task")])
    assert (found.verdict, "simulated lost a part of its work only" in found.sentence) == ("unknown", True)
    assert pooled([changed(run, "runs", recovery="query") for run in twenty[:2]]).row() == pooled(twenty[:2]).row()


STORE_S = 0.25


def on_their_own_time(run: Simulated, protocol: str, spare_s: float) -> Simulated:
    """The run, whose longest recovery lasts so much longer than an interval and the storing of a checkpoint."""
    ledger = run.tables["ledger"]
    down = ledger[ledger["class"].isin(["detect", "restart"])]
    interval_s = down.groupby("fault")["seconds"].sum().max() - STORE_S - spare_s
    stored = pd.DataFrame({"partition": ["bids.0"], "seconds": [STORE_S]})
    timed = changed(changed(run, "runs", protocol=protocol), "predictions", interval_s=interval_s)
    return Simulated(timed.tables | {"partition_checkpoints": stored})


@pytest.mark.parametrize(
    ("protocol", "spare_s", "in_part"),
    [("uncoordinated", 0.01, True), ("uncoordinated", -0.01, False), ("coordinated", 0.01, False)],
)
def test_where_other_hosts_take_a_checkpoint_before_a_recovery_it_is_unknown(
    twenty: list[Simulated], protocol: str, spare_s: float, in_part: bool
) -> None:
    found = pooled([on_their_own_time(run, protocol, spare_s) for run in twenty[:2]])
    assert ("a part of its work only" in found.sentence) == in_part
    assert (found.verdict == "unknown") == in_part


def test_no_host_outlives_the_driver_to_take_a_checkpoint(twenty: list[Simulated]) -> None:
    runs = [on_their_own_time(run, "uncoordinated", spare_s=5.0) for run in twenty[:2]]
    assert pooled(runs).verdict == "unknown"
    assert pooled([changed(run, "faults", kind="driver-kill") for run in runs]).measured is not None


def test_how_long_a_checkpoint_takes_until_it_is_stored_must_be_known(twenty: list[Simulated]) -> None:
    run = changed(twenty[0], "runs", protocol="uncoordinated")
    assert "does not say how long a checkpoint takes until it is stored" in pooled([run, twenty[1]]).sentence


def test_a_driver_that_dies_takes_all_work_in_mode_task(twenty: list[Simulated]) -> None:
    killed = [changed(changed(run, "runs", recovery="task"), "faults", kind="driver-kill") for run in twenty[:2]]
    assert pooled(killed).row() == pooled(twenty[:2]).row()


def test_runs_that_no_fault_struck_add_no_luck(twenty: list[Simulated]) -> None:
    sound = twenty[0].tables["predictions"]
    no_fault = sound[sound["model"] == REPLAY_MODEL].assign(model="no faults", failure_rate=0.0, recovery_time_s=np.nan)
    useful = 1 - float(no_fault["checkpoint_cost_s"].iloc[0] / no_fault["interval_s"].iloc[0])
    tables = {"faults": twenty[0].tables["faults"][:0], "predictions": no_fault}
    tables["runs"] = twenty[0].tables["runs"].assign(seed=99, utilization=useful)
    found = pooled([waiting(Simulated(twenty[0].tables | tables), 0.2), *twenty[1:3]])
    assert (found.verdict, found.seeds, found.faults) == ("pass", 3, 2 * FAULTS)


RATE, COST_S, RECOVERY_S, INTERVAL_S = 0.02, 1.0, 12.0, 10.0


@pytest.mark.extended
@pytest.mark.parametrize("faults", [200, 800])
def test_the_scatter_of_long_windows_is_that_of_the_renewal_reward_argument(faults: int) -> None:
    """Y and X of the module's docstring, by drawing the times between faults."""
    gaps_s = np.random.default_rng(5).exponential(1 / RATE, 400_000)
    useful_s = np.floor(np.maximum(gaps_s - RECOVERY_S, 0.0) / INTERVAL_S) * (INTERVAL_S - COST_S)
    covariance = np.cov(useful_s, gaps_s)
    left = covariance[0, 0] - covariance[0, 1] ** 2 / covariance[1, 1]
    given = {"checkpoint_cost": COST_S, "recovery_time": RECOVERY_S, "interval": INTERVAL_S}
    found = simulate_windows(window=faults / RATE, failures=faults, seed=1, **given)
    assert found.std() == pytest.approx(RATE * (left / faults) ** 0.5, rel=0.06)
    assert found.mean() == pytest.approx(model.utilization(RATE, COST_S, RECOVERY_S, INTERVAL_S), rel=2 / faults)
