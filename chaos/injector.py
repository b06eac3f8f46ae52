"""Injects a fault plan on time, proves what every fault did, and undoes it when it is due.

Run as a service on the gateway: `python -m chaos.injector ROOT PLAN.json JOURNAL.jsonl`. It stands by until there is
PLAN.json, which holds `window_start_ns`, `events` (as `chaos.plan` draws them) and `max_down`. Every strike of a fault
on a host is journaled as it happens, by its outcome (`chaos.holds`): `injected` with its proof, and `striking` before
it, so that whoever finds the injector dead knows what to undo; `absorbed` or `withheld`; then `healed` with the proof
of that, once no fault holds the host any more, and `joined` once a lost host or service has its place again. SIGTERM
heals what is held and ends; it is journaled as `aborted` when there is the file `ABORT_FILE` beside the plan. What goes
wrong is journaled as `failed`, and ends the plan in the same way. The last entry is always `disarmed`.
"""

from __future__ import annotations

import heapq
import json
import signal
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from chaos.events import ABORT_FILE, STANDING_BY, STRIKING, FaultEvent
from chaos.holds import Hold, Holds, StrikeOutcome
from experiments.fault_kinds import Effect, FaultKind
from infra.cluster import Driver, Handle
from infra.drivers import driver_for
from infra.processes import take_precedence
from infra.services import startup
from infra.strikes.strike import Proof, Strike
from journal.writer import Journal

NS = 1_000_000_000
PREPARE_AHEAD_NS = NS  # to connect and to open handles
RECHECK_AHEAD_NS, RECHECK_EACH_NS = NS // 10, 3 * NS // 100  # listing processes takes tens of ms
MOST_RECHECK_AHEAD_NS = NS // 2
SHOOT_AHEAD_NS = 3 * NS // 100  # the order must reach a host over SSH before the due time, at which its agent strikes
RETRY_NS = NS // 500  # between checks whether the preparation of a strike has ended
LONGEST_SLEEP_S, PLAN_POLL_S = 0.2, 0.02
MOST_THREADS = 64  # that prepare and check strikes
BACKGROUND_CHECK_S = 0.05  # the time of a check grows with the number of background tasks
JOIN_LIMIT_S, JOIN_POLL_S = 90.0, 0.1
SWITCH_INTERVAL_S = 0.0005  # Python's switch interval between threads, so that a proof does not delay a strike


Arrival = Callable[[Handle, str, FaultKind], Callable[[], bool] | None]


@dataclass(frozen=True)
class PlannedStrike:
    """The strike of a planned fault on one of its hosts; `number` is its place in the plan."""

    number: int
    due_ns: int
    fault: int
    host: str
    event: FaultEvent

    @property
    def kind(self) -> FaultKind:
        """The kind of the fault."""
        return self.event.kind

    @property
    def target(self) -> str:
        """The service or host that it strikes; one thread proves and heals all strikes on a target."""
        return self.kind.service or self.host

    @property
    def recheck_ahead_ns(self) -> int:
        """How long before its due time the strike is checked again [ns]; longer if many hosts are struck at once."""
        return min(RECHECK_AHEAD_NS + RECHECK_EACH_NS * len(self.event.targets), MOST_RECHECK_AHEAD_NS)

    @property
    def until_ns(self) -> int:
        """When the fault is to be healed (UTC nanoseconds)."""
        return self.due_ns + round(self.event.heal_after * NS)


@dataclass(order=True)
class Action:
    """One step of the injector's schedule. Steps that are due at the same time run in the order of `number`."""

    due_ns: int
    number: int
    act: Callable[[], None] = field(compare=False)


class Injector:
    """Carries out the steps of a plan in the order of their due times. Its main thread never waits for a host.

    Each strike is prepared in advance and checked again just before it is due. If preparation is late, only that strike
    is late. A thread pool prepares and checks strikes; its threads run at this thread's real-time priority. Proofs and
    heals run on one thread for each host or service (its target), so those of one target never overlap.

    `arrival` is `infra.services.startup.arrival`. `aborted` tells whether a request to stop is an abort.
    """

    def __init__(
        self,
        driver: Driver,
        handle: Handle,
        journal: Journal,
        plan: dict[str, Any],
        arrival: Arrival = startup.arrival,
        aborted: Callable[[], bool] = lambda: False,
    ) -> None:
        self.driver, self.handle, self.journal = driver, handle, journal
        self.arrival, self.aborted = arrival, aborted
        self.awaited: list[threading.Thread] = []
        self.strike_counts: Counter[tuple[str, Effect]] = Counter()
        self.holds: Holds[int] = Holds(plan.get("max_down"))
        self.threads: dict[str, ThreadPoolExecutor] = defaultdict(partial(ThreadPoolExecutor, 1))
        threads = min(len(handle.hosts) + 1, MOST_THREADS)
        self.preparation = ThreadPoolExecutor(threads, initializer=take_precedence)
        self.prepared: dict[PlannedStrike, Future[Strike]] = {}
        self.healing: dict[str, Future[None]] = {}  # by target, its latest heal
        self.background: list[Future[None]] = []
        self.stopping = False
        self._numbers = count()
        self._next_check_s = 0.0
        self.queue: list[Action] = []
        for fault, event in enumerate(map(FaultEvent.from_json, plan["events"])):
            due_ns = plan["window_start_ns"] + round(event.at * NS)
            for host in event.targets:
                planned = PlannedStrike(next(self._numbers), due_ns, fault, host, event)
                self._schedule(planned, PREPARE_AHEAD_NS, self._prepare)

    def request_stop(self, *_: object) -> None:
        """Have `run` heal everything and return; a signal handler."""
        self.stopping = True

    def run(self) -> None:
        """Run the plan. Returns when every fault is healed: at the end of the plan, or early if asked to stop.

        Raises the first failure, but heals everything first.
        """
        self.journal.write("armed", faults=len(self.queue))
        threading.Thread(target=self._note_clocks, daemon=True).start()
        try:
            self._carry_out()
        finally:
            self._heal_all()
            failures = [failure for future in self.background if (failure := future.exception())]
            for failure in [sys.exception(), *failures]:
                if failure is not None:
                    self.journal.write("failed", error=" ".join(str(failure).split()))
            self.journal.write("disarmed")
        if failures:
            raise failures[0]

    def _carry_out(self) -> None:
        while self.queue and self._wait_until(self.queue[0].due_ns):
            heapq.heappop(self.queue).act()
            self._check_background()
        while self._is_busy_in_background() and not self.stopping:
            self._check_background()
            time.sleep(JOIN_POLL_S)

    def _is_busy_in_background(self) -> bool:
        """Whether a proof, a heal or a wait for an arrival goes on. Heals come first, because they start such waits."""
        return not all(future.done() for future in self.background) or any(t.is_alive() for t in self.awaited)

    def _heal_all(self) -> None:
        """Undo every hold, also after a failure. If a host cannot be healed, the others still are."""
        if self.stopping and self.aborted():
            self.journal.write("aborted")
        self.stopping = True
        for hold in self.holds:
            self._heal(hold)
        for pool in (self.preparation, *self.threads.values()):
            pool.shutdown()
        for prepared in self.prepared.values():
            if prepared.exception() is None:
                prepared.result().close()

    def _note_clocks(self) -> None:
        """Journal the clock of each host. This also connects to all hosts, so that no strike waits for a connection."""
        for host, clock in self.driver.clocks(self.handle).items():
            fields = {"offset_ns": clock.offset_ns, "uncertainty_ns": clock.uncertainty_ns}
            self.journal.write("clock", host=host, **fields)

    def _at(self, due_ns: int, number: int, act: Callable[..., None], *arguments: Any) -> None:
        heapq.heappush(self.queue, Action(due_ns, number, partial(act, *arguments)))

    def _schedule(self, planned: PlannedStrike, ahead_ns: int, act: Callable[..., None], *arguments: Any) -> None:
        """Schedule the next step of a strike `ahead_ns` before it is due; simultaneous steps keep the plan's order."""
        self._at(planned.due_ns - ahead_ns, planned.number, act, planned, *arguments)

    def _retry(self, planned: PlannedStrike, act: Callable[..., None], *arguments: Any) -> None:
        """Try this step again soon, because what it waits for has not ended yet."""
        self._at(time.time_ns() + RETRY_NS, planned.number, act, planned, *arguments)

    def _prepare(self, planned: PlannedStrike) -> None:
        strike = self.preparation.submit(self._once_healed, planned.target, self._prepared_strike, planned)
        self.prepared[planned] = strike
        self._schedule(planned, planned.recheck_ahead_ns, self._recheck)

    def _prepared_strike(self, planned: PlannedStrike) -> Strike:
        return self.driver.prepare(self.handle, planned.host, planned.kind, planned.event.options.on(planned.host))

    def _recheck(self, planned: PlannedStrike) -> None:
        if not self.prepared[planned].done():
            self._retry(planned, self._recheck)
            return
        up = self.preparation.submit(self._once_healed, planned.target, self.prepared[planned].result().refresh)
        self._schedule(planned, SHOOT_AHEAD_NS, self._strike, up)

    def _once_healed(self, target: str, act: Callable[..., Any], *arguments: Any) -> Any:
        """Act once the latest heal of this host or service has ended."""
        if healing := self.healing.get(target):
            healing.result()
        return act(*arguments)

    def _strike(self, planned: PlannedStrike, up: Future[bool]) -> None:
        if not up.done():
            self._retry(planned, self._strike, up)
            return
        is_up = up.result()
        strike = self.prepared.pop(planned).result()
        outcome = self.holds.outcome(planned.host, planned.kind) if is_up else StrikeOutcome.ABSORBED
        if outcome is StrikeOutcome.INJECTED:
            self._inject(planned, strike)
        else:
            self._leave(planned, strike, outcome)

    def _inject(self, planned: PlannedStrike, strike: Strike) -> None:
        """Carry out a strike. Its hold is recorded first, so that a strike that fails half-way is undone, too."""
        self._note(STRIKING, planned)
        hold = Hold(planned.host, planned.kind, planned.fault, planned.until_ns)
        self.strike_counts[planned.host, planned.kind.effect] += 1
        taken = self.holds.strike(hold)
        strike.shoot(planned.due_ns)
        for ended in taken:
            self.journal.write("ended", fault=ended.fault, host=ended.host, kind=ended.kind)
        self._at(hold.until, next(self._numbers), self._heal_when_due, hold)
        self.background.append(self.threads[planned.target].submit(self._prove, planned, strike))

    def _prove(self, planned: PlannedStrike, strike: Strike) -> None:
        self._note(StrikeOutcome.INJECTED, planned, **strike.fire().to_json())

    def _leave(self, planned: PlannedStrike, strike: Strike, outcome: StrikeOutcome) -> None:
        """Give up a strike that must not be carried out. If it is absorbed, it may prolong the hold on its host."""
        strike.close()
        self._note(outcome, planned)
        if outcome is StrikeOutcome.ABSORBED:
            longer = self.holds.absorb(planned.host, planned.kind, planned.until_ns)
            if longer is not None:
                self._at(longer.until, next(self._numbers), self._heal_when_due, longer)

    def _note(self, event: str, planned: PlannedStrike, **proof: Any) -> None:
        about: dict[str, Any] = {"fault": planned.fault, "host": planned.host, "kind": planned.kind}
        self.journal.write(event, **about, planned_ns=planned.due_ns, **proof)

    def _heal_when_due(self, hold: Hold[int]) -> None:
        if self.holds.is_current(hold):
            self._heal(hold)

    def _heal(self, hold: Hold[int]) -> None:
        self.holds.release(hold)
        strikes, target = self.strike_counts[hold.host, hold.kind.effect], hold.kind.service or hold.host
        self.healing[target] = self.threads[target].submit(self._undo, hold, strikes)
        self.background.append(self.healing[target])

    def _undo(self, hold: Hold[int], strikes: int) -> None:
        """Undo a hold; `strikes` is how often its effect had struck the host by then."""
        arrived = self.arrival(self.handle, hold.host, hold.kind)
        proof: Proof = self.driver.heal(self.handle, hold.host, hold.kind)
        self.journal.write("healed", fault=hold.fault, host=hold.host, kind=hold.kind, **proof.to_json())
        if arrived is not None:
            thread = threading.Thread(target=self._await_arrival, args=(hold, strikes, arrived), daemon=True)
            thread.start()
            self.awaited.append(thread)  # only appended to, since several threads do so at once

    def _await_arrival(self, hold: Hold[int], strikes: int, arrived: Callable[[], bool]) -> None:
        """Journal that a host or service has its place again, unless the next strike of the same effect comes first.

        A worker takes seconds to join. This runs in a thread of its own: the next strike may need that of the target.
        """
        deadline = time.monotonic() + JOIN_LIMIT_S
        while not self.stopping and time.monotonic() < deadline:
            if self.strike_counts[hold.host, hold.kind.effect] > strikes:
                return
            if arrived():
                self.journal.write("joined", fault=hold.fault, host=hold.host, kind=hold.kind)
                return
            time.sleep(JOIN_POLL_S)

    def _check_background(self) -> None:
        """Drop background tasks that have ended. If one of them failed, the plan ends."""
        if time.monotonic() < self._next_check_s:
            return
        self._next_check_s = time.monotonic() + BACKGROUND_CHECK_S
        running = [future for future in self.background if not future.done()]
        failed = [future for future in self.background if future.done() and future.exception()]
        self.background = running + failed
        self.stopping = self.stopping or bool(failed)

    def _wait_until(self, due_ns: int) -> bool:
        """Sleep until `due_ns`; returns False if the injector was asked to stop before that."""
        while not self.stopping and (left_ns := due_ns - time.time_ns()) > 0:
            time.sleep(min(left_ns / 1e9, LONGEST_SLEEP_S))
        return not self.stopping


def main() -> None:
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    root, plan_path, journal_path = map(Path, sys.argv[1:])
    handle = Handle.load(root)
    driver, journal = driver_for(handle), Journal(journal_path)
    journal.write(STANDING_BY)
    while not plan_path.exists():
        time.sleep(PLAN_POLL_S)
    plan = json.loads(plan_path.read_text(encoding="utf-8"))
    injector = Injector(driver, handle, journal, plan, aborted=plan_path.with_name(ABORT_FILE).exists)
    take_precedence()  # after the imports, which would use up seconds of a limited real-time budget
    signal.signal(signal.SIGTERM, injector.request_stop)
    injector.run()


if __name__ == "__main__":
    main()
