"""Tells when partitions are in a steady state: they neither wait for a lost partition nor catch up."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from testbed.core.coordinator.coordinator import Coordinator
from testbed.core.dataflow.layout import Layout
from testbed.recovery.query_partitions import needs_of
from testbed.runtime.network.messages import SlotStatus
from testbed.runtime.server.guest import Guest

LOOK_S = 0.2


class SteadyState:
    """`lasts`: whether no partition is restored or catches up now. What is lost and waits for room does not count.

    Partitions that were restored have reached their earlier progress before they have processed the input that came
    meanwhile. That takes as long as they were away if they can process twice what comes, as the checks of a run ask
    for too. So the steady state begins only after that time has passed once more.
    """

    def __init__(self, layout: Layout, coordinator: Coordinator, guests: Mapping[str, Guest]) -> None:
        self._needs = needs_of(layout)
        self._coordinator, self._guests = coordinator, guests
        self._lost_s: dict[int, float] = {}  # when each partition was lost that is down [s, monotonic]
        self._away_since_s = self._settled_s = inf  # since the last steady state
        self._next_s, self._epoch = 0.0, 0
        self.lasts = False

    @property
    def running(self) -> frozenset[int]:
        """The partitions that get all of their input: none that is upstream is down."""
        down = self._coordinator.down
        return frozenset(number for number, needs in self._needs.items() if needs.isdisjoint(down))

    def covers(self, status: SlotStatus) -> bool:
        """Whether the state lasts, and nothing has happened since the last look that the status may tell of."""
        return self.lasts and status.caught_up and status.epoch == self._epoch == self._coordinator.epoch

    def look(self, now_s: float) -> None:
        """Check how things stand [s, monotonic]; nothing is away before the first start."""
        if now_s < self._next_s or not self._coordinator.epoch:
            return
        self._next_s = now_s + LOOK_S
        down = self._coordinator.down
        for number in self._lost_s.keys() - down:
            self._away_since_s = min(self._away_since_s, self._lost_s.pop(number))
        self._lost_s |= dict.fromkeys(down - self._lost_s.keys(), now_s)
        before, self._epoch = self._epoch, self._coordinator.epoch
        if self._epoch != before or not self._has_caught_up():  # a recovery may be over by now, but a backlog is left
            self._away_since_s, self._settled_s = min(self._away_since_s, now_s), inf
        elif self._settled_s == inf:
            self._settled_s = now_s + max(now_s - self._away_since_s, 0.0)
        self.lasts = now_s >= self._settled_s
        if self.lasts:
            self._away_since_s = inf

    def _has_caught_up(self) -> bool:
        """Whether no recovery is under way, and all that were restored are as far as they were."""
        coordinator = self._coordinator
        if coordinator.recoveries.of:
            return False
        workers = {coordinator.placement.worker_of(number) for number in self._needs.keys() - coordinator.down}
        statuses = [guest.status for name, guest in self._guests.items() if name in workers]
        return all(each.epoch == coordinator.epoch and each.caught_up for each in statuses)
