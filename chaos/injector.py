"""Injects a fault plan on time, proves every death, and brings the dead hosts back.

Run as a service on the gateway: `python -m chaos.injector ROOT PLAN.json JOURNAL.jsonl`. PLAN.json holds
`window_start_ns` and `events` (as `chaos.plan` draws them). Every fault is journaled as it happens: `injected` with
the proof of death, or `absorbed` when the host was down already; then `healed`, once no fault holds the host down any
more (as `chaos.composition` has it). SIGTERM heals what is down and ends.
"""

from __future__ import annotations

import heapq
import json
import signal
import sys
import threading
import time
from dataclasses import asdict, dataclass, field
from itertools import compress
from operator import not_
from pathlib import Path
from typing import Any

from infra.cluster import Driver, Handle
from infra.drivers import driver_for
from infra.journal import Journal
from infra.processes import DeathProof, take_precedence

AIM_AHEAD_S, LOOK_AHEAD_S, LOOK_EACH_S = 1.0, 0.1, 0.03  # a look at a host's processes takes tens of milliseconds
SHOOT_AHEAD_S = 0.03  # the order reaches a host over SSH before the moment at which it strikes by itself
LONGEST_NAP_S = 0.2


@dataclass(order=True)
class Action:
    """Something due: a kill of a planned fault, or the return of a host that one struck."""

    due_ns: int
    fault: int
    heals: bool
    host: str = field(compare=False)
    heal_after_s: float = field(compare=False, default=0.0)


class Injector:
    """Carries out the actions in the order in which they are due."""

    def __init__(self, driver: Driver, handle: Handle, journal: Journal, plan: dict[str, Any]) -> None:
        self.driver, self.handle, self.journal = driver, handle, journal
        self.down: dict[str, Action] = {}  # host -> its return: the last heal of the faults that hold it
        self.stopping = False
        self.queue = [
            Action(plan["window_start_ns"] + round(event["at"] * 1e9), fault, False, host, event["heal_after"])
            for fault, event in enumerate(plan["events"])
            for host in event["targets"]
        ]
        heapq.heapify(self.queue)

    def request_stop(self, *_: object) -> None:
        self.stopping = True

    def run(self) -> None:
        self.journal.write("armed", faults=len(self.queue))
        threading.Thread(target=self.driver.inspect, args=(self.handle,), daemon=True).start()  # connects to all hosts
        while self.queue and self._wait_until(self.queue[0].due_ns - int(AIM_AHEAD_S * 1e9)):
            action = heapq.heappop(self.queue)
            if action.heals:
                self._heal_if_released(action)
            else:
                self._strike([action, *self._due_with(action)])
        for _, action in sorted(self.down.items()):
            self._heal(action)
        self.journal.write("disarmed")

    def _due_with(self, action: Action) -> list[Action]:
        """Take what strikes other hosts at the same moment: they must not wait for the proof of the first death."""
        found = []
        while self.queue and self.queue[0].due_ns == action.due_ns and not self.queue[0].heals:
            found.append(heapq.heappop(self.queue))
        return found

    def _strike(self, volley: list[Action]) -> None:
        due_ns = volley[0].due_ns
        aims = [self.driver.aim(self.handle, action.host) for action in volley]
        look_ahead_s = min(LOOK_AHEAD_S + LOOK_EACH_S * len(volley), AIM_AHEAD_S / 2)
        self._wait_until(due_ns - int(look_ahead_s * 1e9))
        first = {action.host: action for action in reversed(volley)}  # two faults may strike a host at one moment
        up = [bool(aim.refresh()) and action is first[action.host] for aim, action in zip(aims, volley, strict=True)]
        if not self._wait_until(due_ns - int(SHOOT_AHEAD_S * 1e9)):
            return
        for aim in compress(aims, up):
            aim.shoot(due_ns)
        for action, aim in compress(zip(volley, aims, strict=True), up):
            self._prove(action, aim.fire())
        for action, aim in compress(zip(volley, aims, strict=True), map(not_, up)):
            aim.close()
            self._absorb(action)

    def _prove(self, action: Action, proof: DeathProof) -> None:
        self.journal.write("injected", fault=action.fault, host=action.host, planned_ns=action.due_ns, **asdict(proof))
        self._hold(action, action.fault, proof.fired_ns)

    def _absorb(self, action: Action) -> None:
        """The host stays down until this fault's heal, too; its return is that of the fault which struck it."""
        self.journal.write("absorbed", fault=action.fault, host=action.host, planned_ns=action.due_ns)
        if action.host in self.down:
            self._hold(action, self.down[action.host].fault, action.due_ns)

    def _hold(self, action: Action, struck_by: int, since_ns: int) -> None:
        heal_ns = since_ns + int(action.heal_after_s * 1e9)
        if action.host not in self.down or heal_ns > self.down[action.host].due_ns:
            self.down[action.host] = Action(heal_ns, struck_by, True, action.host)
            heapq.heappush(self.queue, self.down[action.host])

    def _heal_if_released(self, action: Action) -> None:
        if action is self.down.get(action.host):
            self._wait_until(action.due_ns)
            self._heal(action)

    def _heal(self, action: Action) -> None:
        self.driver.heal(self.handle, action.host)
        del self.down[action.host]
        self.journal.write("healed", fault=action.fault, host=action.host)

    def _wait_until(self, due_ns: int) -> bool:
        """Sleep until then; False when asked to stop meanwhile."""
        while not self.stopping and (left_ns := due_ns - time.time_ns()) > 0:
            time.sleep(min(left_ns / 1e9, LONGEST_NAP_S))
        return not self.stopping


def main() -> None:
    take_precedence()
    root, plan_path, journal_path = map(Path, sys.argv[1:])
    handle = Handle.load(root)
    plan = json.loads(plan_path.read_text(encoding="utf-8"))
    injector = Injector(driver_for(handle), handle, Journal(journal_path), plan)
    signal.signal(signal.SIGTERM, injector.request_stop)
    injector.run()


if __name__ == "__main__":
    main()
