"""How a system works between two faults, in many replays at once: what a replay needs to know of an engine."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Span:
    """A share of the time from start to end counts as useful; below 0 it takes back earlier work. (runs,) each."""

    start_s: Array
    end_s: Array
    share: Array


@dataclass(frozen=True)
class Spell:
    """What a system did from when it was up until a fault, (runs,) each.

    spans    useful if no fault takes it back
    lost_s   work that the fault takes back
    since_s  when the first of that work was done
    missing  the share of the time in which nothing was done, since hosts were away; it is part of `spans`
    again    whether the fault strikes work that an earlier one struck, (runs,): then it belongs to that one's outage
    """

    spans: list[Span]
    lost_s: Array
    since_s: Array
    missing: list[Span] = field(default_factory=list)
    again: npt.NDArray[np.bool_] | bool = False


class Work(Protocol):
    """The work of one system, which knows from spell to spell what is left to do."""

    def until(self, ready_s: Array, up_s: Array, fault_s: Array, end_s: float) -> Spell:
        """Work from `ready_s` on, at the usual pace from `up_s`, until a fault, or until `end_s` if none comes before.

        fault_s <= up_s is no work.
        """
        ...
