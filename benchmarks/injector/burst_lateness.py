"""How late strikes of a burst come while the machine is busy: eight local hosts within 1.5 s, some 2 ms apart.

    .venv/bin/python -m benchmarks.injector.burst_lateness [BURSTS [BUSY]]

Each host has four sleeping processes. BUSY processes (12 unless given) use all the CPU time that they get. About 4 s a
burst. The moments are those of a run of `incremental-topology-2`.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.arguments import at_least, at_least_one
from benchmarks.injector.kill_lateness import injected_in, show
from benchmarks.one_line_errors import one_line_errors
from benchmarks.sigterm import end_by_sigterm
from chaos.events import FaultEvent
from chaos.fault_plan import FaultPlan
from chaos.injector import SWITCH_INTERVAL_S, Injector
from experiments.errors import EnvironmentFailure
from experiments.spec import ClusterSpec
from infra.local import LocalDriver
from infra.processes import take_precedence
from journal.writer import Journal
from tests.integration.infra.clusters import sleeping_cluster

MOMENTS_S = (0.0, 0.215, 0.237, 0.239, 0.542, 1.22, 1.388, 1.402)
BURSTS, BUSY = 10, 12
APART_S, LEAD_S, HEAL_S = 4.0, 2.0, 1.5


def busy() -> None:
    """Use all CPU time that there is, at the usual priority, until killed."""
    os.setpriority(os.PRIO_PROCESS, 0, 0)
    while True:
        sum(range(1000))


@contextmanager
def busy_machine(processes: int) -> Iterator[None]:
    """Keep that many processes busy; raises `EnvironmentFailure` if one of them has ended by itself."""
    started = [multiprocessing.Process(target=busy, daemon=True) for _ in range(processes)]
    for process in started:
        process.start()
    try:
        yield
        if not all(process.is_alive() for process in started):
            raise EnvironmentFailure("the machine was not busy: a process for that has ended", "see why above")
    finally:
        for process in started:
            process.kill()


@one_line_errors()
def main() -> None:
    """Make a cluster, strike its hosts in bursts, and print how late the strikes were."""
    given = _arguments()
    end_by_sigterm()  # so that the hosts go, and the processes that keep the machine busy
    with tempfile.TemporaryDirectory(prefix="aftershock-lateness-") as folder:
        show("in bursts", strikes_in(given.bursts, given.busy, Path(folder)))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bursts", nargs="?", type=at_least_one, default=BURSTS)
    parser.add_argument("busy", nargs="?", type=at_least(0), default=BUSY, help="processes that keep the machine busy")
    return parser.parse_args()


def strikes_in(bursts: int, processes: int, root: Path) -> list[dict[str, Any]]:
    """Strike a cluster's hosts in bursts beside busy processes; what the injector's journal has of the strikes."""
    spec, driver = ClusterSpec(workers=len(MOMENTS_S)), LocalDriver()
    with sleeping_cluster(driver, spec, root, "burst-lateness") as handle, busy_machine(processes):
        start_ns = time.time_ns() + round(LEAD_S * 1e9)
        events = [
            {"at": at_s + APART_S * burst, "kind": "kill", "targets": [worker.name], "cause": "", "heal_after": HEAL_S}
            for burst in range(bursts)
            for worker, at_s in zip(handle.workers, MOMENTS_S, strict=True)
        ]
        plan = FaultPlan(start_ns, start_ns, tuple(map(FaultEvent.from_json, events)))
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        injector = Injector(driver, handle, Journal(root / "injector.jsonl"), plan, arrival=lambda *_: None)
        take_precedence()
        injector.run()
    return injected_in(root / "injector.jsonl")


if __name__ == "__main__":
    main()
