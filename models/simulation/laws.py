"""When failures strike: laws of the times between failures, and of failures that come in correlated bursts.

A law has a shape; its scale is the failure rate that it is given, so that one rate compares all laws. The papers
simulate exponential gaps only (`utilization`, section 3.5). Times are in any one unit, rates per that unit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from models.inputs import require, require_count, require_time

Times = npt.NDArray[np.float64]

WARM_UP_SHOCKS = 40.0  # mean gaps; the probability of no shock in this time is exp(-40)
MOST_OVERLAPPING = 100.0  # bursts at a time; memory and the warm-up grow with them


class FailureLaw(Protocol):
    """A stationary random process of failures."""

    def failures(self, rng: np.random.Generator, failure_rate: float, runs: int, rows: int) -> Iterator[Times]:
        """Endless blocks of failure times of `runs` independent runs, each block (about `rows`, runs).

        Times ascend down each column and from block to block. The first of a column lies before time 0, and from
        time 0 on the process is in its steady state, with `failure_rate` failures per unit of time in the long run.
        """


@dataclass(frozen=True)
class ExponentialTimes:
    """Failures without memory, as the paper has them."""

    def failures(self, rng: np.random.Generator, failure_rate: float, runs: int, rows: int) -> Iterator[Times]:
        """See `FailureLaw`. Time 0 falls uniformly into the gap that holds it, which has the density x exp(-x)."""
        spanning = rng.standard_gamma(2.0, runs) / failure_rate
        last = -spanning * rng.random(runs)
        yield last[np.newaxis]
        last = last + spanning
        yield last[np.newaxis]
        while True:
            block = rng.standard_exponential((rows, runs))
            block /= failure_rate
            block[0] += last
            np.cumsum(block, axis=0, out=block)
            last = block[-1].copy()
            yield block


@dataclass(frozen=True)
class Correlated:
    """Marshall and Olkin's shocks: each strikes one host, or with probability `domain_share` a whole domain.

    domain_size  hosts of a domain, 1 or more
    spread       the hosts of a struck domain die at independent uniform times within this long of the shock, in
                 the unit of the other times; deaths at the same instant (spread 0) are one failure

    The hosts' clocks and the domains' clocks are exponential, so shocks are a Poisson process of the clocks' summed
    rate, and `domain_share` is the domains' part of that sum. Failures per shock: 1 without a spread, else
    1 + domain_share (domain_size - 1). Utilization is that of eq. 10 at the rate of shocks, with a recovery that is
    longer by the mean reach of a burst, domain_share spread (size - 1) / (size + 1), as long as R + (n - 1) delta + T
    is no shorter than the spread: no failure in a time x is a chance of exp(-rate (x + mean reach)) there.
    Raises `BadInput` for a share outside 0..1, a size below 1 or a negative spread.
    """

    domain_share: float
    domain_size: int
    spread: float = 0.0

    def __post_init__(self) -> None:
        require("domain_share", self.domain_share, 0 <= self.domain_share <= 1, "a number from 0 to 1")
        require_count("domain_size", self.domain_size)
        require_time("spread", self.spread)

    def shock_rate(self, failure_rate: float) -> float:
        """Shocks per unit of time that make `failure_rate` failures per unit of time."""
        return failure_rate / (1.0 + self.domain_share * (self.domain_size - 1)) if self.spread else failure_rate

    def failures(self, rng: np.random.Generator, failure_rate: float, runs: int, rows: int) -> Iterator[Times]:
        """See `FailureLaw`. Starts so long before 0 that nothing earlier matters, but for a chance of exp(-40).

        Raises `BadInput` for a spread of more than 100 mean times between shocks.
        """
        rate = self.shock_rate(failure_rate)
        most = f"at most {MOST_OVERLAPPING:g} times the mean time between shocks, {1.0 / rate:g}"
        require("spread", self.spread, self.spread * rate <= MOST_OVERLAPPING, most)
        shock = np.full(runs, -2.0 * self.spread - WARM_UP_SHOCKS / rate)
        last, pending = shock, np.empty((0, runs))
        yield last[np.newaxis]
        while True:
            shocks = shock + np.cumsum(rng.standard_exponential((max(1, rows // self._width), runs)) / rate, axis=0)
            times = np.sort(np.concatenate([pending, self._deaths(rng, shocks)]), axis=0)
            shock = shocks[-1]  # what strikes later than this may yet be preceded by a death of the next shocks
            block = np.maximum.accumulate(np.where(times <= shock, times, last), axis=0)
            waiting = np.where(times > shock, times, np.inf)
            last, pending = block[-1], waiting[np.isfinite(waiting).any(axis=1)]
            yield block

    @property
    def _width(self) -> int:
        """Deaths of one shock that can differ in time."""
        return self.domain_size if self.spread and self.domain_share else 1

    def _deaths(self, rng: np.random.Generator, shocks: Times) -> Times:
        """The times at which hosts die of each shock, (shocks x width, runs); a lone host's is repeated."""
        if self._width == 1:
            return shocks
        reach = np.where(rng.random(shocks.shape) < self.domain_share, self.spread, 0.0)
        offsets = rng.random((shocks.shape[0], self._width, shocks.shape[1])) * reach[:, np.newaxis]
        return (shocks[:, np.newaxis] + offsets).reshape(-1, shocks.shape[1])
