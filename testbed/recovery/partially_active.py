"""Passive recovery for all partitions, and active copies for those that are worth the most (`ppa`, section II-B)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from experiments.errors import BadInput
from testbed.core.coordinator.copies import Copies, largest_slot
from testbed.core.coordinator.placement import Placement, Worker
from testbed.core.dataflow.layout import Layout
from testbed.core.protocol import Protocol
from testbed.recovery.strategies import Passive
from testbed.topology import even_rates, topology_of

SHOWN = 3  # names, in a refusal


class PartiallyActive(Passive):
    """A lost partition is replaced by its copy at once if it has one. Otherwise it is restored as under `passive`.

    ratio     the share of partitions that have a copy, rounded to whole partitions; the planner may find use for fewer
    planner   what chooses them (`models/replication`)
    named     the partitions that have a copy, in place of a ratio and a planner; none: the planner chooses
    """

    name = "partially-active"

    def __init__(
        self,
        ratio: float = 0.0,
        planner: str = "structure-aware",
        rates: Mapping[str, float] | None = None,
        named: Sequence[str] = (),
        standby_room: int | None = None,
    ) -> None:
        """`rates`: as of `topology_of`; even ones if they are not known. Raises `BadInput`."""
        from models.replication.planners import PLANNERS  # here, since slots wait for what they import

        if not 0 <= ratio <= 1:
            raise BadInput("replication_ratio", ratio, "0 to 1")
        if planner not in PLANNERS:
            raise BadInput("replication_planner", planner, ", ".join(PLANNERS))
        self._ratio, self._rates = ratio, rates
        self._planner, self._plan = planner, PLANNERS[planner]
        self._named, self.standby_room = named, standby_room

    @classmethod
    def check(cls, protocol: type[Protocol]) -> str | None:
        if protocol.keeps_log:
            return "protocol batch-aligned: copies of partitions that keep an output log are not built"
        return super().check(protocol)

    def budget(self, layout: Layout) -> int:
        """How many partitions may have a copy."""
        if self._named:
            return len(set(self._named))
        return round(self._ratio * len(layout.partitions))

    def copied(self, layout: Layout) -> frozenset[int]:
        """The plan; raises `BadInput` if the planner finds or makes none, and for a name that no partition has.

        So it does for a ratio above 0 that comes to no partition.
        """
        numbers = {each.name: each.number for each in layout.partitions}
        if self._named:
            return frozenset(_number(name, numbers) for name in self._named)
        budget = self.budget(layout)
        if budget == len(layout.partitions):
            return frozenset(range(budget))
        if not budget:
            if self._ratio:
                allowed = f"0, or above {0.5 / len(layout.partitions):.2g}: {layout.name} has {len(layout.partitions)}"
                raise BadInput("replication_ratio", self._ratio, f"{allowed} partitions, and one at least has a copy")
            return frozenset()
        topology = topology_of(layout, even_rates(layout) if self._rates is None else self._rates)
        try:
            replicated = self._plan(topology, budget).replicated
        except BadInput as refusal:
            raise BadInput("replication_planner", self._planner, f"another one for {layout.name} ({refusal})") from None
        if not replicated.any():
            allowed = f"another planner or ratio: {self._planner} finds no use for {budget} copies in {layout.name}"
            raise BadInput("replication_ratio", self._ratio, allowed)
        return frozenset(numbers[topology.tasks[at]] for at in np.flatnonzero(replicated))


def _number(name: str, numbers: Mapping[str, int]) -> int:
    if name not in numbers:
        few = ", ".join(list(numbers)[:SHOWN])
        raise BadInput("copied", name, f"partitions of the dataflow, of which it has {len(numbers)}: {few} ...")
    return numbers[name]


def standby_needed(layout: Layout, slots: int, copies: int) -> int:
    """How many workers `copies` copies need: each has room for as many as the largest slot has partitions."""
    return -(-copies // largest_slot(layout, slots))


def without_a_place(layout: Layout, slots: int, copied: frozenset[int], workers: Sequence[Worker]) -> frozenset[int]:
    """The copies that no worker may have: those with room share a host or a failure domain with the primary.

    The first `slots` of the workers host the primaries, and the others stand by.
    """
    placement = Placement(layout.partitions, slots)
    for worker in workers:
        placement.join(worker)
    return copied - Copies(layout, copied, slots).places(placement).keys()
