"""Choosing among values that may be equal but for rounding: the first one wins, so that plans are deterministic."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_SAME = 1e-12  # relative to the highest value

Values = npt.NDArray[np.float64]


def first_highest(values: Values) -> int:
    """The index of the first value that is the highest; none may be negative."""
    return int(np.argmax(values >= values.max() * (1 - _SAME)))


def descending(values: Values) -> npt.NDArray[np.intp]:
    """The indices by falling value, stable; none may be negative."""
    highest = values.max(initial=0.0)
    return np.argsort(-np.round(values / highest / _SAME) if highest else values, kind="stable")


def rises(before: float, after: Values) -> npt.NDArray[np.bool_]:
    """Which values are higher than the one before, by more than rounding."""
    return after > before * (1 + _SAME)
