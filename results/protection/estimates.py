"""A mean with a bootstrap interval that also works for few values.

A plain percentile interval of few values is too narrow. So the distances of the drawn means from the mean of the sample
are stretched, until their interval is as wide as Student's for values that are normally distributed (Hesterberg, What
Teachers Should Know About the Bootstrap, 2015, section 4.3).
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special  # not scipy.stats: the pages import this, and stats takes most of a second

Floats = npt.NDArray[np.float64]
DRAWS, SEED, LEVEL = 4000, 20_261_123, 0.95
PERCENTILES = (100 * (1 - LEVEL) / 2, 100 * (1 + LEVEL) / 2)
FEWEST = 3  # values, below which no interval is given: two differ by chance by anything


@dataclass(frozen=True, eq=False)
class Estimate:
    """A mean of values that cannot be negative, with draws of it; without draws where the values are too few."""

    value: float
    count: int
    draws: Floats | None

    @property
    def limits(self) -> tuple[float, float] | None:
        """The interval that holds the true mean with 95 %; None of too few values."""
        if self.draws is None:
            return None
        low, high = np.percentile(self.draws, PERCENTILES)
        return float(low), float(high)

    def to_json(self) -> dict[str, float | int | None]:
        """`{value, low, high, count}`."""
        low, high = self.limits or (None, None)
        return {"value": self.value, "low": low, "high": high, "count": self.count}


def mean(values: Sequence[float], of: str, *, most: float = math.inf) -> Estimate | None:
    """The mean of values, of which none can be above `most`; None of none.

    What it is `of` seeds its draws, so that those of two means are independent.
    """
    if not values:
        return None
    sample, count = np.asarray(values, dtype=float), len(values)
    centre = float(sample.mean())
    if count < FEWEST:
        return Estimate(centre, count, None)
    drawn = sample[_generator(of).integers(0, count, (DRAWS, count))].mean(axis=1)
    return Estimate(centre, count, np.clip(centre + _stretch(count) * (drawn - centre), 0.0, most))


def with_shared(own: Estimate | None, shared: Sequence[tuple[float, int]], of: str) -> Estimate | None:
    """A mean of values to each of which comes its part of a sum that several of them share.

    `shared` has these sums, each with the number of the values that share it. However many they are, such a sum is one
    value: it is the sums that count as independent, and where any is above 0 it takes `FEWEST` of them for an interval.
    """
    if own is None or not any(total for total, _ in shared):
        return own
    totals, sharers = (np.array(each, dtype=float) for each in zip(*shared, strict=True))
    count, centre = len(totals), float(totals.sum() / sharers.sum())
    if own.draws is None or count < FEWEST:
        return Estimate(own.value + centre, min(own.count, count), None)
    chosen = _generator(of).integers(0, count, (DRAWS, count))
    drawn = totals[chosen].sum(axis=1) / sharers[chosen].sum(axis=1)
    draws = own.draws + centre + _stretch(count) * (drawn - centre)
    return Estimate(own.value + centre, own.count, np.maximum(draws, 0.0))


def _generator(of: str) -> np.random.Generator:
    return np.random.default_rng([SEED, zlib.crc32(of.encode())])


def _stretch(count: int) -> float:
    """How much wider Student's interval of a mean is than the one that the plain bootstrap gives."""
    upper = (1 + LEVEL) / 2
    return float(np.sqrt(count / (count - 1)) * special.stdtrit(count - 1, upper) / special.ndtri(upper))
