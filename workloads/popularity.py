"""Zipf laws: things of uneven popularity, draws from them, and their assignment to places."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workloads.nexmark.counters import Bits, below, bits
from workloads.schedule import Integers

FINENESS = 2**31  # weights are whole numbers that sum to this number or a little more, so that sums are exact


def zipf(count: int, exponent: float) -> NDArray[np.float64]:
    """The share of each rank, (count,), in proportion to rank^-exponent; rank 1 comes first."""
    weights = np.arange(1, count + 1) ** -float(exponent)
    return weights / weights.sum()


@dataclass(frozen=True)
class Weighted:
    """Draws things by their weights. `ends`: the sum of the weights up to each thing, (things,)."""

    things: Integers
    ends: Integers

    @classmethod
    def of(cls, things: Integers, shares: NDArray[np.float64]) -> Weighted:
        """Things, (things,), and the share of each in proportion to which it is drawn."""
        parts = np.maximum(1, np.rint(shares / shares.sum() * FINENESS)).astype(np.int64)
        return cls(things, np.cumsum(parts))

    def drawn(self, draws: Bits) -> Integers:
        """One thing for each draw."""
        return self.things[np.searchsorted(self.ends, below(draws, int(self.ends[-1])), side="right")]


def dealt(seed: int, field: int, count: int, places: int) -> Integers:
    """The place of each of `count` things, (count,): each `places` in a row go to one place each, in a drawn order."""
    things = np.arange(count, dtype=np.int64)
    order = np.lexsort((bits(seed, field, things), things // places))
    found = np.empty(count, np.int64)
    found[order] = things % places
    return found
