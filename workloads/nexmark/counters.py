"""Random numbers by counter: each is a function of seed, field and position, independent of earlier draws.

The numbers are those of splitmix64 (Steele, Lea and Flood, OOPSLA 2014) at any place of its sequence: its state is a
counter that grows by a constant. Integers only, so that no rounding depends on the length of an array.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from workloads.schedule import Integers

Bits: TypeAlias = NDArray[np.uint64]

GAMMA = 0x9E3779B97F4A7C15
FIRST_FACTOR, SECOND_FACTOR = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
WORD = 2**64
HALF, LOW_HALF = np.uint64(32), np.uint64(2**32 - 1)


def bits(seed: int, field: int, positions: Integers) -> Bits:
    """64 random bits for each position; `seed` and `field` tell independent sequences apart."""
    start = _mixed(np.array([seed % WORD], np.uint64))
    start = _mixed(start + np.uint64(field * GAMMA % WORD))
    return _mixed(positions.astype(np.uint64) * np.uint64(GAMMA) + start)


def below(draws: Bits, bound: int | Integers) -> Integers:
    """Whole numbers from 0 below `bound` (at most 2^32), even but for 2^-32, from the lower half of each draw."""
    size = np.uint64(bound) if isinstance(bound, int) else bound.astype(np.uint64)
    return ((draws & LOW_HALF) * size >> HALF).astype(np.int64)


def chosen(draws: Bits, share: float) -> NDArray[np.bool_]:
    """True for this share of the draws, by the upper half of each: independent of `below`."""
    return draws >> HALF < np.uint64(round(share * 2**32))


def _mixed(state: Bits) -> Bits:
    state = (state ^ state >> np.uint64(30)) * FIRST_FACTOR
    state = (state ^ state >> np.uint64(27)) * SECOND_FACTOR
    return state ^ state >> np.uint64(31)
