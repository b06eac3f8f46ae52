"""Writes the costs of partitions and their copies to the journal."""

from __future__ import annotations

from collections.abc import Mapping

from journal.events.testbed import Costs, PartitionCost
from journal.writer import Journal
from testbed.core.dataflow.layout import Layout
from testbed.runtime.network.messages import Cost
from testbed.runtime.server.guest import Guest

COSTS_S = 1.0


class CostReports:
    """Once a second, from the last status of each of these guests."""

    def __init__(self, layout: Layout, guests: Mapping[str, Guest], journal: Journal) -> None:
        self._names = [each.name for each in layout.partitions]
        self._guests, self._journal = guests, journal
        self._next_s = 0.0

    def on_clock(self, now_s: float) -> None:
        """Tell it if it is time [s, monotonic]."""
        if now_s < self._next_s:
            return
        self._next_s = now_s + COSTS_S
        if any(guest.status.costs for guest in self._guests.values()):
            self._journal.record(Costs(self._of(muted=False), self._of(muted=True)))

    def _of(self, *, muted: bool) -> dict[str, PartitionCost]:
        return {
            self._names[number]: _told(worker, cost)
            for worker, guest in self._guests.items()
            for number, cost in guest.status.costs.items()
            if cost.muted == muted
        }


def _told(worker: str, cost: Cost) -> PartitionCost:
    counted = cost.records, cost.input_bytes, cost.retained_bytes
    return PartitionCost(worker, cost.processing_s, cost.checkpoint_s, *counted)
