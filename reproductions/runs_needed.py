"""How many runs would decide a claim about a ratio, if further runs scatter as the present ones do."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

CONFIDENCE = 0.95
MOST = 1000  # more are as good as undecidable


def half_of_mean(std: pd.Series, count: pd.Series) -> pd.Series:
    """Half of the interval in which means of so many values lie at 95 % confidence, by Student's t; nan of one value.

    `std` is the standard deviation of the values, elementwise.
    """
    half: pd.Series = std / np.sqrt(count) * stats.t.ppf((1 + CONFIDENCE) / 2, count - 1)
    return half


class Side(NamedTuple):
    """The runs of a side of a ratio, or the pairs of runs of which each gives a ratio.

    error  standard error of the logarithm of their mean
    runs   how many they are
    """

    error: float
    runs: int


class Scatter(NamedTuple):
    """What the limits of a ratio come from: both of its sides, or the pairs alone."""

    sides: tuple[Side, ...]

    @property
    def in_pairs(self) -> bool:
        """Whether pairs of runs give the ratio."""
        return len(self.sides) == 1

    @property
    def error(self) -> float:
        """Standard error of the ratio's logarithm."""
        return math.hypot(*(side.error for side in self.sides))

    @property
    def fewest(self) -> int:
        """Runs of the side that has fewer; or the pairs."""
        return min(side.runs for side in self.sides)

    @property
    def degrees(self) -> float:
        """Welch's degrees of freedom (1947), from those of the side with fewer runs up to those of both.

        With equally many runs n on both sides they are n - 1 to 2 (n - 1). A single run tells nothing of how much its
        side scatters: with one, and without any error, they are those of all runs.
        """
        if self.fewest == 1 or not self.error:
            return float(sum(side.runs - 1 for side in self.sides))
        shares = [(side.error / self.error) ** 2 for side in self.sides]
        return 1 / sum(share**2 / (side.runs - 1) for share, side in zip(shares, self.sides, strict=True))

    def half_width(self, among: int = 1) -> float:
        """Half of the interval of the logarithm, by Student's t.

        At 95 % confidence all of `among` such intervals hold what they are of (Bonferroni).
        """
        level, degrees = 1 - (1 - CONFIDENCE) / (2 * among), self.degrees
        return float(stats.t.ppf(level, degrees) if degrees else stats.norm.ppf(level)) * self.error

    def with_runs(self, count: int) -> Scatter:
        """What it would be with `count` runs on each side, or pairs: those of one side have the same variance each."""
        sides = (Side(side.error * math.sqrt(side.runs / count), count) for side in self.sides)
        return Scatter(tuple(sides))

    def needed(self, distance: float, among: int = 1) -> int | None:
        """The least number of runs of each side, or pairs, whose interval is narrower than this; None if it is above
        `MOST`.

        `distance` is that of the ratio's logarithm from that of the limit. Below the limit (a negative distance) the
        interval is that of one of `among`.
        """
        others = among if distance < 0 else 1
        counts = range(self.fewest + 1, MOST + 1)
        return next((count for count in counts if self.with_runs(count).half_width(others) < abs(distance)), None)


def would_decide(scatters: list[tuple[Scatter | None, float]], among: int = 1) -> str:
    """In words, how many runs decide all of these claims: of each its scatter, and its distance from the limit.

    They are some of `among` claims, of which one that is refuted for certain decides.
    """
    known = [(scatter, distance) for scatter, distance in scatters if scatter and np.isfinite(scatter.error)]
    if len(known) < len(scatters):
        return "more runs would tell; how many cannot be known from these"
    needed = [(scatter, scatter.needed(distance, among)) for scatter, distance in known]
    hardest, count = max(needed, key=lambda each: each[1] or MOST + 1)
    kind = "pairs of runs" if hardest.in_pairs else "runs of each"
    told = f"more than {MOST}" if count is None else f"about {count}"
    return f"{told} {kind} instead of {hardest.fewest} would tell, if they scatter as these do"
