"""The search for the highest rate that is sustained, which begins near a measured service rate.

The search tries a rate a little below the one that is likely, and then one a little above it. If the first is sustained
and the second is not, they are the bracket. If the measurement was wrong, ever longer steps find a bracket, and
bisection narrows it. A probe that fails measures the service rate again, and the search goes on near that.

A value that says which rate is next; the caller, who runs the probes, passes it the outcome of each.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from math import log, sqrt

from models.sustainable.lag import MOST_GROWTH, ProbeOutcome

MOST_VOIDS = 2  # at one rate, one after the other: then it is no hiccup that nothing is seen of the query
NARROWER = 0.9  # of the precision: so far apart are the two rates, which leaves room for rounding


class End(StrEnum):
    """Why a search is over."""

    CLOSED = "closed"  # the bracket is as narrow as it should be
    PROBES = "probes"  # as many rates were tried as may be
    GENERATOR = "generator"  # the next rate is more than the generator delivers
    COMMITS = "commits"  # at the next rate there were too few samples of lag to judge the query by


@dataclass(frozen=True)
class Search:
    """What is known so far; `Search.near` begins one.

    aim           the rate to try next [records/s]; 0 if no service rate was measured at the last rate that failed
    precision     the bracket is closed when `high` exceeds `low` by no more than this share
    most          how many probes there may be, those included that told nothing
    low, high     the highest rate that was sustained and the lowest that was not, the first always below the second
    successes     how many rates have been sustained since one failed
    failures      how many rates have failed, or were not delivered, since one was sustained
    voids, untold how many probes at `rate` have told nothing, and what came of the last of them
    """

    aim: float
    precision: float
    most: int
    low: float | None = None
    high: float | None = None
    probes: int = 0
    successes: int = 0
    failures: int = 0
    voids: int = 0
    untold: ProbeOutcome | None = None

    @classmethod
    def near(cls, service_rate: float, precision: float, most: int) -> Search:
        """A search that begins near a service rate [records/s], which is above 0."""
        return cls(_likely(service_rate) / sqrt(_step(precision)), precision, most)

    @property
    def rate(self) -> float:
        """The rate of the next probe."""
        low = self.low or 0.0
        if self.aim > low:
            return self.aim
        if self.aim * _step(self.precision) > low:
            return low * _step(self.precision)  # the aim was sustained: this closes the bracket if it fails
        if self.high is None:
            return low * _leap(_step(self.precision), self.successes - 1)
        return sqrt(low * self.high) if low else self.high / 2

    @property
    def end(self) -> End | None:
        """Why there is no next probe; None as long as there is one."""
        if self.low is not None and self.high is not None and self.high <= self.low * (1 + self.precision):
            return End.CLOSED
        if self.voids >= MOST_VOIDS:
            return End.COMMITS if self.untold is ProbeOutcome.UNSEEN else End.GENERATOR
        return End.PROBES if self.probes >= self.most else None

    def after(self, outcome: ProbeOutcome, service_rate: float | None = None) -> Search:
        """The search once the probe at `rate` came to that.

        service_rate  how many records/s the query read meanwhile; None if that is not known. It counts if the probe
                      failed: only then did the query always have something left to read. It also counts if the
                      generator did not deliver even the lowest rate: then it is about what the generator delivers
        """
        told = replace(self, probes=self.probes + 1, voids=0)
        match outcome:
            case ProbeOutcome.SUSTAINED:
                return replace(told, low=self.rate, successes=self.successes + 1, failures=0)
            case ProbeOutcome.NOT_SUSTAINED:
                aim = self._below(service_rate) if service_rate else 0.0
                return replace(told, high=self.rate, successes=0, failures=self.failures + 1, aim=aim)
            case ProbeOutcome.VOID if self.low is None and self.voids + 1 >= MOST_VOIDS:
                return replace(told, failures=self.failures + 1, aim=self._below(service_rate or self.rate))
            case ProbeOutcome.VOID | ProbeOutcome.UNSEEN:
                return replace(told, voids=self.voids + 1, untold=outcome)

    def _below(self, service_rate: float) -> float:
        """The next aim after the rate that has just failed.

        It is a step below that rate at least. A query that fails although it reads as fast as records come does not
        show how far down to go. So steps get longer with each further failure.
        """
        step = _step(self.precision)
        return min(_likely(service_rate) / sqrt(step), self.rate / _leap(step, self.failures))


def _step(precision: float) -> float:
    """The ratio of two rates that are a closed bracket."""
    return 1 + NARROWER * precision


def _leap(step: float, steps_before: int) -> float:
    """A step that is squared with each one before it in the same direction, up to a factor of two."""
    return float(step ** min(2.0**steps_before, log(2) / log(step)))


def _likely(service_rate: float) -> float:
    """The highest rate at which lag counts as bounded: there it grows by `MOST_GROWTH` of the rate."""
    return service_rate / (1 - MOST_GROWTH)
