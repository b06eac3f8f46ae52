"""The times between the ticks of a clock: exponential, Weibull and lognormal gaps of mean 1; delays until a return.

A clock has been ticking for ever when the window opens, so its rate holds from the first moment on: the window opens
at a uniform point of the gap that holds it, and that gap is of density x f(x), for a long gap holds more moments
(Cox, Renewal Theory, section 5). Exponential gaps have no memory: their first one is like any other.

All randomness is `random.Random.random()`, turned into a law by a fixed formula. Units: mean gaps;
delays are in seconds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random
from statistics import NormalDist
from typing import Protocol

from experiments.delays import HealDelay, LognormalDelay
from experiments.faults import FaultProcess, GapLaw

STANDARD_NORMAL = NormalDist()
LEAST_SHARE = 2.0**-54  # `random()` may be 0, where the normal law has no value


class Gaps(Protocol):
    """A law of independent gaps of mean 1."""

    def first(self, stream: Random) -> float:
        """From the opening of the window to the first tick."""

    def next(self, stream: Random) -> float:
        """From one tick to the next."""


@dataclass(frozen=True)
class Exponential(Gaps):
    """Inverse transform: -log(1 - u)."""

    def first(self, stream: Random) -> float:
        return self.next(stream)

    def next(self, stream: Random) -> float:
        return -math.log1p(-stream.random())


@dataclass(frozen=True)
class Weibull(Gaps):
    """Inverse transform: scale (-log(1 - u))^(1 / shape), with scale 1 / Gamma(1 + 1 / shape)."""

    shape: float

    @property
    def scale(self) -> float:
        """The scale at which the mean gap is 1."""
        return 1.0 / math.gamma(1.0 + 1.0 / self.shape)

    def first(self, stream: Random) -> float:
        """With x = scale y^(1/shape), the density x f(x) is y^(1/shape) exp(-y): a gamma law of y."""
        spanning = self.scale * math.pow(gamma(stream, 1.0 + 1.0 / self.shape), 1.0 / self.shape)
        return spanning * stream.random()

    def next(self, stream: Random) -> float:
        return self.scale * math.pow(-math.log1p(-stream.random()), 1.0 / self.shape)


@dataclass(frozen=True)
class Lognormal(Gaps):
    """The exponential of a normal number of mean -sigma^2 / 2, by the inverse of the normal law."""

    sigma: float

    def first(self, stream: Random) -> float:
        """The density x f(x) is lognormal again, its logarithm sigma^2 higher."""
        return self.next(stream) * math.exp(self.sigma**2) * stream.random()

    def next(self, stream: Random) -> float:
        return math.exp(self.sigma * normal(stream) - self.sigma**2 / 2.0)


def gaps(process: FaultProcess) -> Gaps:
    """The law of a process, whose shape its spec has checked."""
    if process.shape is None:
        return Exponential()
    return Weibull(process.shape) if process.law is GapLaw.WEIBULL else Lognormal(process.shape)


def delay_s(law: HealDelay, stream: Random) -> float:
    """A delay [s] until a struck host returns."""
    if isinstance(law, LognormalDelay):
        return min(law.median * math.exp(law.sigma * normal(stream)), law.longest_s)
    return law.low + (law.high - law.low) * stream.random()


def normal(stream: Random) -> float:
    """A standard normal number by inverse transform (Wichura's algorithm AS 241, which `statistics` has)."""
    return STANDARD_NORMAL.inv_cdf(stream.random() or LEAST_SHARE)


def gamma(stream: Random, order: float) -> float:
    """A number of the gamma law of an order of at least 1 (Marsaglia and Tsang 2000: rejection from a cubed normal)."""
    offset = order - 1.0 / 3.0
    while True:
        z, share = normal(stream), stream.random()
        cubed = (1.0 + z / math.sqrt(9.0 * offset)) ** 3
        if cubed > 0 and math.log1p(-share) < z * z / 2.0 + offset * (1.0 - cubed + math.log(cubed)):
            return offset * cubed
