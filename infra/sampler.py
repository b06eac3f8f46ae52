"""Samples the CPU time and the memory of every host once a second, on the second since its start.

Run as a service: `python -m infra.sampler ROOT JOURNAL.jsonl`.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from infra.cluster import Handle
from infra.journal import Journal
from infra.processes import members, usage

PERIOD_NS = 1_000_000_000


def next_deadline(start_ns: int, now_ns: int) -> int:
    """The first whole number of periods after the start that is still to come: what was missed is skipped."""
    return start_ns + ((now_ns - start_ns) // PERIOD_NS + 1) * PERIOD_NS


def main() -> None:
    root, journal_path = map(Path, sys.argv[1:])
    handle = Handle.load(root)
    journal = Journal(journal_path)
    start_ns = time.monotonic_ns()
    while True:
        for host in handle.hosts:
            now = usage(members(f"{handle.token}/{host}"))
            journal.write("sample", host=host, cpu_s=now.cpu_s, rss_bytes=now.rss_bytes)
        now_ns = time.monotonic_ns()
        time.sleep((next_deadline(start_ns, now_ns) - now_ns) / 1e9)


if __name__ == "__main__":
    main()
