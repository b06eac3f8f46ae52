"""Undoes faults when they are due, and waits until lost hosts and services are back."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future

from chaos.holds import Hold, Holds
from chaos.injection.agenda import Agenda
from chaos.injection.planned_strike import target_of
from chaos.injection.target_queues import TargetQueues
from experiments.fault_kinds import Effect, FaultKind
from experiments.waiting import Deadline
from infra.cluster import Driver, Handle
from infra.strikes.strike import Proof
from journal.events.injector import Healed, Joined
from journal.writer import Journal

JOIN_LIMIT_S, JOIN_POLL_S = 90.0, 0.1

Arrival = Callable[[Handle, str, FaultKind], Callable[[], bool] | None]


class Healing:
    """Heals each hold when it is due by the agenda, on the queue of its target, and journals it.

    `arrival` is `infra.arrivals.arrival`.
    """

    def __init__(
        self,
        driver: Driver,
        handle: Handle,
        journal: Journal,
        arrival: Arrival,
        agenda: Agenda,
        queues: TargetQueues,
        arrivals: TargetQueues,
        holds: Holds[int],
    ) -> None:
        """`arrivals` are queues of their own, on which the return of what was lost is awaited.

        A worker takes seconds to join, and meanwhile the next strike or heal may need the queue of the target.
        """
        self.driver, self.handle, self.journal, self.arrival = driver, handle, journal, arrival
        self.agenda, self.queues, self.arrivals, self.holds = agenda, queues, arrivals, holds
        self._strike_counts: Counter[tuple[str, Effect]] = Counter()
        self._latest: dict[str, Future[None]] = {}  # by target

    def note_strike(self, host: str, effect: Effect) -> None:
        """A strike of this effect is about to hit the host: its earlier heals need not be awaited any more."""
        self._strike_counts[host, effect] += 1

    def latest(self, target: str) -> Future[None] | None:
        """The latest heal of this host or service, if there was one."""
        return self._latest.get(target)

    def may_have_changed(self, target: str, since: Future[None] | None) -> bool:
        """Whether a heal may have changed the target since `since` was its latest: one goes on, or began later."""
        latest = self.latest(target)
        return latest is not since or (latest is not None and not latest.done())

    def plan(self, hold: Hold[int]) -> None:
        """Heal a hold when it is due, unless it has ended or was made longer by then."""
        self.agenda.add(hold.until, self._heal_if_current, hold)

    def _heal_if_current(self, hold: Hold[int]) -> None:
        if self.holds.is_current(hold):
            self._heal(hold)

    def heal_all(self) -> None:
        """Heal every hold now. If a host cannot be healed, the others still are."""
        for hold in self.holds:
            self._heal(hold)

    def _heal(self, hold: Hold[int]) -> None:
        self.holds.release(hold)
        strikes, target = self._strike_counts[hold.host, hold.kind.effect], target_of(hold.host, hold.kind)
        self._latest[target] = self.queues.add(target, self._undo, hold, strikes)

    def wait(self, target: str) -> None:
        """Wait until the latest heal of this host or service has ended; raises what it raised."""
        if healing := self.latest(target):
            healing.result()

    def _undo(self, hold: Hold[int], strikes: int) -> None:
        """Undo a hold; `strikes` is how often its effect had struck the host by then."""
        arrived = self.arrival(self.handle, hold.host, hold.kind)
        proof: Proof = self.driver.heal(self.handle, hold.host, hold.kind)
        self.journal.record(Healed(hold.fault, hold.host, hold.kind, **proof.to_json()))
        if arrived is not None:
            self.arrivals.add(target_of(hold.host, hold.kind), self._await_arrival, hold, strikes, arrived)

    def _await_arrival(self, hold: Hold[int], strikes: int, arrived: Callable[[], bool]) -> None:
        """Journal that a host or service has its place again, unless the next strike of the same effect comes first."""
        deadline = Deadline(JOIN_LIMIT_S)
        while not self.agenda.stopped and not deadline.passed:
            if self._strike_counts[hold.host, hold.kind.effect] > strikes:
                return
            if arrived():
                self.journal.record(Joined(hold.fault, hold.host, hold.kind))
                return
            time.sleep(JOIN_POLL_S)
