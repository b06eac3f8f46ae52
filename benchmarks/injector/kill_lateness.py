"""How late faults of hosts come: the injector against sleeping hosts in namespaces or containers. About two minutes.

    .venv/bin/python -m benchmarks.injector.kill_lateness [HOSTS] [KIND] [APART_S] [netns|docker]

Strikes one host after another, then all hosts at one moment, again and again; prints what `actual - planned` was, and
what a session with a host costs the injector. A host must be healed before it is struck again, or that strike waits:
power-offs of 6 hosts need about 2 s between them.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import tempfile
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any, cast

from benchmarks.arguments import above_zero, at_least_one
from benchmarks.one_line_errors import one_line_errors
from benchmarks.sigterm import end_by_sigterm
from chaos.events import FaultEvent
from chaos.fault_plan import FaultPlan
from chaos.injector import Injector
from experiments.errors import EnvironmentFailure
from experiments.fault_kinds import FaultKind
from experiments.hosts import ClusterDriver
from experiments.spec import ClusterSpec
from infra.cluster import Handle
from infra.drivers import driver_of
from infra.processes import take_precedence
from infra.remote.hosts import RemoteHosts
from journal.reader import raw_entries
from journal.writer import Journal
from tests.integration.infra.clusters import sleeping_cluster

SINGLE, VOLLEYS = 100, 10
VOLLEY_GAPS = 20  # a volley after another, in the times between two single strikes
APART_S, LEAD_S = 0.3, 2.0


def connect(driver: RemoteHosts, handle: Handle) -> None:
    """Open a session with every worker, one after the other, and print what each takes of this process."""
    before, began = footprint(), time.monotonic()
    for worker in handle.workers:
        driver.session(handle, worker)
    count, took_s = len(handle.workers), time.monotonic() - began
    grown = [(now - then) / count for now, then in zip(footprint(), before, strict=True)]
    print(f"{count} sessions one by one; each {took_s / count:.2f} s, ", end="")
    print("{:.2f} MB, {:.1f} threads, {:.1f} descriptors".format(*grown))


def footprint() -> tuple[float, int, int]:
    """Of this process: resident memory [MB], threads, open descriptors."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / 2**20, threading.active_count(), len(os.listdir("/proc/self/fd"))


def events(handle: Handle, kind: str, apart_s: float) -> list[dict[str, Any]]:
    """Single strikes on the workers in turn, then strikes on all of them at once, `apart_s` between any two."""
    names = [worker.name for worker in handle.workers]
    targets = [[names[number % len(names)]] for number in range(SINGLE)]
    moments = [number * apart_s for number in range(SINGLE)]
    targets += [names] * VOLLEYS
    moments += [(SINGLE + VOLLEY_GAPS * (number + 1)) * apart_s for number in range(VOLLEYS)]
    return [
        {"at": at, "kind": kind, "targets": targets, "cause": "benchmark", "heal_after": 0.0}
        for at, targets in zip(moments, targets, strict=True)
    ]


@one_line_errors()
def main() -> None:
    """Make a cluster, strike its hosts, and print how late the strikes were."""
    given = _arguments()
    end_by_sigterm()  # so that the hosts go
    with tempfile.TemporaryDirectory(prefix="aftershock-lateness-") as folder:
        strikes = strikes_on(given.driver, given.hosts, FaultKind(given.kind), given.apart_s, Path(folder))
    show("one by one", [entry for entry in strikes if entry["fault"] < SINGLE])
    show(f"{given.hosts} at a time", [entry for entry in strikes if entry["fault"] >= SINGLE])


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = [kind.value for kind in FaultKind if kind.service is None]
    parser.add_argument("hosts", nargs="?", type=at_least_one, default=12)
    parser.add_argument("kind", nargs="?", choices=kinds, default=FaultKind.KILL.value)
    parser.add_argument("apart_s", nargs="?", type=above_zero, default=APART_S, help="time between two strikes [s]")
    parser.add_argument("driver", nargs="?", choices=["netns", "docker"], default="netns")
    return parser.parse_args()


def strikes_on(name: str, hosts: int, kind: FaultKind, apart_s: float, root: Path) -> list[dict[str, Any]]:
    """Make a cluster of a driver, strike its hosts, and return what the injector's journal has of the strikes."""
    driver, spec = cast(RemoteHosts, driver_of(name)), ClusterSpec(driver=ClusterDriver(name), workers=hosts)
    driver.check(spec)
    with sleeping_cluster(driver, spec, root, "kill-lateness", partial(connect, driver)) as handle:
        take_precedence()
        start_ns = time.time_ns() + round(LEAD_S * 1e9)
        planned = tuple(map(FaultEvent.from_json, events(handle, kind, apart_s)))
        plan = FaultPlan(start_ns, start_ns, planned)
        Injector(driver, handle, Journal(root / "injector.jsonl"), plan, arrival=lambda *_: None).run()
    return injected_in(root / "injector.jsonl")


def injected_in(journal: Path) -> list[dict[str, Any]]:
    """The entries of an injector's journal that tell of a strike."""
    return [entry for entry in raw_entries(journal) if entry["event"] == "injected"]


def show(name: str, strikes: list[dict[str, Any]]) -> None:
    """Print the quantiles of the lateness of these strikes, which are entries of the injector's journal.

    Raises `EnvironmentFailure` if there are none.
    """
    if not strikes:
        raise EnvironmentFailure(f"{name}: no strike was injected", "see above what the injector told")
    late_ms = sorted((entry["fired_ns"] - entry["planned_ns"]) / 1e6 for entry in strikes)
    left = sum(sum(entry["left"].values()) for entry in strikes)
    median, p99 = statistics.median(late_ms), late_ms[-1 - len(late_ms) // 100]
    print(f"{name}: {len(strikes)} strikes, {left} contradictions to their proofs; late by [ms]: ", end="")
    print(f"median {median:.2f}, p99 {p99:.2f}, largest {late_ms[-1]:.2f}")


if __name__ == "__main__":
    main()
