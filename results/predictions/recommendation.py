"""What a run advises on the checkpoint interval of the next one, and what to expect of it.

Everything is computed from what the run measured, but a failure rate of one's own can be given. Each part names the
model that it comes from.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from experiments import spec
from experiments.errors import BadInput
from experiments.loads import LoadMode
from experiments.wording import significant
from models import partial_rollback
from models.inputs import require, require_rate
from models.interval_estimator import Estimate, IntervalEstimator
from models.next_of_few import draw_next
from models.partial_rollback import SMALLEST_SHARE
from models.uncertainty import predict_run
from models.utilization import mean_lost_time, optimal_interval, system_period
from results.predictions.described import why_not_predicted
from results.predictions.failures import Failure, failures, mean_reach_s
from results.predictions.process import MeasuredProcess
from results.runs.store import Run
from results.summary.fallback import as_it_recovered
from results.summary.findings import Advice, ModelInputs, advice, mean, model_inputs, number, table_or_empty, the_run

CONFIDENCE = 0.95
DRAWS, SEED, PERCENTILES = 2000, 20_190, (2.5, 97.5)
LEAST_RATE = 1e-10  # that can be given: a failure in 300 years
MOST_FAILURES = 100.0  # in the time that a recovery and a checkpoint take: with more, utilization is 0
MOST_ROUNDS = 10  # until the best interval agrees with the failures as they count at it
LATENCY = (
    "detection + restart as measured, then the work since the last checkpoint at the service rate; its limits know how "
    "few recoveries were measured"
)
BURSTS = (
    "; hosts that died of one cause within a recovery and an interval count as one failure: {strikes} faults as {count}"
)
GIVEN_BURSTS = "; the given rate counts failures in the same way"


class _Words(NamedTuple):
    """How the models' texts name the failure rate, and what the limits come from."""

    inputs: str
    limits: str
    utilization: str


MEASURED = _Words(
    "the measured failure rate and checkpoint cost",
    "failure rate and checkpoint cost (Garwood, Student)",
    "; its limits are those of one run of the same window (simulated), whose failure rate is known no better than from "
    "the faults of this run",
)
GIVEN = _Words(
    "the given failure rate and the measured checkpoint cost",
    "the checkpoint cost (Student); the given failure rate has none",
    ", in the long run at the given failure rate",
)
MODELS = {
    "interval": "utilization paper, section 3.4: T* at {words.inputs}; its limits are T* at the limits of"
    " {words.limits}",
    "utilization": "utilization paper, eq. 10{words.utilization}",
    "recovery_latency": LATENCY,
}
MODELS_IN_PART = {
    "interval": "beyond the utilization paper: a failure took {share} of the time since the last checkpoint to make up "
    "for, as other hosts went on or the load left time to spare; T* of eq. 10 counts all of it{besides}. The limits "
    "are the best intervals at the limits of {words.limits}",
    "utilization": "beyond the utilization paper: eq. 10 with that share",
    "recovery_latency": LATENCY,
}
BESIDES = ". A failure also cost {besides} s, since batches are slow while hosts are away"
NEEDED = "a run in which faults lost work, checkpoints were taken and a recovery ended"
AT_LEAST = "; not below {shortest} s, the shortest interval that the engine can run"


class Measured(NamedTuple):
    """What a run measured, None if it did not; `latency_s` is the mean from a fault until the interrupted work was
    committed."""

    utilization: float | None
    latency_s: float | None


@dataclass(frozen=True)
class Recommendation:
    """What to change, and what to expect then; seconds.

    advice            the interval that was run and the one to run, with the expected utilization at both
    interval_s        95 % interval of the best interval; its upper end is inf if longer is never worse, as far as seen
    redone_share      seconds that it takes to do again what was done in a second; eq. 10 has 1
    utilization       95 % interval of what one run of the same window measures at the advised interval; None if the
                      run saw fewer than three checkpoints or recoveries, if the share is less than 1, or if the failure
                      rate is given
    latency           of a recovery at the advised interval: from the fault, or from the first one of a burst, until the
                      state is as far as it was; its limits are NaN if only one recovery was measured
    latency_now_s     the same at the interval that was run
    measured          what the run measured, which chance had a part in
    besides_s         what a failure costs besides R and its share of the work, in mode `task`: hosts are away meanwhile
    failures          what the failure rate counts at the advised interval: the faults that struck, of bursts all of one
                      together; at a given rate, as they count at the interval that was run
    shortest_s        interval that the engine can run: a best one that is shorter counts as this one
    measured_rate     these failures, per second of the run
    given_rate        failures per second at which all of this holds; None if it is at that of the run
    """

    run_id: str
    window_s: float
    advice: Advice
    interval_s: tuple[float, float]
    redone_share: float
    utilization: tuple[float, float] | None
    latency: Estimate
    latency_now_s: float
    measured: Measured
    besides_s: float
    failures: tuple[Failure, ...]
    shortest_s: float
    measured_rate: float
    given_rate: float | None = None

    @property
    def models(self) -> dict[str, str]:
        """The model behind each field of the document."""
        words = MEASURED if self.given_rate is None else GIVEN
        share = significant(self.redone_share)
        texts = MODELS if self.is_of_eq_10 else MODELS_IN_PART
        besides = BESIDES.format(besides=significant(self.besides_s)) if self.besides_s else ""
        models = {name: text.format(share=share, besides=besides, words=words) for name, text in texts.items()}
        strikes, count = sum(len(each.strikes) for each in self.failures), len(self.failures)
        bursts = BURSTS.format(strikes=strikes, count=count) if count < strikes else ""
        bursts += GIVEN_BURSTS if bursts and self.given_rate is not None else ""
        is_shortest = self.advice.optimal_interval_s == self.shortest_s
        at_least = AT_LEAST.format(shortest=significant(self.shortest_s)) if is_shortest else ""
        return models | {"interval": models["interval"] + bursts + at_least}

    @property
    def failure_rate(self) -> float:
        """At which all of this holds [1/s]."""
        return self.measured_rate if self.given_rate is None else self.given_rate

    @property
    def is_of_eq_10(self) -> bool:
        """Whether a failure costs R and all work since the last checkpoint, as the paper has it."""
        return self.redone_share == 1.0 and self.besides_s == 0

    def to_json(self) -> dict[str, Any]:
        """Its part of the document of `aftershock recommend --json`."""
        low, high = self.utilization or (None, None)
        return {
            "interval": self.advice.optimal_interval_s,
            "interval_low": self.interval_s[0],
            "interval_high": None if math.isinf(self.interval_s[1]) else self.interval_s[1],
            "failure_rate": self.failure_rate,
            "redone_share": self.redone_share,
            "utilization_measured": self.measured.utilization,
            "utilization_now": self.advice.expected,
            "utilization_then": self.advice.optimal_expected,
            "utilization_low": low,
            "utilization_high": high,
            "recovery_latency_measured": self.measured.latency_s,
            "recovery_latency": self.latency.value,
            "recovery_latency_low": number(self.latency.low),
            "recovery_latency_high": number(self.latency.high),
        }


@dataclass(frozen=True)
class _Counted:
    """The strikes of a run as they count at one checkpoint interval.

    struck      the failures: the longer the interval, the more strikes of one cause take back the same work
    inputs      of the model, at the rate of failures and with recoveries from their first strike on
    share       seconds that it takes to do again what was done in a second
    besides_s   what a failure costs besides
    shortest_s  interval that the engine can run
    """

    struck: tuple[Failure, ...]
    inputs: ModelInputs
    share: float
    besides_s: float
    shortest_s: float

    @classmethod
    def at(cls, interval_s: float, process: MeasuredProcess, measured: ModelInputs, each_s: float) -> _Counted:
        """At an interval; `measured` are inputs at the rate of strikes, each of which costs `each_s` besides."""
        period_s = float(system_period(interval_s, measured.hop_delay_s, measured.depth))
        struck = tuple(failures(process.strikes, measured.recovery_time_s + period_s))
        rate = measured.failure_rate * len(struck) / len(process.strikes)
        recovery_s = measured.recovery_time_s + mean_reach_s(struck)
        inputs = replace(measured, failure_rate=rate, recovery_time_s=recovery_s)
        besides_s = each_s * len(process.strikes) / len(struck)
        shortest_s = process.experiment.engine.shortest_interval_s
        return cls(struck, inputs, _redone_share(process, struck), besides_s, shortest_s)

    def at_rate(self, failure_rate: float) -> _Counted:
        """The same at a given rate of failures. Raises `BadInput` for one that has no meaning in practice."""
        found = self.inputs
        busy_s = self.recovery_s + found.checkpoint_cost_s + (found.depth - 1) * found.hop_delay_s
        most = MOST_FAILURES / busy_s
        allowed = f"{LEAST_RATE:g} to {significant(most)} for this run: with more failures, no work gets done"
        require("--failure-rate", failure_rate, LEAST_RATE <= failure_rate <= most, allowed)
        return replace(self, inputs=replace(found, failure_rate=failure_rate))

    @property
    def recovery_s(self) -> float:
        """The time that a failure costs however old the last checkpoint is [s]; the model counts it as R."""
        return self.inputs.recovery_time_s + self.besides_s

    @property
    def best_s(self) -> float:
        """The best interval that can be run: T* of eq. 10 if a failure takes all work since the last checkpoint."""
        return self.best_at(self.inputs.failure_rate, self.inputs.checkpoint_cost_s)

    def best_at(self, rate: float, cost_s: float) -> float:
        """The same at another failure rate and checkpoint cost; inf if failures or checkpoints have no bound."""
        if rate == 0 or math.isinf(cost_s):
            return math.inf
        if self.share == 1.0:
            return max(self.shortest_s, float(optimal_interval(rate, cost_s)))
        further = self.recovery_s, self.share, self.inputs.hop_delay_s, self.inputs.depth
        return max(self.shortest_s, float(partial_rollback.optimal_interval(rate, cost_s, *further)))

    def utilization(self, interval_s: float) -> float:
        """Utilization to expect at another interval [s]."""
        found = self.inputs
        if self.share == 1.0:
            return float(replace(found, recovery_time_s=self.recovery_s).at(interval_s))
        known = found.failure_rate, found.checkpoint_cost_s, self.recovery_s
        return float(partial_rollback.utilization(*known, interval_s, self.share, found.hop_delay_s, found.depth))


def recommend(run: Run, failure_rate: float | None = None) -> Recommendation:
    """What a finished run advises, at its own failure rate or at a given one [1/s].

    A given rate counts failures of the whole cluster, a burst as one. What a failure costs is as measured: the mean
    recovery, from the first strike of a burst on, and the share of the work that has to be done again. What is one
    burst follows from the interval that was run: the advised one may be longer than the time from one burst to the next
    in a run that had many.

    Raises `BadInput` for a run that saw no fault lose work, or no recovery end; it then says the same of the prediction
    as the run's summary. Also for a given rate that is not above 0 and finite, or at which no work gets done.
    """
    if failure_rate is not None:
        require_rate("--failure-rate", failure_rate)
    measured, facts = model_inputs(run), the_run(run)
    if measured is None or advice(run) is None or facts is None:
        raise BadInput("run_id", run.run_id, _needed(run))
    experiment = spec.validate(run.experiment())
    process = MeasuredProcess(run, as_it_recovered(experiment, facts))
    if not process.recoveries_s:
        raise BadInput("run_id", run.run_id, "a run that saw the end of a recovery from a single fault")
    each_s = _besides_s(process, measured)
    now = _Counted.at(measured.interval_s, process, measured, each_s)
    then = _at_the_best(now, process, measured, each_s) if failure_rate is None else now
    measured_rate = then.inputs.failure_rate
    if failure_rate is not None:
        now = then = then.at_rate(failure_rate)
    best_s = then.best_s
    return Recommendation(
        run.run_id,
        process.window_s,
        Advice(measured.interval_s, now.utilization(measured.interval_s), best_s, then.utilization(best_s)),
        _interval_limits(process, then, failure_rate),
        then.share,
        _one_run(process, then, best_s) if then.share == 1.0 and failure_rate is None else None,
        _latency(process, then, best_s),
        _latency(process, now, measured.interval_s).value,
        Measured(number(facts["utilization"]), _measured_latency_s(run)),
        then.besides_s,
        then.struck,
        then.shortest_s,
        measured_rate,
        failure_rate,
    )


def _needed(run: Run) -> str:
    """What a run without advice lacks, in the words of its summary if that says why nothing is predicted."""
    why = why_not_predicted(run)
    return NEEDED if why is None else f"a run whose utilization is predicted; the summary of this one says: {why}"


def _at_the_best(now: _Counted, process: MeasuredProcess, measured: ModelInputs, each_s: float) -> _Counted:
    """The strikes as they count at the interval that is best if they count so.

    If fewer failures make the best interval longer, strikes that are further apart are one failure, and so on: mostly,
    one round tells. If rounds go on to differ, the last one counts.
    """
    found = now
    for _ in range(MOST_ROUNDS):
        again = _Counted.at(found.best_s, process, measured, each_s)
        if again.struck == found.struck:
            break
        found = again
    return found


def _interval_limits(process: MeasuredProcess, then: _Counted, given_rate: float | None) -> tuple[float, float]:
    """Between which the best interval lies: at the limits of failure rate and checkpoint cost.

    A given rate has no limits.
    """
    confidence = CONFIDENCE if given_rate is None else CONFIDENCE**2  # each of the two estimates has the root of it
    estimator = IntervalEstimator(prior_failure_rate=process.struck_rate, confidence=confidence)
    for cost_s in process.costs_s:
        estimator = estimator.observe_checkpoint(cost_s)
    estimator = estimator.observe_time(process.window_s, len(then.struck))
    cost, rate = estimator.checkpoint_cost(), estimator.failure_rate()  # the prior has no part in the limits
    low, high = (rate.low, rate.high) if given_rate is None else (given_rate, given_rate)
    return then.best_at(high, cost.low), then.best_at(low, cost.high)


def _one_run(process: MeasuredProcess, then: _Counted, interval_s: float) -> tuple[float, float] | None:
    besides_s = mean_reach_s(then.struck) + then.besides_s
    found = predict_run(
        window_s=process.window_s,
        interval_s=interval_s,
        checkpoint_costs_s=process.costs_s,
        recovery_times_s=[each + besides_s for each in process.recoveries_s],
        hop_delay_s=then.inputs.hop_delay_s,
        depth=then.inputs.depth,
        failures=None,
        failure_rate=then.inputs.failure_rate,
        failures_seen=len(then.struck),
        seed=SEED,
    )
    return None if found.low is None or found.high is None else (found.low, found.high)


def _redone_share(process: MeasuredProcess, struck: Sequence[Failure]) -> float:
    """Seconds that it takes to do again what was done in a second: no more than one, since the state was reached once.

    It is less where the load leaves time to spare, and where a failure takes a part of the work only.
    """
    shares = [min(1.0, sum(process.lost_share(strike) for strike in each.strikes)) for each in struck]
    return max(SMALLEST_SHARE, _busy_share(process) * float(np.mean(shares)))


def _besides_s(process: MeasuredProcess, measured: ModelInputs) -> float:
    """What the mean strike cost besides R and its share of the work since the last checkpoint [s].

    In mode `task` batches are slow until the hosts are back that a failure took, however old the last checkpoint was.
    The model has no such cost, so that it counts as recovery time. It is what was lost above what the share explains.
    """
    if all(process.stops_all(strike) for strike in process.strikes):
        return 0.0
    counted = _Counted.at(measured.interval_s, process, measured, 0.0)
    lost_s = sum(outage.lost_s for outage in process.ledger.outages)
    found = counted.inputs
    redone_s = counted.share * mean_lost_time(found.failure_rate, found.interval_s, found.hop_delay_s, found.depth)
    return max(0.0, lost_s - float(redone_s) * len(counted.struck)) / len(process.strikes)


def _measured_latency_s(run: Run) -> float | None:
    recoveries = table_or_empty(run, "recoveries")
    return mean((recoveries["restored_ns"] - recoveries["death_ns"]).astype(float) / 1e9)


def _busy_share(process: MeasuredProcess) -> float:
    """How much of its time the query needs to process what comes.

    On the testbed a saturating load is above what partitions process with checkpoints. The service rate, which is
    without them, may be higher still.
    """
    saturates = process.experiment.load.mode is LoadMode.SATURATING and not process.works_in_batches
    rates = number(process.load_rate), number(process.service_rate)
    return 1.0 if saturates or rates[0] is None or not rates[1] else min(1.0, rates[0] / rates[1])


def _latency(process: MeasuredProcess, counted: _Counted, interval_s: float) -> Estimate:
    """The latency of single recoveries: the mean, and the range in which 95 % of them are.

    A failure strikes an exponential time after the system is up. It undoes what came after the last checkpoint that
    was complete by then, as `mean_lost_time` has it.
    """
    found, rate, share = counted.inputs, counted.inputs.failure_rate, counted.share
    travel_s = (found.depth - 1) * found.hop_delay_s
    rng = np.random.default_rng(SEED)
    up_s = rng.exponential(1.0 / rate, DRAWS)
    ages_s = np.where(up_s < travel_s, up_s, travel_s + (up_s - travel_s) % interval_s)
    reaches_s = rng.choice([each.reach_s for each in counted.struck], DRAWS)
    drawn_s = draw_next(rng, process.recoveries_s, DRAWS) + reaches_s + share * ages_s
    lost_s = float(mean_lost_time(rate, interval_s, found.hop_delay_s, found.depth))
    low, high = np.percentile(drawn_s, PERCENTILES)
    return Estimate(found.recovery_time_s + share * lost_s, float(low), float(high))
