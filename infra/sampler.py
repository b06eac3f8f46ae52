"""Samples the CPU time and the memory of every host once a second, on the second since its start.

Run as a service: `python -m infra.sampler ROOT JOURNAL.jsonl`. Every host has a thread of its own, so a host
that does not answer delays no other. `machine.jsonl`, beside the journal, gets how busy the sampler's machine is and
what its two clocks say.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from experiments.errors import EnvironmentFailure
from infra.cluster import Driver, Handle
from infra.drivers import driver_for
from infra.processes import machine_busy_s
from journal.event import Event
from journal.events.services import HostSample, MachineSample
from journal.writer import Journal

PERIOD_NS = 1_000_000_000
READINGS = 5


def next_deadline(start_ns: int, now_ns: int) -> int:
    """The next multiple of the period after the start [ns]; missed ones are skipped."""
    return start_ns + ((now_ns - start_ns) // PERIOD_NS + 1) * PERIOD_NS


def sample(driver: Driver, handle: Handle, host: str) -> HostSample:
    """The CPU time [s] and memory [bytes] of a host; raises `EnvironmentFailure` if it does not answer."""
    now = driver.usage(handle, host)
    return HostSample(host, now.cpu_s, now.rss_bytes)


def sample_machine() -> MachineSample:
    """How busy the machine is, without the CPU time of the sampler itself."""
    wall_ns, monotonic_ns = both_clocks()
    busy_s = machine_busy_s() - time.process_time()
    return MachineSample(busy_s, os.cpu_count() or 1, monotonic_ns=monotonic_ns, at_ns=wall_ns)


def both_clocks() -> tuple[int, int]:
    """Wall and monotonic clock at the same moment [ns]: the fastest of several readings, so that no pause is in it."""

    def read() -> tuple[int, int, int]:
        before_ns, wall_ns, after_ns = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
        return after_ns - before_ns, wall_ns, (before_ns + after_ns) // 2

    _, wall_ns, monotonic_ns = min(read() for _ in range(READINGS))
    return wall_ns, monotonic_ns


def each_second(look: Callable[[], Event], journal: Journal, start_ns: int) -> None:
    """Journal what a look finds, each second, without end; skip one if the host does not answer or cannot be looked at.

    The journal reports what it loses itself, and an error that it raises is raised here.
    """
    while True:
        try:
            found = look()
        except EnvironmentFailure:
            pass
        except OSError as error:  # such as too many open files, which may pass
            print(error, file=sys.stderr, flush=True)
        else:
            journal.record(found)
        now_ns = time.monotonic_ns()
        time.sleep((next_deadline(start_ns, now_ns) - now_ns) / 1e9)


def main() -> None:
    """Sample every host and this machine until killed: `sampler.py ROOT JOURNAL.jsonl`."""
    root, journal_path = map(Path, sys.argv[1:])
    handle, journal = Handle.load(root), Journal(journal_path)
    driver, start_ns = driver_for(handle), time.monotonic_ns()
    looks: list[tuple[Callable[[], Event], Journal]] = [
        *((partial(sample, driver, handle, host), journal) for host in handle.hosts),
        (sample_machine, Journal(journal_path.with_name("machine.jsonl"))),
    ]
    for look_and_journal in looks:
        threading.Thread(target=each_second, args=(*look_and_journal, start_ns)).start()


if __name__ == "__main__":
    main()
