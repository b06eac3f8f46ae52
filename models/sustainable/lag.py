"""Whether a query keeps up at a rate: its lag over a window is bounded, which means low and not growing.

Lag is how many records are due and not yet read. Growth is fitted as the median slope over all pairs of samples (Theil
1950, Sen 1968), since a pause of the query or the machine spoils some samples: up to 29 % of them do not move it far.
Growth must also be no work of chance: Kendall's S (1938), the slopes above zero less those below, is beyond it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from math import ceil, sqrt
from statistics import median

FEWEST_SAMPLES = 5  # at different moments, for growth: four ascending samples occur by chance once in 24
FEWEST_OF_LEVEL = 3  # samples, at whatever moments, for a median that passes over one taken amid a batch
MOST_SAMPLES = 1000  # of more, as many at even distances stand for all: they have half a million pairs
DEVIATIONS = 2.0  # of S: one-sided 2 % level
MOST_GROWTH = 0.02  # of the rate: a query that falls behind by more does not keep up
MOST_INTERVALS, LEAST_LIMIT_S = 2.0, 2.0  # lag is low if it is worth no more checkpoint intervals or seconds of input
STUCK = 2.0  # times that limit at the end: a batch of that length can be under way, and what came meanwhile waits
OVERWHELMED = 2.5  # times that limit, and nothing more needs to be seen

Sample = tuple[float, float]
"""A moment [s] and how many records were behind then."""


class ProbeOutcome(StrEnum):
    """What a probe at one rate shows of the query."""

    SUSTAINED = "sustained"
    NOT_SUSTAINED = "not-sustained"
    VOID = "void"  # nothing is known of the query: the generator did not deliver what was due
    UNSEEN = "unseen"  # neither: there were too few samples of lag to tell


@dataclass(frozen=True)
class Judged:
    """One probe: `growth` of lag [records/s], None of too few samples; `lag` is its median in the window [records]."""

    outcome: ProbeOutcome
    why: str
    growth: float | None
    lag: float


def limit_s(interval_s: float) -> float:
    """How much input, in seconds of it, a lag may be worth that counts as low."""
    return max(MOST_INTERVALS * interval_s, LEAST_LIMIT_S)


def growth(samples: Sequence[Sample]) -> float | None:
    """The median slope over all pairs of samples [records/s]; None of fewer than `FEWEST_SAMPLES` moments.

    If there are more than `MOST_SAMPLES`, only every second (third, fourth ...) one is used.
    """
    slopes = _slopes(_thinned(samples))
    return median(slopes) if slopes else None


def grows(samples: Sequence[Sample], rate: float) -> bool:
    """Whether lag grows by a share of the rate [records/s] that counts, and not by chance."""
    some = _thinned(samples)
    slopes, n = _slopes(some), len(some)
    if not slopes or median(slopes) <= MOST_GROWTH * rate:
        return False
    s = len(slopes) - bisect_right(slopes, 0.0) - bisect_left(slopes, 0.0)
    deviation = sqrt(n * (n - 1) * (2 * n + 5) / 18)
    return s - 1 > DEVIATIONS * deviation  # S goes up by 2 at a time: the correction for continuity is 1


def _thinned(samples: Sequence[Sample]) -> Sequence[Sample]:
    return samples[:: ceil(len(samples) / MOST_SAMPLES) or 1]


def _slopes(samples: Sequence[Sample]) -> list[float]:
    """The slopes of all pairs of samples, in ascending order."""
    if len({at for at, _ in samples}) < FEWEST_SAMPLES:
        return []
    return sorted((b[1] - a[1]) / (b[0] - a[0]) for a, b in combinations(samples, 2) if b[0] != a[0])


def is_overwhelmed(rate: float, interval_s: float, lag: float) -> bool:
    """Whether lag [records] is so far beyond the limit that the rest of a probe can be spared."""
    return lag > OVERWHELMED * limit_s(interval_s) * rate


def judge(rate: float, interval_s: float, lag: Sequence[Sample], unread: Sequence[Sample]) -> Judged:
    """The outcome of a probe at `rate` [records/s], from what was sampled in its window; neither series is empty.

    lag     records that were due and had not been read; the last sample is of the end of the probe
    unread  those of them that the broker had: without what the generator still owed

    A query whose lag is bounded was given its records in time. One that leaves ever more unread cannot even follow what
    it was given. Where lag is not bounded, but what is unread is, it was the generator that did not keep its schedule.
    Growth and level pass over a few samples, and so over a query that stops near the end: how far behind it is there
    counts by itself, and is the query's doing if the broker had most of that.
    """
    slope, level = growth(lag), median(records for _, records in lag)
    left = _left(rate, interval_s, lag[-1][1])
    problem = _unbounded(rate, interval_s, lag) or left
    if problem is None and slope is None:
        return Judged(ProbeOutcome.UNSEEN, f"fewer than {FEWEST_SAMPLES} samples of lag", slope, level)
    if problem is None:
        return Judged(ProbeOutcome.SUSTAINED, "lag is bounded", slope, level)
    if fault := _unbounded(rate, interval_s, unread) or (left if unread[-1][1] > lag[-1][1] / 2 else None):
        return Judged(ProbeOutcome.NOT_SUSTAINED, fault, slope, level)
    return Judged(ProbeOutcome.VOID, f"{problem}, but the query read what it was given", slope, level)


def _left(rate: float, interval_s: float, lag: float) -> str | None:
    """What is wrong with the lag [records] that a probe ends with."""
    return f"it ends with {lag / rate:.1f} s of input left" if lag > STUCK * limit_s(interval_s) * rate else None


def _unbounded(rate: float, interval_s: float, samples: Sequence[Sample]) -> str | None:
    """What is wrong with these samples. Of one or two the last is the level."""
    slope, level = growth(samples), median(records for _, records in samples)
    if slope is not None and grows(samples, rate):
        return f"lag grows by {slope / rate:.1%} of the rate"
    if len(samples) < FEWEST_OF_LEVEL:
        level = samples[-1][1]
    return f"lag is worth {level / rate:.1f} s of input" if level > limit_s(interval_s) * rate else None
