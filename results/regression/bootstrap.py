"""A studentized bootstrap of the difference of medians, for few runs.

Five runs alone give no interval of high confidence, because their median can only be one of the five values. So runs
before and after are taken to scatter alike, their deviations from their own medians are pooled, and samples of both
sizes are drawn from the pool, where by construction nothing has changed. What counts is the difference of medians in
units of the sample's own scatter (Efron and Tibshirani, An Introduction to the Bootstrap, 1993, sections 12.5 and
16.2).

Runs come in strata, one for each seed: the difference is the mean over the strata, and plans of faults, which differ
from seed to seed, do not add to the scatter.

Medians, and sums of distances from them, are linear in the sorted pool once it is known which of its places were drawn.
So the draws of one shape are made once, and each comparison takes two products of matrices.

Where a small probability decides, more is drawn: `draws_for` says how much.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

DRAWS = 50_000  # at the least, and made together
BEYOND = 10  # draws beyond the smallest probability that matters
RARE = BEYOND / DRAWS  # probabilities from here on down take more draws
SEED = 20_261_120  # fixed, so that the same values always give the same verdict
AT_ONCE = 100  # comparisons whose draws are in memory together
TIE = 1 - 1e-6  # a draw that equals the observed value counts as reaching it, even if rounding makes it smaller

Stratum = tuple[np.ndarray, np.ndarray]  # values of candidates, values of the baseline
Sizes = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Comparison:
    """Values of candidates and baseline by stratum, neither of them empty, on a scale where changes are differences."""

    strata: tuple[Stratum, ...]

    @property
    def sizes(self) -> Sizes:
        """How many candidates and baseline values each stratum has: comparisons of the same sizes can share draws."""
        return tuple((len(candidates), len(baseline)) for candidates, baseline in self.strata)

    @cached_property
    def change(self) -> float:
        """Median of the candidates less that of the baseline, the mean over the strata."""
        return float(np.mean([np.median(candidates) - np.median(baseline) for candidates, baseline in self.strata]))

    @cached_property
    def pool(self) -> np.ndarray:
        """The deviations of all values from the medians of their sets, sorted."""
        sets = [values for stratum in self.strata for values in stratum]
        return np.sort(np.concatenate([values - np.median(values) for values in sets]))

    @cached_property
    def scatter(self) -> float:
        """Mean distance of the values from the medians of their sets."""
        return float(np.abs(self.pool).mean())

    def in_scatters(self, distance: float) -> float:
        """A distance in units of the scatter: 0 if it is none, infinite if it is one and nothing scatters."""
        if distance == 0:
            return 0.0
        return distance / self.scatter if self.scatter else math.inf


def draws_for(probability: float) -> int:
    """How many draws tell a probability from a smaller one: `BEYOND` of them are expected to reach it."""
    return max(DRAWS, math.ceil(BEYOND / probability))


def chances(comparisons: Sequence[Comparison], distances: Sequence[Sequence[float]], draws: int = DRAWS) -> np.ndarray:
    """The probabilities of changes of at least these sizes, in either direction, where nothing has changed.

    Distances are on the scale of the values, as many for each comparison; so are the probabilities (comparisons x
    distances). They are never 0, since what was seen counts as one more draw.
    """
    reached = np.zeros(np.shape(distances))
    for sizes, places in _by_shape(comparisons):
        own = [comparisons[place] for place in places]
        seen = [
            [one.in_scatters(abs(size)) for size in distances[place]] for one, place in zip(own, places, strict=True)
        ]
        for drawn in _drawn(sizes, draws, own):
            for column, sizes_seen in enumerate(zip(*seen, strict=True)):
                reached[places, column] += (drawn >= np.multiply(sizes_seen, TIE)).sum(axis=0)
    return (1 + reached) / (draws + 1)


def reaches(comparisons: Sequence[Comparison], levels: Sequence[float], draws: int = DRAWS) -> list[float]:
    """For each comparison the size from which on a change has a probability of at most its level by `chances`.

    It is half the width of the interval of confidence 1 - level; infinite where the draws are too few for the level.
    """
    found = [math.inf] * len(comparisons)
    ranks = [math.floor(level * (draws + 1)) for level in levels]
    for sizes, places in _by_shape(comparisons):
        own = [comparisons[place] for place in places]
        largest = _largest(_drawn(sizes, draws, own), max(ranks[place] for place in places))
        for column, place in enumerate(places):
            if ranks[place]:
                found[place] = float(largest[-ranks[place], column]) * comparisons[place].scatter
    return found


def _largest(parts: Iterable[np.ndarray], count: int) -> np.ndarray:
    """The `count` largest of each column over all parts, in rising order."""
    kept = np.empty((0, 0), dtype=np.float32)
    for part in parts:
        together = np.concatenate([kept, part]) if kept.size else part
        kept = np.partition(together, len(together) - count, axis=0)[len(together) - count :] if count else kept
    return np.sort(kept, axis=0)


def _by_shape(comparisons: Sequence[Comparison]) -> Iterator[tuple[Sizes, list[int]]]:
    """The places of comparisons that can share their draws, few enough for memory."""
    shapes = defaultdict(list)
    for place, comparison in enumerate(comparisons):
        shapes[comparison.sizes].append(place)
    for sizes, places in shapes.items():
        for start in range(0, len(places), AT_ONCE):
            yield sizes, places[start : start + AT_ONCE]


def _drawn(sizes: Sizes, draws: int, comparisons: Sequence[Comparison]) -> Iterator[np.ndarray]:
    """The sizes of all changes drawn for comparisons of one shape (draws x comparisons), a part at a time."""
    pools = np.column_stack([comparison.pool for comparison in comparisons])
    for part, start in enumerate(range(0, draws, DRAWS)):
        yield _changes_drawn(sizes, min(DRAWS, draws - start), pools, part)


def _changes_drawn(sizes: Sizes, draws: int, pools: np.ndarray, part: int = 0) -> np.ndarray:
    """Sizes of the changes drawn from pools (values x comparisons), in units of the scatter drawn: draws x comparisons.

    A draw without any scatter shows no change, or an infinite one.
    """
    change_of, scatter_of = _draws(sizes, draws, part)
    pools = pools.astype(np.float32)
    with np.errstate(divide="ignore", invalid="ignore"):
        drawn = np.abs(change_of @ pools) / (scatter_of @ pools)
    return np.nan_to_num(drawn, copy=False, nan=0.0, posinf=np.inf)


@lru_cache(maxsize=4)
def _draws(sizes: Sizes, draws: int, part: int) -> tuple[np.ndarray, np.ndarray]:
    """Weights (draws x values) that turn a sorted pool into the change and into the scatter of each draw."""
    generator = np.random.default_rng(SEED + part)
    total = sum(map(sum, sizes))
    change_of, scatter_of = np.zeros((2, draws, total), dtype=np.float32)
    for stratum in sizes:
        for size, sign in zip(stratum, (1, -1), strict=True):
            places = np.sort(generator.integers(0, total, (draws, size)), axis=1)
            for middle in ((size - 1) // 2, size // 2):
                _add(change_of, places[:, middle], sign / 2 / len(sizes))
            for rank in range(size):
                _add(scatter_of, places[:, rank], np.sign(2 * rank - (size - 1)) / total)
    return change_of, scatter_of


def _add(weights: np.ndarray, places: np.ndarray, weight: float) -> None:
    weights[np.arange(len(weights)), places] += np.float32(weight)
