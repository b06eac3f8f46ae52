"""An online estimate of the optimal checkpoint interval: the future work that section 6 of `utilization` proposes.

What a running system shows one by one, checkpoint costs and failures over time, becomes T* with an interval. Evidence
fades exponentially with its age, so that the estimate follows a cost or a failure rate that changes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

from scipy import special

from experiments.errors import BadInput
from models.inputs import require, require_count, require_rate, require_time
from models.uncertainty import PRIOR_FAILURES
from models.utilization import optimal_interval


class Estimate(NamedTuple):
    """A quantity with the interval that holds it."""

    value: float
    low: float
    high: float


class IntervalRecommendation(NamedTuple):
    """The checkpoint interval to run at, and the interval that holds the optimal one [s]; `high_s` may be inf."""

    interval_s: float
    low_s: float
    high_s: float


@dataclass(frozen=True)
class _Costs:
    """Checkpoint costs [s], each with the weight that is left of it when the latest one has weight 1."""

    weight: float = 0.0
    squared_weight: float = 0.0
    mean_s: float = 0.0
    scatter: float = 0.0  # weighted sum of squared distances from the mean

    def with_cost(self, cost_s: float, kept: float) -> _Costs:
        """After one more checkpoint, since whose predecessor a share `kept` of the weight is left (West, 1979)."""
        weight = self.weight * kept + 1.0
        distance = cost_s - self.mean_s
        mean_s = self.mean_s + distance / weight
        scatter = self.scatter * kept + distance * (cost_s - mean_s)
        return _Costs(weight, self.squared_weight * kept**2 + 1.0, mean_s, scatter)

    def estimate(self, confidence: float) -> Estimate:
        """Mean cost with Student's interval at the effective number of costs, (sum of weights)^2 / sum of squares."""
        freedom = self.weight**2 / self.squared_weight - 1.0
        if freedom < 1.0:  # fewer than two checkpoints' worth: their scatter is not known
            return Estimate(self.mean_s, 0.0, math.inf)
        variance = self.scatter / (self.weight - self.squared_weight / self.weight)
        error = math.sqrt(variance / (freedom + 1.0))
        reach = float(special.stdtrit(freedom, (1.0 + confidence) / 2.0)) * error
        return Estimate(self.mean_s, max(0.0, self.mean_s - reach), self.mean_s + reach)


@dataclass(frozen=True)
class IntervalEstimator:
    """What is known of the failure rate and of the checkpoint cost; observations return a new one.

    prior_failure_rate  the rate that is expected before anything is seen [1/s]; it weighs half a failure
    memory_s            evidence of age a weighs exp(-a / memory_s); inf never forgets. The rate then scatters by about
                        1 / sqrt(2 L memory_s) of itself, which costs about sqrt(2 c L) / (16 L memory_s) of utilization
    confidence          of the interval of `recommend`; the two estimates that it is made of have its square root each

    The other fields are the evidence so far; they are not meant to be given. Raises `BadInput` for a rate not above 0,
    a memory not above 0 and a confidence outside 0 to 1.
    """

    prior_failure_rate: float
    memory_s: float = math.inf
    confidence: float = 0.95
    exposure_s: float = 0.0  # seconds observed, by weight
    failures: float = 0.0  # failures observed, by weight
    failures_squared: float = 0.0  # the sum of their squared weights
    since_checkpoint_s: float = 0.0
    costs: _Costs = _Costs()

    def __post_init__(self) -> None:
        require_rate("prior_failure_rate", self.prior_failure_rate)
        if not self.memory_s > 0:
            raise BadInput("memory_s", self.memory_s, "a time above 0; inf never forgets")
        require("confidence", self.confidence, 0 < self.confidence < 1, "a probability between 0 and 1")

    def observe_checkpoint(self, cost_s: float) -> IntervalEstimator:
        """A checkpoint completed now and cost `cost_s` seconds, a finite time of 0 or more."""
        require_time("cost_s", cost_s)
        costs = self.costs.with_cost(cost_s, math.exp(-self.since_checkpoint_s / self.memory_s))
        return replace(self, costs=costs, since_checkpoint_s=0.0)

    def observe_time(self, seconds: float, failures: int = 0) -> IntervalEstimator:
        """`seconds` passed, recoveries included, and at their end `failures` struck.

        Where failures are only counted now and then, so that they struck up to `seconds` before, the rate comes out
        too high by a share of seconds / memory_s at most.
        """
        require_time("seconds", seconds)
        require_count("failures", failures, 0)
        age = seconds / self.memory_s
        kept = math.exp(-age)
        passed_s = seconds if math.isinf(self.memory_s) else -math.expm1(-age) * self.memory_s
        return replace(
            self,
            exposure_s=self.exposure_s * kept + passed_s,
            failures=self.failures * kept + failures,
            failures_squared=self.failures_squared * kept**2 + failures,
            since_checkpoint_s=self.since_checkpoint_s + seconds,
        )

    def failure_rate(self) -> Estimate:
        """The failure rate [1/s]: its posterior mean, and an interval that the prior has no part in.

        The interval is the exact one of a Poisson count (Garwood, 1936) as long as nothing fades, and for faded counts
        Fay and Feuer's (1997), which is the same for equal weights; both err on the wide side. It is 0 to inf
        before any time has passed. A prior that the interval excludes gives way: the mean is moved to its edge.
        """
        low, high = self._rate_bounds((1.0 - math.sqrt(self.confidence)) / 2.0)
        prior_exposure_s = PRIOR_FAILURES / self.prior_failure_rate
        mean = (self.failures + PRIOR_FAILURES) / (self.exposure_s + prior_exposure_s)
        return Estimate(min(max(mean, low), high), low, high)

    def checkpoint_cost(self) -> Estimate:
        """The mean checkpoint cost [s] with Student's interval; it is 0 to inf for fewer than two checkpoints.

        Raises `BadInput` before the first checkpoint.
        """
        if not self.costs.weight:
            raise BadInput("checkpoints", 0, "one observed checkpoint or more")
        return self.costs.estimate(math.sqrt(self.confidence))

    def recommend(self) -> IntervalRecommendation:
        """T* at the estimates, and the interval that holds T* of the true rate and mean cost with `confidence`.

        To first order utilization is 1 - c / T - L T / 2, linear in c and in L: T* at their posterior means is thus
        the interval of the highest expected utilization. T* grows with c and falls with L, so the ends follow from
        theirs, and hold it more often than `confidence` says, as both would have to err the same way. Without failures
        so far `high_s` is inf. Raises `BadInput` before the first checkpoint.
        """
        rate, cost = self.failure_rate(), self.checkpoint_cost()
        return IntervalRecommendation(
            _optimal_interval_s(rate.value, cost.value),
            _optimal_interval_s(rate.high, cost.low),
            _optimal_interval_s(rate.low, cost.high),
        )

    def _rate_bounds(self, tail: float) -> tuple[float, float]:
        """Fay and Feuer's bounds; the greatest weight that one more failure could have is 1."""
        if not self.exposure_s:
            return 0.0, math.inf
        count, squared = self.failures, self.failures_squared
        low = squared / count * special.gammaincinv(count * (count / squared), tail) if squared else 0.0
        above, squared_above = count + 1.0, squared + 1.0
        high = squared_above / above * special.gammainccinv(above**2 / squared_above, tail)
        return float(low) / self.exposure_s, float(high) / self.exposure_s


def _optimal_interval_s(failure_rate: float, cost_s: float) -> float:
    """T* with its limits: inf without failures or at an unbounded cost, c at an unbounded rate."""
    if failure_rate == 0 or math.isinf(cost_s):
        return math.inf
    return cost_s if math.isinf(failure_rate) else float(optimal_interval(failure_rate, cost_s))
