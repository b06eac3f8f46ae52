"""The duration of a fault: a number of seconds, a uniform law, or a lognormal one."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Annotated, Any

from pydantic import Discriminator, Field, Tag, model_validator

from experiments.documents.parsing import Misfit, Spec
from experiments.wording import exact

LONGEST_DELAY_S = 1e9  # thirty years, for "never": moments are counted in nanoseconds of 64 bits
WIDEST_SIGMA, LONGEST_MEDIAN_S = 2.5, 5e5  # the longest delay of both is below `LONGEST_DELAY_S`
CAP_SIGMAS = 3.0  # one lognormal delay in 741 would be longer, without limit: it is cut to this many sigmas

Delay = Annotated[float, Field(ge=0, le=LONGEST_DELAY_S)]


class UniformDelay(Spec):
    """A uniform delay between two bounds [s]."""

    low: Annotated[Delay, Field(description="shortest delay [s]")]
    high: Annotated[Delay, Field(description="longest delay [s]")]

    @model_validator(mode="after")
    def _ordered(self) -> UniformDelay:
        if self.high < self.low:
            raise Misfit("high", self.high, f"a number of low, {exact(self.low)}, or more")
        return self

    @property
    def mean_s(self) -> float:
        """The middle of the two bounds [s]."""
        return (self.low + self.high) / 2.0

    @property
    def longest_s(self) -> float:
        """The upper bound [s]."""
        return self.high


class LognormalDelay(Spec):
    """A delay [s] whose logarithm is normal around that of the median; `sigma` is its standard deviation.

    What is longer than median x exp(3 sigma) is cut to that.
    """

    median: Annotated[float, Field(gt=0, le=LONGEST_MEDIAN_S, description="median of the delay [s]")]
    sigma: Annotated[float, Field(gt=0, le=WIDEST_SIGMA, description="standard deviation of the delay's logarithm")]

    @property
    def mean_s(self) -> float:
        """E min(X, cap): X's partial expectation below the cap, and the cap for the share of what lies above."""
        normal = NormalDist()
        below = self.median * math.exp(self.sigma**2 / 2.0) * normal.cdf(CAP_SIGMAS - self.sigma)
        return below + self.longest_s * normal.cdf(-CAP_SIGMAS)

    @property
    def longest_s(self) -> float:
        """The cap: median x exp(`CAP_SIGMAS` x sigma) [s]."""
        return self.median * math.exp(CAP_SIGMAS * self.sigma)


HealDelay = UniformDelay | LognormalDelay


def _form(value: Any) -> str:
    """Which form of a delay is meant, so that a mistake in it is told in the words of that form."""
    if isinstance(value, LognormalDelay) or (isinstance(value, dict) and not {"median", "sigma"}.isdisjoint(value)):
        return "<LognormalDelay>"
    return "<UniformDelay>" if isinstance(value, UniformDelay | dict) else "<number>"


HealAfter = Annotated[
    Annotated[Delay, Tag("<number>")]
    | Annotated[UniformDelay, Tag("<UniformDelay>")]
    | Annotated[LognormalDelay, Tag("<LognormalDelay>")],
    Discriminator(_form),
]


def set_delay(seconds: float) -> UniformDelay:
    """A delay that is always the same."""
    return UniformDelay(low=seconds, high=seconds)


def new_machine(time_scale: float) -> UniformDelay:
    """How long a cloud takes to start a new machine: 2 to 6 minutes, multiplied by `time_scale`."""
    return UniformDelay(low=120.0 * time_scale, high=360.0 * time_scale)
