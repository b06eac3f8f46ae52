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
from chaos.holds import Hold, Holds, Outcome
from experiments.fault_kinds import Effect, FaultKind
from infra.cluster import Driver, Handle
from infra.drivers import driver_for
from infra.processes import take_precedence
from infra.services import startup
from infra.strikes.strike import Proof, Strike
from journal.writer import Journal

NS = 1_000_000_000
AIM_AHEAD_NS = NS  # to connect and to open handles
LOOK_AHEAD_NS, LOOK_EACH_NS = NS // 10, 3 * NS // 100  # a look at a host's processes takes tens of milliseconds
MOST_LOOK_AHEAD_NS = NS // 2
SHOOT_AHEAD_NS = 3 * NS // 100  # the order reaches a host over SSH before the moment at which it strikes by itself
AGAIN_NS = NS // 500  # until a strike is looked at again that was not ready when it was due
LONGEST_NAP_S, PLAN_LOOK_S = 0.2, 0.02
MOST_AIMING = 64  # threads
BESIDE_EACH_S = 0.05  # a look at all that goes on beside takes as long as there is much of it
JOIN_LIMIT_S, JOIN_LOOK_S = 90.0, 0.1
SWITCH_INTERVAL_S = 0.0005  # between threads: a proof must not hold up a strike


Arrival = Callable[[Handle, str, FaultKind], Callable[[], bool] | None]


@dataclass(frozen=True)
class Blow:
    """The strike of a planned fault on one of its hosts; `number` is its place in the plan."""

    number: int
    due_ns: int
    fault: int
    host: str
    event: FaultEvent

    @property
    def kind(self) -> FaultKind:
        return self.event.kind

    @property
    def lane(self) -> str:
        return self.kind.service or self.host

    @property
    def look_ahead_ns(self) -> int:
        return min(LOOK_AHEAD_NS + LOOK_EACH_NS * len(self.event.targets), MOST_LOOK_AHEAD_NS)

    @property
    def until_ns(self) -> int:
        return self.due_ns + round(self.event.heal_after * NS)


@dataclass(order=True)
class Action:
    """What is to be done when it is due."""

    due_ns: int
    number: int
    act: Callable[[], None] = field(compare=False)


class Injector:
    """Does what is due in the order of its moments, and never waits for a host in doing so.

    Each strike is prepared in advance and checked again just before it is due. If preparation is late, only that strike
    is late. A thread pool prepares and checks strikes; its threads run at this thread's real-time priority. Proofs and
    heals run on a queue for each host or service: one after the other for one host, in parallel for several.

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
        self.blows: Counter[tuple[str, Effect]] = Counter()
        self.holds: Holds[int] = Holds(plan.get("max_down"))
        self.lanes: dict[str, ThreadPoolExecutor] = defaultdict(partial(ThreadPoolExecutor, 1))
        self.aiming = ThreadPoolExecutor(min(len(handle.hosts) + 1, MOST_AIMING), initializer=take_precedence)
        self.aimed: dict[Blow, Future[Strike]] = {}
        self.healing: dict[str, Future[None]] = {}  # of each lane the last heal
        self.beside: list[Future[None]] = []
        self.stopping = False
        self._numbers = count()
        self._next_look_s = 0.0
        self.queue: list[Action] = []
        for fault, event in enumerate(map(FaultEvent.from_json, plan["events"])):
            due_ns = plan["window_start_ns"] + round(event.at * NS)
            for host in event.targets:
                self._on_the_way(Blow(next(self._numbers), due_ns, fault, host, event), AIM_AHEAD_NS, self._aim)

    def request_stop(self, *_: object) -> None:
        self.stopping = True

    def run(self) -> None:
        """Returns when every fault has been injected and healed, or when it was asked to stop and all is healed.

        Raises the first thing that went wrong, after everything was healed.
        """
        self.journal.write("armed", faults=len(self.queue))
        threading.Thread(target=self._note_clocks, daemon=True).start()
        try:
            self._carry_out()
        finally:
            self._heal_all()
            failures = [failure for future in self.beside if (failure := future.exception())]
            for failure in [sys.exception(), *failures]:
                if failure is not None:
                    self.journal.write("failed", error=" ".join(str(failure).split()))
            self.journal.write("disarmed")
        if failures:
            raise failures[0]

    def _carry_out(self) -> None:
        while self.queue and self._wait_until(self.queue[0].due_ns):
            heapq.heappop(self.queue).act()
            self._look_beside()
        while self._is_busy_beside() and not self.stopping:
            self._look_beside()
            time.sleep(JOIN_LOOK_S)

    def _is_busy_beside(self) -> bool:
        """A heal that is done may have begun to wait for an arrival: looked at in this order, nothing slips through."""
        return not all(future.done() for future in self.beside) or any(t.is_alive() for t in self.awaited)

    def _heal_all(self) -> None:
        """Undo what is held; also when the plan went wrong. What one host refuses keeps no other from its heal."""
        if self.stopping and self.aborted():
            self.journal.write("aborted")
        self.stopping = True
        for hold in self.holds:
            self._heal(hold)
        for pool in (self.aiming, *self.lanes.values()):
            pool.shutdown()
        for aimed in self.aimed.values():
            if aimed.exception() is None:
                aimed.result().close()

    def _note_clocks(self) -> None:
        """Connects to all hosts, which is also why it is done: none must be waited for later."""
        for host, clock in self.driver.clocks(self.handle).items():
            fields = {"offset_ns": clock.offset_ns, "uncertainty_ns": clock.uncertainty_ns}
            self.journal.write("clock", host=host, **fields)

    def _at(self, due_ns: int, number: int, act: Callable[..., None], *arguments: Any) -> None:
        heapq.heappush(self.queue, Action(due_ns, number, partial(act, *arguments)))

    def _on_the_way(self, blow: Blow, ahead_ns: int, act: Callable[..., None], *arguments: Any) -> None:
        """The next thing to do for a blow, so long before it is due; of simultaneous ones in the order of the plan."""
        self._at(blow.due_ns - ahead_ns, blow.number, act, blow, *arguments)

    def _late(self, blow: Blow, act: Callable[..., None], *arguments: Any) -> None:
        """What a blow waits for has not come: look again soon."""
        self._at(time.time_ns() + AGAIN_NS, blow.number, act, blow, *arguments)

    def _aim(self, blow: Blow) -> None:
        self.aimed[blow] = self.aiming.submit(self._once_healed, blow.lane, self._ready, blow)
        self._on_the_way(blow, blow.look_ahead_ns, self._look)

    def _ready(self, blow: Blow) -> Strike:
        return self.driver.aim(self.handle, blow.host, blow.kind, blow.event.options.on(blow.host))

    def _look(self, blow: Blow) -> None:
        if not self.aimed[blow].done():
            self._late(blow, self._look)
            return
        up = self.aiming.submit(self._once_healed, blow.lane, self.aimed[blow].result().refresh)
        self._on_the_way(blow, SHOOT_AHEAD_NS, self._strike, up)

    def _once_healed(self, lane: str, act: Callable[..., Any], *arguments: Any) -> Any:
        """Act on a host or service that nobody is healing."""
        if healing := self.healing.get(lane):
            healing.result()
        return act(*arguments)

    def _strike(self, blow: Blow, up: Future[bool]) -> None:
        if not up.done():
            self._late(blow, self._strike, up)
            return
        is_up = up.result()
        strike = self.aimed.pop(blow).result()
        outcome = self.holds.outcome(blow.host, blow.kind) if is_up else Outcome.ABSORBED
        if outcome is Outcome.INJECTED:
            self._inject(blow, strike)
        else:
            self._leave(blow, strike, outcome)

    def _inject(self, blow: Blow, strike: Strike) -> None:
        """It holds its host from before it goes out: one that fails half-way is undone as well."""
        self._note(STRIKING, blow)
        hold = Hold(blow.host, blow.kind, blow.fault, blow.until_ns)
        self.blows[blow.host, blow.kind.effect] += 1
        taken = self.holds.strike(hold)
        strike.shoot(blow.due_ns)
        for ended in taken:
            self.journal.write("ended", fault=ended.fault, host=ended.host, kind=ended.kind)
        self._at(hold.until, next(self._numbers), self._heal_when_due, hold)
        self.beside.append(self.lanes[blow.lane].submit(self._prove, blow, strike))

    def _prove(self, blow: Blow, strike: Strike) -> None:
        self._note(Outcome.INJECTED, blow, **strike.fire().to_json())

    def _leave(self, blow: Blow, strike: Strike, outcome: Outcome) -> None:
        """A strike that comes to nothing; one that is absorbed may still hold its host for longer."""
        strike.close()
        self._note(outcome, blow)
        if outcome is Outcome.ABSORBED:
            longer = self.holds.absorb(blow.host, blow.kind, blow.until_ns)
            if longer is not None:
                self._at(longer.until, next(self._numbers), self._heal_when_due, longer)

    def _note(self, event: str, blow: Blow, **proof: Any) -> None:
        self.journal.write(event, fault=blow.fault, host=blow.host, kind=blow.kind, planned_ns=blow.due_ns, **proof)

    def _heal_when_due(self, hold: Hold[int]) -> None:
        if self.holds.is_current(hold):
            self._heal(hold)

    def _heal(self, hold: Hold[int]) -> None:
        self.holds.release(hold)
        blows, lane = self.blows[hold.host, hold.kind.effect], hold.kind.service or hold.host
        self.healing[lane] = self.lanes[lane].submit(self._undo, hold, blows)
        self.beside.append(self.healing[lane])

    def _undo(self, hold: Hold[int], blows: int) -> None:
        """Undo the last of so many blows of its effect on the host."""
        arrived = self.arrival(self.handle, hold.host, hold.kind)
        proof: Proof = self.driver.heal(self.handle, hold.host, hold.kind)
        self.journal.write("healed", fault=hold.fault, host=hold.host, kind=hold.kind, **proof.to_json())
        if arrived is not None:
            thread = threading.Thread(target=self._await_arrival, args=(hold, blows, arrived), daemon=True)
            thread.start()
            self.awaited.append(thread)  # by lanes at once: none may take another's out

    def _await_arrival(self, hold: Hold[int], blows: int, arrived: Callable[[], bool]) -> None:
        """Beside the lane, which the next strike may need: a worker takes seconds to join. The next may come first."""
        deadline = time.monotonic() + JOIN_LIMIT_S
        while not self.stopping and time.monotonic() < deadline:
            if self.blows[hold.host, hold.kind.effect] > blows:
                return
            if arrived():
                self.journal.write("joined", fault=hold.fault, host=hold.host, kind=hold.kind)
                return
            time.sleep(JOIN_LOOK_S)

    def _look_beside(self) -> None:
        """Now and then forget what has been done; what failed ends the plan."""
        if time.monotonic() < self._next_look_s:
            return
        self._next_look_s = time.monotonic() + BESIDE_EACH_S
        running = [future for future in self.beside if not future.done()]
        failed = [future for future in self.beside if future.done() and future.exception()]
        self.beside = running + failed
        self.stopping = self.stopping or bool(failed)

    def _wait_until(self, due_ns: int) -> bool:
        """Sleep until then; False when asked to stop meanwhile."""
        while not self.stopping and (left_ns := due_ns - time.time_ns()) > 0:
            time.sleep(min(left_ns / 1e9, LONGEST_NAP_S))
        return not self.stopping


def main() -> None:
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    root, plan_path, journal_path = map(Path, sys.argv[1:])
    handle = Handle.load(root)
    driver, journal = driver_for(handle), Journal(journal_path)
    journal.write(STANDING_BY)
    while not plan_path.exists():
        time.sleep(PLAN_LOOK_S)
    plan = json.loads(plan_path.read_text(encoding="utf-8"))
    injector = Injector(driver, handle, journal, plan, aborted=plan_path.with_name(ABORT_FILE).exists)
    take_precedence()  # not before: where real time is rationed, importing the driver would use seconds of it up
    signal.signal(signal.SIGTERM, injector.request_stop)
    injector.run()


if __name__ == "__main__":
    main()
