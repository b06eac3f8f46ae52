"""Measures what partitions cost, and has waiting queries planned again by these costs."""

from __future__ import annotations

from collections.abc import Mapping

from testbed.core.coordinator.coordinator import Coordinator
from testbed.core.dataflow.layout import Layout
from testbed.core.recovery import RecoveryStrategy
from testbed.recovery import QueryCentric
from testbed.recovery.query_centric import LEAST_COST
from testbed.runtime.network.messages import SlotStatus
from testbed.runtime.server.guest import Guest
from testbed.runtime.server.measured_costs import MeasuredCosts
from testbed.runtime.server.steady_state import SteadyState

ASK_S = 5.0
CHEAPER = 0.9


class FollowingCosts:
    """In a run that recovers query by query, the strategy gets the measured costs; in others nothing is measured.

    Costs are measured in a steady state only. A partition that waits for a lost one would seem to cost nothing, and
    one that catches up far more than its input makes it cost. If costs fall while queries wait, these may have room,
    although no slot joins or is lost: so the strategy is asked at intervals.
    """

    def __init__(
        self,
        layout: Layout,
        coordinator: Coordinator,
        strategy: RecoveryStrategy,
        guests: Mapping[str, Guest],
        known: Mapping[int, float],
    ) -> None:
        """`known`: the costs that a driver before has measured."""
        self._costs, self._coordinator = MeasuredCosts(known), coordinator
        self._strategy = strategy if isinstance(strategy, QueryCentric) else None
        self._steady = SteadyState(layout, coordinator, guests) if self._strategy else None
        self._next_s = 0.0
        if self._strategy is not None:
            self._strategy.measured = self._costs.cores

    @property
    def cores(self) -> dict[int, float]:
        """What each partition takes, by its number."""
        return self._costs.cores

    def note(self, worker: str, status: SlotStatus, now_s: float) -> None:
        """A slot has reported."""
        if self._steady is not None and self._steady.covers(status):
            self._costs.note(worker, status, now_s, self._steady.running)

    def forget(self, worker: str) -> None:
        """A slot is gone."""
        self._costs.forget(worker)

    def on_clock(self, now_s: float) -> None:
        """Look whether costs can be measured, and ask the strategy again if it is time [s, monotonic]."""
        if self._strategy is None or self._steady is None:
            return
        self._steady.look(now_s)
        if not self._steady.lasts:
            self._costs.interrupt()
        elif now_s >= self._next_s:
            self._next_s = now_s + ASK_S
            if self._coordinator.down and self._is_cheaper(self._strategy):
                self._coordinator.restore_what_can_be()

    def _is_cheaper(self, strategy: QueryCentric) -> bool:
        """Whether a partition costs clearly less than when the strategy was asked last, if costs count."""
        if strategy.cores is None or not strategy.measured:
            return False
        now = {number: max(cost, LEAST_COST) for number, cost in strategy.measured.items()}
        return not strategy.used or any(now.get(n, used) < CHEAPER * used for n, used in strategy.used.items())
