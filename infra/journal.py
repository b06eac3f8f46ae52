"""Append-only logs of what a service did: one JSON object a line, stamped and flushed at each event."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path
from typing import Any


class Journal:
    """Writes events to a JSON-lines file, each with one system call.

    A kill in the middle of a long line, or a full disk, can still tear it: the next writer starts on a new line, and
    `read_journal` leaves the torn one out.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("a+b", buffering=0)
        self._lock = threading.Lock()
        self._end_torn_line()

    def _end_torn_line(self) -> None:
        if self._file.seek(0, os.SEEK_END):
            self._file.seek(-1, os.SEEK_END)
            if self._file.read(1) != b"\n":
                self._file.write(b"\n")

    def write(self, event: str, at_ns: int | None = None, **fields: Any) -> None:
        """Append one event; `at_ns` defaults to now (UTC nanoseconds)."""
        line = json.dumps({"event": event, "at_ns": at_ns or time.time_ns(), **fields}) + "\n"
        with self._lock:
            self._file.write(line.encode())

    def close(self) -> None:
        self._file.close()


def read_journal(path: Path) -> list[dict[str, Any]]:
    """Every whole line of a journal, in order; a journal that was never begun is empty."""
    if not path.exists():
        return []
    entries = map(_entry, path.read_text(encoding="utf-8").split("\n")[:-1])
    return [entry for entry in entries if entry]


def _entry(line: str) -> dict[str, Any] | None:
    """What a line says; None for a torn one, since no part of an object is JSON."""
    try:
        return json.loads(line)
    except json.JSONDecodeError:
        return None
