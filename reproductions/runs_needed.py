"""How many runs would decide a claim about a ratio, if further runs scatter as the present ones do."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

CONFIDENCE = 0.95
MOST = 1000  # more are as good as undecidable
BARS = f"bars: {100 * CONFIDENCE:g} % confidence interval of the mean"  # `half_of_mean` to both sides


def half_of_mean(std: pd.Series, count: pd.Series) -> pd.Series:
    """Half of the interval in which means of so many values lie at 95 % confidence, by Student's t; nan of one value.

    `std` is the standard deviation of the values, elementwise.
    """
    half: pd.Series = std / np.sqrt(count) * stats.t.ppf((1 + CONFIDENCE) / 2, count - 1)
    return half


class Scatter(NamedTuple):
    """What the limits of a mean ratio come from: how the ratios of pairs of runs differ.

    error  standard error of the mean of their logarithms
    pairs  how many they are, two or more
    """

    error: float
    pairs: int

    def half_width(self, among: int = 1) -> float:
        """Half of the interval of the logarithm, by Student's t.

        At 95 % confidence all of `among` such intervals hold what they are of (Bonferroni).
        """
        return float(stats.t.ppf(1 - (1 - CONFIDENCE) / (2 * among), self.pairs - 1)) * self.error

    def with_pairs(self, count: int) -> Scatter:
        """What it would be with so many pairs that have the same variance."""
        return Scatter(self.error * math.sqrt(self.pairs / count), count)

    def needed(self, distance: float, among: int = 1) -> int | None:
        """The least number of pairs whose interval is narrower than this; None if it is above `MOST`.

        `distance` is that of the ratio's logarithm from that of the limit. Below the limit (a negative distance) the
        interval is that of one of `among`.
        """
        others = among if distance < 0 else 1
        counts = range(self.pairs + 1, MOST + 1)
        return next((count for count in counts if self.with_pairs(count).half_width(others) < abs(distance)), None)


def would_decide(scatters: list[tuple[Scatter | None, float]], among: int = 1) -> str:
    """In words, how many pairs decide about these claims: of each its scatter, and its distance from the limit.

    They are the undecided ones of `among` claims. If some are below their limit, the first of these that is refuted for
    certain decides. Otherwise all have to be confirmed.
    """
    below = [(scatter, distance) for scatter, distance in scatters if distance < 0]
    asked = below or scatters
    known = [(scatter, distance) for scatter, distance in asked if scatter and np.isfinite(scatter.error)]
    if len(known) < len(asked):
        return "more runs would tell; how many cannot be known from these"
    needed = [(scatter, scatter.needed(distance, among)) for scatter, distance in known]
    needed.sort(key=lambda each: each[1] or MOST + 1)
    decisive, count = needed[0] if below else needed[-1]
    told = f"more than {MOST}" if count is None else f"about {count}"
    return f"{told} pairs of runs instead of {decisive.pairs} would tell, if they scatter as these do"
