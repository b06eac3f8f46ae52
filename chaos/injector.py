"""Injects a fault plan on time, proves what every fault did, and undoes it when it is due.

Run as a service on the gateway: `python -m chaos.injector ROOT PLAN.json JOURNAL.jsonl`. It stands by until PLAN.json
exists, a `FaultPlan`. Every strike of a fault on a host is journaled when it happens, by its outcome (`chaos.holds`):

    striking              before the strike: if the injector dies, this entry says what must be undone
    injected              after the strike, with its proof
    absorbed, withheld    the strike was left out
    missed                the strike could not be prepared, or its host could not be looked at; the plan goes on, unless
                          the injector itself has no descriptors or no memory left
    healed                no fault holds the host any more; with the proof of that
    joined                a lost host or service has its place again

SIGTERM heals all faults in force and ends; if the file `ABORT_FILE` is beside the plan, this is journaled as `aborted`.
Any other error is journaled as `failed`, and ends the plan in the same way. The last entry is always `disarmed`, unless
SIGTERM comes while the injector stands by: then it ends at once.
"""

from __future__ import annotations

import errno
import signal
import sys
import threading
from collections import defaultdict, deque
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from chaos.events import ABORT_FILE
from chaos.fault_plan import FaultPlan
from chaos.holds import Hold, Holds, StrikeOutcome
from chaos.injection.agenda import Agenda
from chaos.injection.healing import Arrival, Healing
from chaos.injection.planned_strike import PlannedStrike, planned_strikes
from chaos.injection.preparation import Preparation
from chaos.injection.target_queues import TargetQueues
from experiments.errors import EnvironmentFailure
from experiments.waiting import poll_until
from infra import arrivals
from infra.cluster import Driver, Handle
from infra.drivers import driver_for
from infra.processes import take_precedence
from infra.strikes.strike import Strike
from journal.events.common import Failed
from journal.events.injector import (
    Aborted,
    Absorbed,
    Armed,
    Disarmed,
    Ended,
    HostClock,
    Injected,
    Missed,
    StandingBy,
    StrikeEvent,
    Striking,
    Withheld,
)
from journal.writer import Journal

PLAN_POLL_S, END_POLL_S = 0.02, 0.1
SWITCH_INTERVAL_S = 0.0005  # Python's switch interval between threads, so that a proof does not delay a strike
NOT_REACHED = (EnvironmentFailure, OSError)
USED_UP = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})  # descriptors or memory, of this process or machine
LEFT_AS = {StrikeOutcome.ABSORBED: Absorbed, StrikeOutcome.WITHHELD: Withheld}  # strikes that are not carried out


class Injector:
    """Carries out the steps of a plan in the order of their due times. Its main thread never waits for a host.

    Each strike is prepared in advance and checked again just before it is due. If preparation is late, only that strike
    is late. Proofs and heals run on one thread for each host or service (its target), so those of one target never
    overlap.

    `arrival` is `infra.arrivals.arrival`. `aborted` tells whether a request to stop is an abort.
    """

    def __init__(
        self,
        driver: Driver,
        handle: Handle,
        journal: Journal,
        plan: FaultPlan,
        arrival: Arrival = arrivals.arrival,
        aborted: Callable[[], bool] = lambda: False,
    ) -> None:
        self.driver, self.handle, self.journal, self.aborted = driver, handle, journal, aborted
        self.agenda = Agenda()
        strikes = list(planned_strikes(plan))
        targets = {each.target for each in strikes}
        self.queues = TargetQueues(targets, self.agenda.stop)
        lost = (each.target for each in strikes if each.kind.must_come_back)
        self.arrivals = TargetQueues(lost, self.agenda.stop)
        self.holds: Holds[int] = Holds(plan.max_down)
        self.healing = Healing(driver, handle, journal, arrival, self.agenda, self.queues, self.arrivals, self.holds)
        self.preparation = Preparation(driver, handle, targets, self.healing.wait)
        self._clocks = threading.Thread(target=self._note_clocks, daemon=True)
        self._clock_failures: list[BaseException] = []
        self._ending, self._is_disarmed = threading.Lock(), False  # a host may tell its clock after the last entry
        self._to_come: defaultdict[str, deque[PlannedStrike]] = defaultdict(deque)  # by target, in their order
        for planned in sorted(strikes, key=lambda each: (each.due_ns, each.number)):
            self._to_come[planned.target].append(planned)
            self._schedule(planned, planned.prepare_ns, self._prepare)

    def request_stop(self, *_: object) -> None:
        """Have `run` heal everything and return; a signal handler."""
        self.agenda.stop()

    def run(self) -> None:
        """Run the plan. Returns when every fault is healed: at the end of the plan, or early if asked to stop.

        Raises the first failure, but heals everything first.
        """
        self.journal.record(Armed(len(self.agenda)))
        self._clocks.start()
        try:
            self._carry_out()
        finally:
            self._heal_all()
            failures = [*self.queues.failures, *self.arrivals.failures, *self._clock_failures]
            for failure in [sys.exception(), *failures]:
                if failure is not None:
                    self.journal.record(Failed(one_line(failure)))
            with self._ending:
                self._is_disarmed = True
                self.journal.record(Disarmed())
        if failures:
            raise failures[0]

    def _carry_out(self) -> None:
        for act in self.agenda.due():
            act()
        poll_until(self._is_over, interval_s=END_POLL_S)

    def _is_over(self) -> bool:
        """Whether no proof, heal or wait for an arrival goes on, nor the look at the clocks.

        Heals come first, because they start such waits.
        """
        return self.agenda.stopped or not (self.queues.busy or self.arrivals.busy or self._clocks.is_alive())

    def _heal_all(self) -> None:
        """Undo every hold, also after a failure."""
        if self.agenda.stopped and self.aborted():
            self.journal.record(Aborted())
        self.agenda.stop()
        self.preparation.stop()
        self.healing.heal_all()
        self.queues.close()
        self.arrivals.close()
        self.preparation.close()

    def _note_clocks(self) -> None:
        """Journal the clock of each host. This also connects to all hosts, so that no strike waits for a connection."""
        take_precedence()  # as the connections do that it makes
        try:
            clocks = self.driver.clocks(self.handle)
        except Exception as failure:  # whatever it is: nobody else would hear of what only this thread knows
            self._clock_failures.append(failure)
            self.agenda.stop()
            return
        with self._ending:
            if not self._is_disarmed:
                for host, clock in clocks.items():
                    self.journal.record(HostClock(host, clock.offset_ns, clock.uncertainty_ns))

    def _schedule(self, planned: PlannedStrike, due_ns: int, act: Callable[..., None], *arguments: Any) -> None:
        """Schedule the next step of a strike; simultaneous steps keep the plan's order."""
        self.agenda.add(due_ns, act, planned, *arguments, number=planned.number)

    def _prepare(self, planned: PlannedStrike) -> None:
        self.preparation.begin(planned)
        self._schedule(planned, planned.recheck_ns, self._recheck)

    def _recheck(self, planned: PlannedStrike) -> None:
        if not self.preparation.is_prepared(planned):
            self.agenda.retry(self._recheck, planned, number=planned.number)
            return
        heal, up = self.healing.latest(planned.target), self.preparation.recheck(planned)
        self._schedule(planned, planned.order_ns, self._strike, up, heal)

    def _strike(self, planned: PlannedStrike, up: Future[bool], heal: Future[None] | None) -> None:
        """Strike if the host is `up`. If a heal may have changed that, look again: `heal` was the latest by then.

        A strike waits for the earlier ones on its host: a long heal holds up several, which would all come at once.
        """
        if not up.done() or self._to_come[planned.target][0] is not planned:
            self.agenda.retry(self._strike, planned, up, heal, number=planned.number)
            return
        failure = up.exception()
        if failure is not None and not is_of_the_host(failure):
            raise failure
        is_up = failure is not None or up.result()
        outcome = self.holds.outcome(planned.host, planned.kind)
        if outcome is StrikeOutcome.INJECTED and self.healing.may_have_changed(planned.target, since=heal):
            self._recheck(planned)
            return
        self._to_come[planned.target].popleft()
        if outcome is not StrikeOutcome.INJECTED or not is_up:
            self._leave(planned, outcome if is_up else StrikeOutcome.ABSORBED)
        elif failure is not None:
            self._miss(planned, failure)
        else:
            self._inject(planned, self.preparation.take(planned))

    def _inject(self, planned: PlannedStrike, strike: Strike) -> None:
        """Carry out a strike. Its hold is recorded first, so that a strike that fails half-way is undone, too."""
        self._note(Striking, planned)
        hold = Hold(planned.host, planned.kind, planned.fault, planned.until_ns)
        self.healing.note_strike(planned.host, planned.kind.effect)
        taken = self.holds.strike(hold)
        strike.shoot(planned.due_ns)
        for ended in taken:
            self.journal.record(Ended(ended.fault, ended.host, ended.kind))
        self.healing.plan(hold)
        self.queues.add(planned.target, self._prove, planned, strike)

    def _prove(self, planned: PlannedStrike, strike: Strike) -> None:
        self._note(Injected, planned, **strike.fire().to_json())

    def _miss(self, planned: PlannedStrike, failure: BaseException) -> None:
        """Give up a strike that cannot be carried out. It concerns no other host: the others are struck as planned."""
        self.preparation.give_up(planned)
        self._note(Missed, planned, error=one_line(failure))

    def _leave(self, planned: PlannedStrike, outcome: StrikeOutcome) -> None:
        """Give up a strike that must not be carried out. If it is absorbed, it may prolong the hold on its host."""
        self.preparation.give_up(planned)
        self._note(LEFT_AS[outcome], planned)
        if outcome is StrikeOutcome.ABSORBED:
            longer = self.holds.absorb(planned.host, planned.kind, planned.until_ns)
            if longer is not None:
                self.healing.plan(longer)

    def _note(self, kind: type[StrikeEvent], planned: PlannedStrike, **more: Any) -> None:
        self.journal.record(kind(planned.fault, planned.host, planned.kind, planned.due_ns, **more))


def is_of_the_host(failure: BaseException) -> bool:
    """Whether a strike failed because of its host, which concerns no other one, rather than because of the injector.

    If the injector lacks descriptors or memory, every strike fails alike. Code that connects or starts programs tells
    such an error in its own words; then the error is the context of the failure.
    """
    told: BaseException | None = failure
    while told is not None:
        if isinstance(told, OSError) and told.errno in USED_UP:
            return False
        told = told.__context__
    return isinstance(failure, NOT_REACHED)


def one_line(failure: BaseException) -> str:
    """What an exception says, without line breaks."""
    return " ".join(str(failure).split())


def main() -> None:
    """Inject the plan that appears at a path: `injector.py ROOT PLAN.json JOURNAL.jsonl`."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    root, plan_path, journal_path = map(Path, sys.argv[1:])
    handle = Handle.load(root)
    driver, journal = driver_for(handle), Journal(journal_path)
    journal.record(StandingBy())
    poll_until(plan_path.exists, interval_s=PLAN_POLL_S)
    plan = FaultPlan.read(plan_path)
    injector = Injector(driver, handle, journal, plan, aborted=plan_path.with_name(ABORT_FILE).exists)
    take_precedence()  # after the imports, which would use up seconds of a limited real-time budget
    signal.signal(signal.SIGTERM, injector.request_stop)
    injector.run()


if __name__ == "__main__":
    main()
