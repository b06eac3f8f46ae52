"""How many runs would decide a claim about a ratio, if further runs scatter as the present ones do."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy import stats

CONFIDENCE = 0.95
MOST = 1000  # more are as good as undecidable


class Scatter(NamedTuple):
    """What the limits of a ratio come from.

    error     standard error of its logarithm
    count     runs on each side of the ratio; or pairs of runs, of which each gives a ratio
    in_pairs  which of the two it is
    sides     degrees of freedom for each run but one of a side: 2 if both sides scatter alike, 1 if only one does
    """

    error: float
    count: int
    in_pairs: bool
    sides: float = 2.0

    def half_width(self, count: int, among: int = 1) -> float:
        """Half of the interval of the logarithm, with `count` runs or pairs.

        At 95 % confidence all of `among` such intervals hold what they are of (Bonferroni).
        """
        degrees = (count - 1) * (1.0 if self.in_pairs else self.sides)
        level = 1 - (1 - CONFIDENCE) / (2 * among)
        return float(stats.t.ppf(level, degrees)) * self.error * math.sqrt(self.count / count)

    def needed(self, distance: float, among: int = 1) -> int | None:
        """The least number of runs or pairs whose interval is narrower than this; None if it is above `MOST`.

        `distance` is that of the ratio's logarithm from that of the limit. Below the limit (a negative distance) the
        interval is that of one of `among`.
        """
        others = among if distance < 0 else 1
        counts = range(self.count + 1, MOST + 1)
        return next((count for count in counts if self.half_width(count, others) < abs(distance)), None)


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
    return f"{told} {kind} instead of {hardest.count} would tell, if they scatter as these do"
