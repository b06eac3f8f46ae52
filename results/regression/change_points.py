"""Finds where the level of a metric changed in its history.

Binary segmentation: if the ranks before and after some split differ (by the statistic of Mann and Whitney, in standard
deviations, so that short ends count as much as the middle) more than they do anywhere in all but `FALSE_CHANGE` of all
orders of the runs, the history is split where two levels fit it best, and the same is done to each side. Ranks need no
law of the noise, and one wild run moves them little; see Ross, Tasoulis, Adams: Nonparametric Monitoring of Data
Streams for Changes in Location and Scale, 2011.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

FALSE_CHANGE = 0.005
SHORTEST = 5  # runs between two changes
FEWEST_RUNS = 12  # in which a change can be found: of fewer, too large a share of all orders is split as well as any
ORDERS = 20_000
SEED = 20_261_120


@dataclass(frozen=True)
class ChangePoint:
    """The level differs from `place` on; levels are medians of the runs up to the neighbouring changes."""

    place: int
    before: float
    after: float
    p_value: float


def change_points(values: np.ndarray, minimum: float) -> list[ChangePoint]:
    """Find where values, in the order of their runs, change their level by at least `minimum`, first to last."""
    if not len(values):
        return []
    found = dict(_splits(values, 0))
    edges = [0, *sorted(found), len(values)]
    levels = [float(np.median(values[start:end])) for start, end in pairwise(edges)]
    steps = zip(edges[1:-1], pairwise(levels), strict=True)
    changes = [ChangePoint(place, *around, found[place]) for place, around in steps]
    return [change for change in changes if abs(change.after - change.before) >= minimum]


def _splits(values: np.ndarray, offset: int) -> Iterator[tuple[int, float]]:
    """Yield place and p-value of every split that chance does not explain."""
    from scipy.stats import rankdata  # takes most of a second, and the pages import this module before they need it

    if len(values) < FEWEST_RUNS:
        return
    score = _scores(rankdata(values)[None, :]).max()
    largest = _largest_by_chance(len(values))
    p_value = float((1 + (largest >= score).sum()) / (len(largest) + 1))
    if p_value > FALSE_CHANGE:
        return
    place = _closest_fit(values)
    yield offset + place, p_value
    yield from _splits(values[:place], offset)
    yield from _splits(values[place:], offset + place)


def _closest_fit(values: np.ndarray) -> int:
    """The split whose two medians are closest to the values; ranks tell that there is a change better than where."""

    def distance(place: int) -> float:
        return sum(float(np.abs(side - np.median(side)).sum()) for side in (values[:place], values[place:]))

    return min(range(SHORTEST, len(values) - SHORTEST + 1), key=distance)


def _scores(ranks: np.ndarray) -> np.ndarray:
    """How far the sum of ranks before each split is from its mean, in standard deviations; ranks: rows x runs."""
    runs = ranks.shape[1]
    before = np.arange(SHORTEST, runs - SHORTEST + 1)
    sums = np.cumsum(ranks, axis=1)[:, before - 1]
    spread = np.sqrt(before * (runs - before) * (runs + 1) / 12)
    return np.abs(sums - before * (runs + 1) / 2) / spread


@lru_cache(maxsize=256)
def _largest_by_chance(runs: int) -> np.ndarray:
    """The largest score of `runs` runs in random order, without ties. Ties have less spread and only make it safer."""
    generator = np.random.default_rng(SEED)
    ranks = np.arange(1, runs + 1, dtype=np.float32)
    rows = max(1, 1_000_000 // runs)
    parts = [
        _scores(generator.permuted(np.tile(ranks, (min(rows, ORDERS - start), 1)), axis=1)).max(axis=1)
        for start in range(0, ORDERS, rows)
    ]
    return np.concatenate(parts)
