"""How a benchmark of kills prints what it found: a row for each kill, then the median of each column."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import fields
from typing import Any


def print_by_kill(found: Sequence[Any]) -> None:
    """Print them; each is a dataclass of the times of one kill [ms], all of the same type."""
    names = [each.name for each in fields(found[0])]
    print(" | ".join(["kill", *names]))
    for number, each in enumerate(found):
        print(" | ".join([str(number), *(f"{getattr(each, name):.0f}" for name in names)]))
    for name in names:
        values = [getattr(each, name) for each in found]
        print(f"{name}: median {statistics.median(values):.0f}, {min(values):.0f} to {max(values):.0f}")
