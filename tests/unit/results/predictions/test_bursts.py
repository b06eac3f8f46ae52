"""Runs with faults in bursts alone: several hosts at once with a spread, each amid the recovery from another."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from results.predictions import process
from results.predictions.process import FEWEST_RECOVERIES, MeasuredProcess, Unreplayable
from results.predictions.replays import replay_run
from results.predictions.tables import write_predictions
from tests.unit.results.judging import verdict_of
from tests.unit.results.simulated_runs import (
    EXPERIMENT,
    FORMULAS,
    SECONDS_PER_FAULT,
    TABLES_WITH,
    Machine,
    Simulated,
    fails,
)

BURSTS, HOSTS, SPREAD_S = 12, 3, 6.0  # a recovery takes 10 s


class Burst(Machine):
    """The machine of the benchmark, struck by bursts that are as far apart as recoveries and batches need."""

    def __init__(self, rng: np.random.Generator, hosts: int = HOSTS) -> None:
        super().__init__(rng, BURSTS)
        self.window_s = BURSTS * 1.5 * SECONDS_PER_FAULT
        first_s = (np.arange(BURSTS) + rng.uniform(0.05, 0.4, BURSTS)) * 1.5 * SECONDS_PER_FAULT
        later_s = np.sort(rng.uniform(0.0, SPREAD_S, (BURSTS, hosts)), axis=1)
        self._struck_s = (first_s[:, np.newaxis] + later_s).ravel().tolist()


def simulated(seed: int, hosts: int = HOSTS) -> Simulated:
    return Burst(np.random.default_rng([9, seed]), hosts).run()


def test_every_outage_has_several_faults_and_each_begins_the_recovery_anew():
    measured = MeasuredProcess(simulated(1), EXPERIMENT)
    assert len(measured.recoveries) >= BURSTS - 1
    assert {len(each.strikes) for each in measured.recoveries} == {HOSTS}
    restarts_s = [each.restart_s for each in measured.recoveries]
    assert 9.0 < np.mean(restarts_s) < 11.0, "from the last fault, as of a single one"
    assert all(each.extended_s < SPREAD_S for each in measured.recoveries)
    assert measured.recoveries_s == pytest.approx([r.restart_s + r.outage.warm_up_s for r in measured.recoveries])


@pytest.mark.parametrize("seed", range(2))
def test_a_sound_run_passes(seed):
    assert fails(simulated(seed), EXPERIMENT) is False


@pytest.mark.parametrize("error", [*FORMULAS, *(error for error in TABLES_WITH if error != "R + 10 % in the ledger")])
def test_planted_errors_fail(error):
    if error in FORMULAS:
        with FORMULAS[error]():
            assert fails(simulated(1), EXPERIMENT) is True
    else:
        assert fails(TABLES_WITH[error](simulated(1)), EXPERIMENT) is True


def test_a_recovery_that_is_thought_to_last_from_the_first_fault_of_a_burst_fails(monkeypatch):
    """It would be extended twice: by the burst that it is drawn from, and by its own."""
    monkeypatch.setattr(process.Recovery, "restart_s", property(lambda self: self.outage.down_s))
    assert fails(simulated(1), EXPERIMENT) is True


def test_the_tables_of_such_a_run_pass_their_checks(tmp_path):
    run = simulated(1)
    write_predictions(run, EXPERIMENT)
    for name in ("replayed_recoveries.values", "useful_time.values"):
        row = verdict_of(name, run, tmp_path, EXPERIMENT)
        assert row["verdict"] == "pass", row


def test_single_faults_say_what_a_recovery_takes_where_there_are_enough():
    """Then the outages of several faults are as long as they were, and the others are predicted."""
    run = simulated(1)
    faults = run.tables["faults"]
    bursts = MeasuredProcess(run, EXPERIMENT).recoveries
    alone = {strike.fault for each in bursts[:FEWEST_RECOVERIES] for strike in each.strikes[1:]}
    fewer = replace(run, tables=run.tables | {"faults": faults[~faults["fault"].isin(alone)]})
    mixed = MeasuredProcess(fewer, EXPERIMENT)
    assert [len(each.strikes) for each in mixed.recoveries] == [1] * FEWEST_RECOVERIES
    found = replay_run(mixed)
    spread = found.down_s.std(axis=0)
    columns = [strike.fault for strike in found.strikes]
    assert spread[columns.index(bursts[-1].outage.fault)] == pytest.approx(0.0, abs=1e-9)


def test_with_one_recovery_that_was_seen_nothing_is_predicted():
    run = simulated(1)
    ledger = run.tables["ledger"]
    measured = MeasuredProcess(run, EXPERIMENT)
    second_s = measured.recoveries[1].outage.start_s
    late = ledger["start"] > second_s
    cut = ledger.assign(**{"class": ledger["class"].mask(late & ledger["class"].isin(["useful", "idle"]), "restart")})
    cut["fault"] = cut["fault"].mask(late & cut["fault"].isna(), float(measured.recoveries[1].outage.fault))
    with pytest.raises(Unreplayable, match="1 recoveries were seen to their end"):
        replay_run(MeasuredProcess(replace(run, tables=run.tables | {"ledger": cut}), EXPERIMENT))
