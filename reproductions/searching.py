"""Searches for the maximum or the zero of a function that has only one, in steps that are easy to check.

`scipy.optimize` has both, but importing it takes a third of the time of a closed formula.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0
FLAT = 1e-7  # of a place found by `highest`: other processors find it this near, since a function is flat at its top
NARROWINGS = 80  # of the span to .618 each time: to 2e-17 of it, which is below what rounding leaves of a flat top


def highest(function: Callable[[Floats], Floats], low: Floats | float, high: Floats | float) -> Floats:
    """Where a function with one maximum between `low` and `high` has it, by golden section; elementwise.

    The place comes out within about `FLAT` of its size.
    """
    low, high = np.asarray(low, dtype=float), np.asarray(high, dtype=float)
    for _ in range(NARROWINGS):
        left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        rises = function(left) < function(right)
        low, high = np.where(rises, left, low), np.where(rises, high, right)
    return (low + high) / 2.0


def crossing(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a function that falls from above zero at `low` to below zero at `high` is zero, by halving the span."""
    for _ in range(NARROWINGS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if function(middle) > 0 else (low, middle)
    return (low + high) / 2.0
