"""The search for the highest rate that is sustained: doubling or halving until it is bracketed, then bisection.

A value that says which rate is next; the caller, who runs the probes, passes it the outcome of each.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from math import sqrt

from models.sustainable.lag import ProbeOutcome

MOST_VOIDS = 2  # at one rate, one after the other: then it is no hiccup that nothing is seen of the query


class End(StrEnum):
    """Why a search is over."""

    CLOSED = "closed"  # the bracket is as narrow as it should be
    PROBES = "probes"  # as many rates were tried as may be
    GENERATOR = "generator"  # the next rate is more than the generator delivers
    COMMITS = "commits"  # at the next rate the query commits too seldom to be judged


@dataclass(frozen=True)
class Search:
    """What is known so far.

    first         the rate to begin with [records/s]
    precision     the bracket is closed when `high` exceeds `low` by no more than this share
    most          how many probes there may be, those included that told nothing
    low, high     the highest rate that was sustained and the lowest that was not, the first always below the second
    voids, untold how many probes at `rate` have told nothing, and what came of the last of them
    """

    first: float
    precision: float
    most: int
    low: float | None = None
    high: float | None = None
    probes: int = 0
    voids: int = 0
    untold: ProbeOutcome | None = None

    @property
    def rate(self) -> float:
        """The rate of the next probe."""
        if self.low is None:
            return self.first if self.high is None else self.high / 2
        return 2 * self.low if self.high is None else sqrt(self.low * self.high)

    @property
    def end(self) -> End | None:
        """Why there is no next probe; None as long as there is one."""
        if self.low is not None and self.high is not None and self.high <= self.low * (1 + self.precision):
            return End.CLOSED
        if self.voids >= MOST_VOIDS:
            return End.COMMITS if self.untold is ProbeOutcome.UNSEEN else End.GENERATOR
        return End.PROBES if self.probes >= self.most else None

    def after(self, outcome: ProbeOutcome) -> Search:
        """The search once the probe at `rate` came to that."""
        told = replace(self, probes=self.probes + 1, voids=0)
        match outcome:
            case ProbeOutcome.SUSTAINED:
                return replace(told, low=self.rate)
            case ProbeOutcome.NOT_SUSTAINED:
                return replace(told, high=self.rate)
            case ProbeOutcome.VOID | ProbeOutcome.UNSEEN:
                return replace(told, voids=self.voids + 1, untold=outcome)
