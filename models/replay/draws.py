"""Measurements resampled for many replays at once (Rubin's Bayesian bootstrap: exponential weights)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from models.replay.work import Array


def means(rng: np.random.Generator, values: npt.ArrayLike, runs: int, count: int) -> Array:
    """The mean of `count` draws in each run, each run drawing from its own resample of the values, (runs,)."""
    given = np.asarray(values, dtype=float)
    weights = rng.exponential(size=(runs, given.size))
    drawn = rng.multinomial(count, weights / weights.sum(axis=1, keepdims=True))
    return drawn @ given / count


def draw(rng: np.random.Generator, weights: Array) -> npt.NDArray[np.int64]:
    """For each row of weights, (runs, values), one index at random in proportion to them, (runs,)."""
    reached = np.cumsum(weights, axis=1)
    return (reached > rng.uniform(size=(len(weights), 1)) * reached[:, -1:]).argmax(axis=1)


def draw_each(rng: np.random.Generator, weights: Array, count: int) -> npt.NDArray[np.intp]:
    """As `draw`, `count` indices for each row of weights, (runs, count): the same ones that as many calls draw."""
    reached = np.cumsum(weights, axis=1)
    at = rng.uniform(size=(count, len(weights))).T * reached[:, -1:]
    return np.stack([row.searchsorted(wanted, side="right") for row, wanted in zip(reached, at, strict=True)])


class Pool:
    """Values with weights, (runs, values), from which one is drawn again and again for each run."""

    def __init__(self, weights: Array) -> None:
        self._weights, self._reached = weights, np.cumsum(weights, axis=1)

    def draw(self, rng: np.random.Generator, but: int | None = None) -> npt.NDArray[np.int64]:
        """As `draw`, one index for each run, (runs,); `but`, if given, is the index of a value that is left out."""
        at = rng.uniform(size=(len(self._reached), 1))
        if but is None:
            return (self._reached > at * self._reached[:, -1:]).argmax(axis=1)
        own = self._weights[:, but : but + 1]
        at *= self._reached[:, -1:] - own
        before = self._reached[:, but - 1 : but] if but else 0.0
        return (self._reached > np.where(at < before, at, at + own)).argmax(axis=1)
