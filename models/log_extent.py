"""How far back the log of count windows reaches if windows are saved only when they open (`cec`, figure 6, Q = 8).

Records are spread evenly over many items, so those of one item are a Poisson process, and a window of W records stays
open until W - 1 others have come: for a time with a gamma distribution. One record in W opens a window and one closes
it, so N(a) = (1 / W) times the integral of P(duration > s) from a on is the mean number of windows older than a. Each
item has one window at most. For many items, of which few have so old a window, that number is nearly Poisson: the
oldest is not older than a with probability exp(-N(a)). The log has 2 / W entries for each record since then, on
average.

The derivation is ours. The paper has only a measured value: about 500,000 entries for 100,000 items and W = 10.
"""

from __future__ import annotations

import math

from scipy import optimize, stats

from experiments.errors import BadInput


def windows_older_than(items: float, size: int, records: float) -> float:
    """How many windows are expected to have been open for longer than `records` records."""
    duration = stats.gamma(size - 1, scale=items)
    # The integral of P(D > s) from a on is E[(D - a)+]; x f(x) of a gamma is (size - 1) items times the next gamma's f.
    excess = (size - 1) * items * stats.gamma(size, scale=items).sf(records) - records * duration.sf(records)
    return float(excess) / size


def oldest_window(items: float, size: int, probability: float) -> float:
    """For how many records the oldest window has been open, at most, with this probability.

    Args:
        items: how many there are, at least 1.
        size: records of a window, at least 2.
        probability: between 0 and 1, both excluded; at least that no window is open.

    Raises `BadInput`.
    """
    for name, value, fits, allowed in (
        ("items", items, items >= 1, "1 or more"),
        ("size", size, size >= 2, "2 or more"),
        ("probability", probability, 0 < probability < 1, "between 0 and 1"),
    ):
        if not fits:
            raise BadInput(name, value, allowed)
    older = -math.log(probability)
    if windows_older_than(items, size, 0) <= older:
        return 0.0
    longest = size * items
    while windows_older_than(items, size, longest) > older:
        longest *= 2
    return float(optimize.brentq(lambda records: windows_older_than(items, size, records) - older, 0, longest))


def extent(items: float, size: int, probability: float) -> float:
    """How many entries the log has since the oldest window opened, at most, with this probability [entries]."""
    return 2 / size * oldest_window(items, size, probability)
