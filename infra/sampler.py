"""Samples the CPU time and the memory of every host once a second.

Run as a service: `python -m infra.sampler ROOT JOURNAL.jsonl`.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from infra.cluster import Handle
from infra.journal import Journal
from infra.processes import members, usage

PERIOD_S = 1.0


def main() -> None:
    root, journal_path = map(Path, sys.argv[1:])
    handle = Handle.load(root)
    journal = Journal(journal_path)
    while True:
        for host in handle.hosts:
            now = usage(members(f"{handle.token}/{host}"))
            journal.write("sample", host=host, cpu_s=now.cpu_s, rss_bytes=now.rss_bytes)
        time.sleep(PERIOD_S)


if __name__ == "__main__":
    main()
