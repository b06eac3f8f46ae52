"""What one more measurement may be, by the few that were made."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from models.inputs import samples
from models.replay.work import Array

ENOUGH = 39  # measurements: from here on the next one lies between the least and the greatest with 95 %


def draw_next(rng: np.random.Generator, seen: Sequence[float], count: int) -> Array:
    """`count` draws of the next measurement, in the unit of those that were seen, 0 or more; NaN if only one was seen.

    With n measurements of any law, the next one lies between the least and the greatest with probability
    (n - 1) / (n + 1). From `ENOUGH` on this is 95 %, and the draws are from those seen. Fewer do not reach so far, so
    the draws are from Student's predictive law, mean + s sqrt(1 + 1 / n) t with n - 1 degrees of freedom, cut off at 0.
    It is exact for normal measurements (Fisher, 1935). Raises `BadInput` as `samples` does, and `ValueError` for no
    measurement.
    """
    values = samples("seen", seen)
    if not values.size:
        raise ValueError("no measurement")
    if values.size >= ENOUGH:
        return rng.choice(values, count)
    if values.size == 1:
        return np.full(count, math.nan)
    reach = float(values.std(ddof=1)) * math.sqrt(1 + 1 / values.size)
    return np.maximum(values.mean() + reach * rng.standard_t(values.size - 1, count), 0.0)
