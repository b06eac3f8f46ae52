"""How late the injector's orders are with many hosts, each a sleep of one round trip: what its own loop costs.

    .venv/bin/python -m benchmarks.injector.scale [HOSTS [ROUND_TRIP_MS]]

Strikes hosts one at a time, 50 at one moment and all at one moment, then all of them spread over 20 s; prints how long
after its due time each order went out (0: before it), threads and memory. A minute.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, cast

from benchmarks.arguments import above_zero, at_least_one
from benchmarks.injector.kill_lateness import injected_in, show
from benchmarks.one_line_errors import one_line_errors
from chaos.events import FaultEvent
from chaos.fault_plan import FaultPlan
from chaos.injector import SWITCH_INTERVAL_S, Injector
from experiments.fault_kinds import FaultKind, FaultOptions
from experiments.hosts import Role
from infra.cluster import Driver, Handle, Host
from infra.processes import take_precedence
from infra.strikes.strike import Proof
from journal.writer import Journal

LEAD_S, APART_S, SPREAD_S, HEAL_S = 2.0, 3.0, 20.0, 1.0
SIZES, ROUNDS = (1, 50), 3
NO_CLOCKS: dict[str, Any] = {}


class AfterOneRoundTrip:
    """Implements `infra.strikes.strike.Strike`: the host answers after a round trip; the order itself has no answer."""

    ports: frozenset[int] = frozenset()

    def __init__(self, round_trip_s: float) -> None:
        self.round_trip_s, self.fired_ns = round_trip_s, 0

    def refresh(self) -> bool:
        time.sleep(self.round_trip_s)
        return True

    def shoot(self, due_ns: int) -> None:
        self.fired_ns = max(due_ns, time.time_ns())

    def fire(self) -> Proof:
        time.sleep(self.round_trip_s)
        return Proof(self.fired_ns, time.time_ns(), {}, {"survivors": 0})

    def close(self) -> None:
        pass


class ManyHosts:
    """The part of `infra.cluster.Driver` that the injector uses; every answer takes a round trip."""

    def __init__(self, round_trip_s: float) -> None:
        self.round_trip_s, self.threads = round_trip_s, 0

    def clocks(self, handle: Handle) -> dict[str, Any]:
        return NO_CLOCKS

    def prepare(self, handle: Handle, host: str, kind: FaultKind, options: FaultOptions) -> AfterOneRoundTrip:
        time.sleep(self.round_trip_s)
        self.threads = max(self.threads, threading.active_count())
        return AfterOneRoundTrip(self.round_trip_s)

    def heal(self, handle: Handle, host: str, kind: FaultKind) -> Proof:
        time.sleep(self.round_trip_s)
        return Proof(time.time_ns(), time.time_ns(), {}, {"hosts down": 0})


def groups(hosts: int) -> dict[str, list[tuple[float, list[str]]]]:
    """The strikes of each part of the benchmark: when, and on whom."""
    names = [f"worker-{i}" for i in range(1, hosts + 1)]
    moment, found = 0.0, dict[str, list[tuple[float, list[str]]]]()
    for size in [size for size in SIZES if size < hosts] + [hosts]:
        found[f"{size} at a time"] = [(moment + APART_S * i, names[:size]) for i in range(ROUNDS)]
        moment += APART_S * ROUNDS
    found[f"{hosts} over {SPREAD_S:g} s"] = [(moment + SPREAD_S * i / hosts, [name]) for i, name in enumerate(names)]
    return found


@one_line_errors()
def main() -> None:
    """Inject every part and print how late its orders were."""
    given = _arguments()
    hosts, round_trip_s = given.hosts, given.round_trip_ms / 1e3
    parts, driver = groups(hosts), ManyHosts(round_trip_s)
    events = [
        {"at": at, "kind": "pause", "targets": targets, "cause": part, "heal_after": HEAL_S}
        for part, strikes in parts.items()
        for at, targets in strikes
    ]
    take_precedence()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    start_ns = time.time_ns() + round(LEAD_S * 1e9)
    plan = FaultPlan(start_ns, start_ns, tuple(map(FaultEvent.from_json, events)))
    cluster = {f"worker-{i}": Host(f"worker-{i}", "", Role.WORKER, 1, 512) for i in range(1, hosts + 1)}
    with tempfile.TemporaryDirectory(prefix="aftershock-lateness-") as folder:
        journal = Path(folder) / "injector.jsonl"
        Injector(cast(Driver, driver), Handle("scale", "local", "token", folder, cluster), Journal(journal), plan).run()
        entries = injected_in(journal)
    for part in parts:
        show(part, [entry for entry in entries if events[entry["fault"]]["cause"] == part])
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"round trip {round_trip_s * 1e3:g} ms; {driver.threads} threads, {peak_mb:.0f} MB resident at most")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hosts", nargs="?", type=at_least_one, default=1000)
    parser.add_argument("round_trip_ms", nargs="?", type=above_zero, default=2.0)
    return parser.parse_args()


if __name__ == "__main__":
    main()
