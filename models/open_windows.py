"""How many count windows are open (`cec`, section IV: about 90,000 of 100,000)."""

from __future__ import annotations

import numpy as np

from experiments.errors import BadInput


def open_windows(items: int, size: int, records: float) -> float:
    """The expected number of items whose window is open after `records` records that are evenly spread over the items.

    An item's window is open unless the number of its records is a multiple of `size`. That number is Poisson with mean
    m = records / items, so by the roots of unity w^j a share of 1/size sum_j exp(-m (1 - w^j)) is not open. For many
    records this is items (size - 1) / size.

    Args:
        items, size: at least 1.
        records: taken in since the beginning, at least 0.
    """
    for name, value, least in (("items", items, 1), ("size", size, 1), ("records", records, 0)):
        if value < least:
            raise BadInput(name, value, f"{least} or more")
    roots = np.exp(2j * np.pi * np.arange(size) / size)
    closed = float(np.exp(-records / items * (1 - roots)).mean().real)
    return items * (1 - closed)
