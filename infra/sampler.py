"""Samples the CPU time and the memory of every host once a second, on the second since its start.

Run as a service: `python -m infra.sampler ROOT JOURNAL.jsonl`. Every host has a thread of its own: one that does not
answer costs the others no sample, and has none itself.
"""

from __future__ import annotations

import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from experiments.errors import EnvironmentFailure
from infra.cluster import Driver, Handle
from infra.drivers import driver_for
from infra.journal import Journal

PERIOD_NS = 1_000_000_000


def next_deadline(start_ns: int, now_ns: int) -> int:
    """The first whole number of periods after the start that is still to come: what was missed is skipped."""
    return start_ns + ((now_ns - start_ns) // PERIOD_NS + 1) * PERIOD_NS


def sample(driver: Driver, handle: Handle, host: str, journal: Journal, start_ns: int) -> None:
    """Look at one host each second, for good."""
    while True:
        with suppress(EnvironmentFailure):
            now = driver.usage(handle, host)
            journal.write("sample", host=host, cpu_s=now.cpu_s, rss_bytes=now.rss_bytes)
        now_ns = time.monotonic_ns()
        time.sleep((next_deadline(start_ns, now_ns) - now_ns) / 1e9)


def main() -> None:
    root, journal_path = map(Path, sys.argv[1:])
    handle, journal = Handle.load(root), Journal(journal_path)
    driver, start_ns = driver_for(handle), time.monotonic_ns()
    threads = [threading.Thread(target=sample, args=(driver, handle, host, journal, start_ns)) for host in handle.hosts]
    for thread in threads:
        thread.start()


if __name__ == "__main__":
    main()
