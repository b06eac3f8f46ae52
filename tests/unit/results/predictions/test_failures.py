"""Bursts count as one failure each, and everything else as it struck."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from experiments.faults import FaultSpec, ListedFault
from experiments.trace import with_trace
from models.simulation.laws import Correlated
from models.simulation.simulate import simulate
from models.utilization import mean_time_to_failure, optimal_interval, utilization
from results.predictions.failures import NO_CAUSE, failures, mean_reach_s
from results.predictions.outages import StruckFault
from results.predictions.recommendation import recommend
from results.runs.store import Run, write_json
from results.summary.findings import model_inputs
from tests.unit.results import synthetic

RACK = "domain rack-a (process 0)"
BURSTS_S = (21.3, 30.0, 77.0, 86.0, 152.2, 161.0)  # three, of two hosts each: a period after a recovery ends 13 s later


def strike(number: int, at_s: float, host: str, cause: str = RACK) -> StruckFault:
    return StruckFault(number, "kill", (host,), at_s, at_s, cause=cause)


def counted(*strikes: tuple[float, str] | tuple[float, str, str], within_s: float = 10.0) -> list[list[int]]:
    found = failures([strike(number, *each) for number, each in enumerate(strikes)], within_s)
    return [[each.fault for each in failure.strikes] for failure in found]


def test_the_hosts_of_a_domain_that_die_one_by_one_are_one_failure():
    found = failures([strike(0, 5.0, "a"), strike(1, 9.0, "b"), strike(2, 15.0, "c"), strike(3, 90.0, "a")], 10.0)
    assert [len(each.strikes) for each in found] == [3, 1]
    assert [each.reach_s for each in found] == [10.0, 0.0]
    assert mean_reach_s(found) == 5.0


def test_what_strikes_after_a_period_was_completed_is_a_failure_of_its_own():
    assert counted((5.0, "a"), (15.5, "b")) == [[0], [1]]


def test_a_clock_that_ticks_again_makes_another_failure():
    """It takes each of its hosts once; so what strikes one of them again is of its next tick."""
    assert counted((5.0, "a"), (6.0, "b"), (7.0, "a"), (8.0, "b")) == [[0, 1], [2, 3]]


def test_another_cause_is_another_failure_also_amid_a_burst():
    assert counted((5.0, "a"), (6.0, "b", "host b (process 1)"), (7.0, "c")) == [[0, 2], [1]]


@pytest.mark.parametrize("cause", NO_CAUSE)
def test_faults_of_no_named_cause_have_nothing_in_common(cause):
    assert counted((5.0, "a", cause), (6.0, "b", cause)) == [[0], [1]]


def test_these_are_the_causes_of_which_nobody_says_anything(tmp_path):
    (tmp_path / "trace.csv").write_text("at,targets\n1,worker-1\n")
    spec = FaultSpec(hosts={"worker-1": ()}, duration=9, trace=str(tmp_path / "trace.csv"))
    (traced,) = with_trace(spec).events
    listed = ListedFault(at=1, kind="kill", targets=("worker-1",))
    assert sorted((listed.cause, traced.cause)) == sorted(NO_CAUSE)


def made(root: Path, cause: str | None) -> Run:
    """A run of three bursts, if they have a cause in common."""

    def of_one_cause(faults: pd.DataFrame) -> pd.DataFrame:
        return faults if cause is None else faults.assign(cause=cause)

    run = synthetic.make_run(root, kills=BURSTS_S, changes={"faults": of_one_cause})
    write_json(run.experiment_path, synthetic.experiment().model_dump(mode="json"))
    return run


def test_the_best_interval_follows_from_the_rate_of_bursts(tmp_path):
    bursts, single = (recommend(made(tmp_path / str(cause), cause)) for cause in (RACK, None))
    inputs = model_inputs(made(tmp_path, None))
    rate, cost_s = inputs.failure_rate, inputs.checkpoint_cost_s
    assert bursts.advice.optimal_interval_s == pytest.approx(float(optimal_interval(rate / 2, cost_s)))
    assert single.advice.optimal_interval_s == pytest.approx(float(optimal_interval(rate, cost_s)))
    low_s, high_s = bursts.interval_s
    assert high_s / low_s > 1.2 * single.interval_s[1] / single.interval_s[0], "three failures tell less than six"
    assert "6 faults as 3" in bursts.models["interval"]
    assert "count as one" not in single.models["interval"]


def test_a_given_rate_counts_bursts(tmp_path):
    """A burst of the run makes the recovery longer, as it does there, but is one of the failures that are given."""
    run, rate = made(tmp_path, RACK), 1e-4
    found, inputs = recommend(run, rate), model_inputs(run)
    best_s = float(optimal_interval(rate, inputs.checkpoint_cost_s))
    recovery_s = inputs.recovery_time_s + np.mean([8.7, 9.0, 8.8])
    assert found.advice.optimal_interval_s == pytest.approx(best_s)
    then = float(utilization(rate, inputs.checkpoint_cost_s, recovery_s, best_s))
    assert found.advice.optimal_expected == pytest.approx(then)
    assert found.measured_rate == pytest.approx(inputs.failure_rate / 2)
    assert "6 faults as 3; the given rate counts failures in the same way" in found.models["interval"]


def test_strikes_count_as_they_do_at_the_interval_that_is_looked_at(tmp_path):
    """They are 15 s apart. With R = 5 s, a period is over in between at 8 s, but not at the best interval."""
    kills, window_s = (21.3, 36.0, 77.0, 92.0, 152.2, 167.0), 960.0
    rate = len(kills) / window_s
    changes = {
        "faults": lambda rows: rows.assign(cause=RACK),
        "predictions": lambda rows: rows.assign(failure_rate=rate),
    }
    run = synthetic.make_run(tmp_path, kills=kills, window_s=window_s, changes=changes)
    write_json(run.experiment_path, synthetic.experiment().model_dump(mode="json"))
    found, inputs = recommend(run), model_inputs(run)
    assert len(recommend(run, 1e-6).failures) == 6, "at a given rate, as at the interval that was run"
    best_s = float(optimal_interval(rate / 2, inputs.checkpoint_cost_s))
    assert [len(each.strikes) for each in found.failures] == [2, 2, 2]
    assert found.advice.optimal_interval_s == pytest.approx(best_s)
    assert found.advice.expected == pytest.approx(float(inputs.at(inputs.interval_s)))
    recovery_s = inputs.recovery_time_s + mean_reach_s(found.failures)
    then = float(utilization(rate / 2, inputs.checkpoint_cost_s, recovery_s, best_s))
    assert found.advice.optimal_expected == pytest.approx(then)
    age_s = float(mean_time_to_failure(rate, inputs.interval_s))
    assert found.latency_now_s == pytest.approx(inputs.recovery_time_s + age_s)


def test_a_recovery_from_a_burst_lasts_from_its_first_strike(tmp_path):
    run = made(tmp_path, RACK)
    found, inputs = recommend(run), model_inputs(run)
    reach_s = np.mean([8.7, 9.0, 8.8])
    for interval_s, latency_s in (
        (found.advice.optimal_interval_s, found.latency.value),
        (found.advice.interval_s, found.latency_now_s),
    ):
        age_s = float(mean_time_to_failure(inputs.failure_rate / 2, interval_s))
        assert latency_s == pytest.approx(inputs.recovery_time_s + reach_s + age_s, abs=1e-3)


def test_simulated_bursts_have_their_best_interval_where_the_rate_of_bursts_puts_it():
    """Bursts of three hosts within 5 s, a recovery of 6 s: utilization at that T* and at that of the deaths."""
    law, cost, recovery = Correlated(domain_share=1.0, domain_size=3, spread=5.0), 0.5, 6.0
    deaths = 0.03
    by_bursts, by_deaths = (float(optimal_interval(rate, cost)) for rate in (deaths / 3, deaths))
    measured = [
        simulate(
            failure_rate=deaths,
            checkpoint_cost=cost,
            recovery_time=recovery,
            interval=interval,
            runs=200,
            failures=300,
            seed=3,
            law=law,
        )
        for interval in (by_bursts, by_deaths)
    ]
    apart = measured[0].mean - measured[1].mean
    assert apart > 3 * np.hypot(*(each.standard_error for each in measured))
