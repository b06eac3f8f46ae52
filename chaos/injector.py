"""Injects a fault plan on time, proves what every fault did, and undoes it when it is due.

Run as a service on the gateway: `python -m chaos.injector ROOT PLAN.json JOURNAL.jsonl`. PLAN.json holds
`window_start_ns`, `events` (as `chaos.plan` draws them) and `max_down`. Every strike of a fault on a host is journaled
as it happens, by its outcome (`chaos.holds`): `injected` with its proof, `absorbed` or `withheld`; then `healed` with
the proof of that, once no fault holds the host any more, and `joined` once a lost host or service has its place again.
SIGTERM heals what is held and ends; it is journaled as `aborted` when there is the file `ABORT_FILE` beside the plan.
What goes wrong is journaled as `failed`, and ends the plan in the same way. The last entry is always `disarmed`.
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

from chaos.events import ABORT_FILE, FaultEvent
from chaos.holds import Hold, Holds, Outcome
from experiments.fault_kinds import Effect, FaultKind
from infra import startup
from infra.cluster import Driver, Handle
from infra.drivers import driver_for
from infra.journal import Journal
from infra.processes import take_precedence
from infra.strikes.strike import Proof, Strike

AIM_AHEAD_S, LOOK_AHEAD_S, LOOK_EACH_S = 1.0, 0.1, 0.03  # a look at a host's processes takes tens of milliseconds
SHOOT_AHEAD_S = 0.03  # the order reaches a host over SSH before the moment at which it strikes by itself
LONGEST_NAP_S = 0.2
MANY = 16  # hosts: as many looks one after the other, each a round trip, would not be over when the strikes are due
BESIDE_EACH_S = 0.05  # a look at all that goes on beside takes as long as there is much of it
JOIN_LIMIT_S, JOIN_LOOK_S = 90.0, 0.1
SWITCH_INTERVAL_S = 0.0005  # between threads: a proof must not hold up a strike


Arrival = Callable[[Handle, str, FaultKind], Callable[[], bool] | None]


@dataclass(frozen=True)
class Blow:
    """The strike of a planned fault on one of its hosts."""

    due_ns: int
    fault: int
    host: str
    event: FaultEvent

    @property
    def heal_after_ns(self) -> int:
        return round(self.event.heal_after * 1e9)


@dataclass(order=True)
class Action:
    """A blow, or the end of a hold, when it is due."""

    due_ns: int
    number: int
    what: Blow | Hold[int] = field(compare=False)


class Injector:
    """Carries out the actions in the order in which they are due.

    What takes time (proofs, heals) goes on beside, in the lane of its host or service: in order for one, at once for
    many. `arrival` is `infra.startup.arrival`; `aborted` tells whether a request to stop is an abort.
    Aims are no part of a lane: a proof that takes seconds, as of a grace period, must not hold up what is due then.
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
        self.aiming = ThreadPoolExecutor(max(len(handle.hosts), 1))
        self.beside: list[Future[None]] = []
        self.stopping = False
        self._numbers = count()
        self._next_look_s = 0.0
        self.queue: list[Action] = []
        for fault, event in enumerate(map(FaultEvent.from_json, plan["events"])):
            due_ns = plan["window_start_ns"] + round(event.at * 1e9)
            for host in event.targets:
                self._push(due_ns, Blow(due_ns, fault, host, event))

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
            failures = [future.exception() for future in self.beside if future.exception()]
            for failure in [sys.exception(), *failures]:
                if failure is not None:
                    self.journal.write("failed", error=" ".join(str(failure).split()))
            self.journal.write("disarmed")
        if failures:
            raise failures[0]

    def _carry_out(self) -> None:
        while self.queue and self._wait_until(self.queue[0].due_ns - int(AIM_AHEAD_S * 1e9)):
            what = heapq.heappop(self.queue).what
            if isinstance(what, Hold):
                self._heal_when_due(what)
            else:
                self._strike([what, *self._due_with(what)])
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

    def _note_clocks(self) -> None:
        """Connects to all hosts, which is also why it is done: none must be waited for later."""
        for host, clock in self.driver.clocks(self.handle).items():
            fields = {"offset_ns": clock.offset_ns, "uncertainty_ns": clock.uncertainty_ns}
            self.journal.write("clock", host=host, **fields)

    def _push(self, due_ns: int, what: Blow | Hold[int]) -> None:
        heapq.heappush(self.queue, Action(due_ns, next(self._numbers), what))

    def _due_with(self, first: Blow) -> list[Blow]:
        """Take what strikes at the same moment: none must wait for another."""
        found = []
        while self.queue and self.queue[0].due_ns == first.due_ns and isinstance(self.queue[0].what, Blow):
            found.append(heapq.heappop(self.queue).what)
        return found

    def _strike(self, volley: list[Blow]) -> None:
        """Make ready what may strike, look at the hosts again shortly before, and strike when it is due."""
        due_ns = volley[0].due_ns
        readied = [self.aiming.submit(self._ready, blow) for blow in volley]
        strikes = [future.result() for future in readied]
        self._wait_until(due_ns - int(min(LOOK_AHEAD_S + LOOK_EACH_S * len(volley), AIM_AHEAD_S / 2) * 1e9))
        up = self._look_again(volley, strikes)
        if not self._wait_until(due_ns - int(SHOOT_AHEAD_S * 1e9)):
            for strike in strikes:
                strike.close()
            return
        for blow, strike, is_up in zip(volley, strikes, up, strict=True):
            outcome = self.holds.outcome(blow.host, blow.event.kind) if is_up else Outcome.ABSORBED
            if outcome is Outcome.INJECTED:
                self._inject(blow, strike)
            else:
                self._leave(blow, strike, outcome)

    def _look_again(self, volley: list[Blow], strikes: list[Strike]) -> list[bool]:
        """Which hosts are up; a few are looked at in this thread, which has precedence, many at once in their lanes."""
        if len(volley) < MANY:
            return [strike.refresh() for strike in strikes]
        pairs = zip(volley, strikes, strict=True)
        looks = [self._beside(blow.host, blow.event.kind, strike.refresh) for blow, strike in pairs]
        return [look.result() for look in looks]

    def _ready(self, blow: Blow) -> Strike:
        return self.driver.aim(self.handle, blow.host, blow.event.kind, blow.event.options.on(blow.host))

    def _inject(self, blow: Blow, strike: Strike) -> None:
        strike.shoot(blow.due_ns)
        hold = Hold(blow.host, blow.event.kind, blow.fault, blow.due_ns + blow.heal_after_ns)
        self.blows[blow.host, hold.kind.effect] += 1
        for ended in self.holds.strike(hold):
            self.journal.write("ended", fault=ended.fault, host=ended.host, kind=ended.kind)
        self._push(hold.until, hold)
        self.beside.append(self._beside(blow.host, blow.event.kind, self._prove, blow, strike))

    def _prove(self, blow: Blow, strike: Strike) -> None:
        self._note(Outcome.INJECTED, blow, **strike.fire().to_json())

    def _leave(self, blow: Blow, strike: Strike, outcome: Outcome) -> None:
        """A strike that comes to nothing; one that is absorbed may still hold its host for longer."""
        strike.close()
        self._note(outcome, blow)
        if outcome is Outcome.ABSORBED:
            longer = self.holds.absorb(blow.host, blow.event.kind, blow.due_ns + blow.heal_after_ns)
            if longer is not None:
                self._push(longer.until, longer)

    def _note(self, outcome: Outcome, blow: Blow, **proof: Any) -> None:
        kind, planned_ns = blow.event.kind, blow.due_ns
        self.journal.write(outcome, fault=blow.fault, host=blow.host, kind=kind, planned_ns=planned_ns, **proof)

    def _heal_when_due(self, hold: Hold[int]) -> None:
        if self.holds.is_current(hold) and self._wait_until(hold.until):
            self._heal(hold)

    def _heal(self, hold: Hold[int]) -> None:
        self.holds.release(hold)
        blows = self.blows[hold.host, hold.kind.effect]
        self.beside.append(self._beside(hold.host, hold.kind, self._undo, hold, blows))

    def _undo(self, hold: Hold[int], blows: int) -> None:
        """Undo the last of so many blows of its effect on the host."""
        arrived = self.arrival(self.handle, hold.host, hold.kind)
        proof: Proof = self.driver.heal(self.handle, hold.host, hold.kind)
        self.journal.write("healed", fault=hold.fault, host=hold.host, kind=hold.kind, **proof.to_json())
        if arrived is not None:
            thread = threading.Thread(target=self._await_arrival, args=(hold, blows, arrived), daemon=True)
            self.awaited = [other for other in self.awaited if other.is_alive()] + [thread]
            thread.start()

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

    def _beside(self, host: str, kind: FaultKind, act: Callable[..., Any], *arguments: Any) -> Future[Any]:
        return self.lanes[kind.service or host].submit(act, *arguments)

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
    plan = json.loads(plan_path.read_text(encoding="utf-8"))
    aborted = plan_path.with_name(ABORT_FILE).exists
    injector = Injector(driver_for(handle), handle, Journal(journal_path), plan, aborted=aborted)
    take_precedence()  # not before: where real time is rationed, importing the driver would use seconds of it up
    signal.signal(signal.SIGTERM, injector.request_stop)
    injector.run()


if __name__ == "__main__":
    main()
