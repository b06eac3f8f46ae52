"""Append-only logs of what a service did: one JSON object a line, stamped and flushed at each event."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any


class Journal:
    """Writes events to a JSON-lines file; a line is whole or absent, also when the process is killed."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("ab", buffering=0)
        self._lock = threading.Lock()

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
    lines = path.read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines[:-1] if line]
