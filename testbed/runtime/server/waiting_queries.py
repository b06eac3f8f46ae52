"""Writes to the journal which queries wait for room, at which costs, and where another planner made the plan."""

from __future__ import annotations

from journal.events.testbed import CostsMeasured, FellBack, QueriesWaiting
from journal.writer import Journal
from testbed.core.coordinator.coordinator import Coordinator
from testbed.core.dataflow.layout import Layout
from testbed.recovery import QueryCentric, RecoveryStrategy
from testbed.recovery.query_partitions import priority_of, queries_of


class WaitingQueries:
    """Writes to the journal which queries wait, in a run that recovers query by query; else nothing."""

    def __init__(self, layout: Layout, coordinator: Coordinator, strategy: RecoveryStrategy, journal: Journal) -> None:
        self._strategy = strategy if isinstance(strategy, QueryCentric) else None
        self._coordinator, self._journal = coordinator, journal
        self._names = [each.name for each in layout.partitions]
        self._queries = queries_of(layout) if self._strategy else {}
        self._told: tuple[str, ...] = ()

    def look(self) -> None:
        """Check whether the set of waiting queries has changed; before the first start no query waits."""
        if self._strategy is None or not self._coordinator.epoch:
            return
        for why in self._strategy.take_notes():
            self._journal.record(FellBack(why))
        if (waiting := self._waiting(self._strategy)) != self._told:
            self._told = waiting
            self._journal.record(QueriesWaiting(waiting))
            if used := self._strategy.used:
                self._journal.record(CostsMeasured({self._names[number]: cores for number, cores in used.items()}))

    def _waiting(self, strategy: QueryCentric) -> tuple[str, ...]:
        down = self._coordinator.down
        found = [name for name, partitions in self._queries.items() if not partitions.isdisjoint(down)]
        return tuple(sorted(found, key=lambda name: -priority_of(name, strategy.priorities)))
