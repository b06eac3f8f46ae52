"""How far back the log of count windows reaches if windows are saved only when they open (`cec`, figure 6, Q = 8).

Records are spread evenly over many items, so those of one item are a Poisson process, and a window of W records stays
open until W - 1 others have come: for a time with a gamma distribution. One record in W opens a window and one closes
it, so N(a) = (1 / W) times the integral of P(duration > s) from a on is the mean number of windows older than a. Each
item has one window at most. For many items, of which few have so old a window, that number is nearly Poisson: the
oldest is not older than a with probability exp(-N(a)). The log has 2 / W entries for each record since then, on
average.

A recovery replays the records since the oldest window opened, so `oldest_window` is also the model of the replay.

The derivation is ours. The paper has only a measured value: about 500,000 entries for 100,000 items and W = 10.
"""

from __future__ import annotations

import math

from scipy import optimize, stats

from experiments.errors import BadInput

SETTLED = 0.01  # how far from its limit the probability of a number of records modulo the window's may be, relatively


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
    _check(items, size)
    if not 0 < probability < 1:
        raise BadInput("probability", probability, "between 0 and 1")
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


def settles_after(items: float, size: int) -> float:
    """After how many records it no longer matters that all items began without a window [records].

    The number of records of an item is Poisson with mean m = records / items. With w = exp(2 pi i / size), its
    remainder modulo `size` is r with probability 1/size sum_j w^(-j r) exp(-m (1 - w^j)). In the long run only j = 0
    remains, so each r has the probability 1 / size that the model assumes. The last terms to vanish are j = 1 and
    size - 1. Together they are at most 2 exp(-m (1 - cos(2 pi / size))) / size, which is 1 % of 1 / size for the
    records that this returns.

    Args:
        items: how many there are, at least 1.
        size: records of a window, at least 2.

    Raises `BadInput`.
    """
    _check(items, size)
    return items * math.log(2 / SETTLED) / (1 - math.cos(2 * math.pi / size))


def _check(items: float, size: int) -> None:
    for name, value, least in (("items", items, 1), ("size", size, 2)):
        if value < least:
            raise BadInput(name, value, f"{least} or more")
