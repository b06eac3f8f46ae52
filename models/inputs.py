"""Numeric input of the models, checked once where it enters: one line naming field, value and what is allowed."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from experiments.errors import BadInput

RATE, TIME = "a finite rate above 0", "a finite time of 0 or more"
MOST = 2**53  # the whole numbers that a double holds


def require(field: str, value: float, holds: bool, allowed: str) -> None:
    """Raise `BadInput` about `field` unless `holds` and `value` is finite."""
    if not (holds and math.isfinite(value)):
        raise BadInput(field, value, allowed)


def require_rate(field: str, value: float) -> None:
    """A finite number above 0."""
    require(field, value, value > 0, RATE)


def require_time(field: str, value: float) -> None:
    """A finite number of 0 or more."""
    require(field, value, value >= 0, TIME)


def require_count(field: str, value: int, least: int = 1) -> None:
    """A whole number, at least `least`, that a double holds."""
    holds = isinstance(value, int | np.integer) and least <= value <= MOST
    require(field, value, holds, f"a whole number of {least} or more" + (", up to 2**53" if value > MOST else ""))


def samples(field: str, values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Measured durations as a flat array, maybe empty; raises `BadInput` for one that is negative or not finite."""
    found = np.asarray(values, dtype=float).ravel()
    bad = found[~(np.isfinite(found) & (found >= 0))]
    if bad.size:
        raise BadInput(field, float(bad[0]), "finite times of 0 or more")
    return found
