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

    With n measurements of any law, the next one is as likely in each of the n + 1 gaps that they leave. So it lies
    between the least and the greatest with probability (n - 1) / (n + 1), which is 95 % from `ENOUGH` on. Then the
    draws are spread over those gaps; in the outer two they are the least and the greatest. Fewer do not reach so far,
    so the draws are from Student's predictive law, mean + s sqrt(1 + 1 / n) t with n - 1 degrees of freedom; what is
    below 0 counts as 0. It is exact for normal measurements (Fisher, 1935). Raises `BadInput` as `samples` does, and
    `ValueError` for no measurement.
    """
    values = samples("seen", seen)
    if not values.size:
        raise ValueError("no measurement")
    if values.size >= ENOUGH:
        return np.interp(rng.random(count) * (values.size + 1), np.arange(1, values.size + 1), np.sort(values))
    if values.size == 1:
        return np.full(count, math.nan)
    reach = float(values.std(ddof=1)) * math.sqrt(1 + 1 / values.size)
    return np.maximum(values.mean() + reach * rng.standard_t(values.size - 1, count), 0.0)
