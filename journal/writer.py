"""Writes the journal of a service: one JSON object a line, stamped and flushed at each event."""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from pathlib import Path
from typing import Any

log = logging.getLogger(__name__)
LOST = "entries-lost"  # the event that tells of entries that the disk did not take


class Journal:
    """Writes events to a JSON-lines file, each with one system call as long as there is room.

    A kill in the middle of a long line, or a full disk, tears it: whoever writes next ends that line first, and
    `read_journal` leaves it out. An entry that the disk does not take is lost, and its service goes on. The loss is
    logged, and when there is room again an entry `LOST` says how many there were (`count`) and why (`error`).
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path, self._lock = path, threading.Lock()
        self._file = path.open("a+b", buffering=0)
        self._lost, self._why = 0, ""

    def write(self, event: str, at_ns: int | None = None, **fields: Any) -> None:
        """Append one event; `at_ns` defaults to now (UTC nanoseconds)."""
        line = _line({"event": event, "at_ns": at_ns or time.time_ns(), **fields})
        with self._lock:
            if not (self._told_of_losses() and self._append(line)):
                self._lost += 1

    def close(self) -> None:
        with self._lock:
            self._told_of_losses()
            self._file.close()

    def _told_of_losses(self) -> bool:
        """Whether the journal has an account of all that it lost."""
        if not self._lost:
            return True
        told = {"event": LOST, "at_ns": time.time_ns(), "count": self._lost, "error": self._why}
        if not self._append(_line(told)):
            return False
        log.error("%s: there is room again; %d entries were lost (%s)", self._path, self._lost, self._why)
        self._lost, self._why = 0, ""
        return True

    def _append(self, line: bytes) -> bool:
        """Whether all of a line was written; the first failure of several in a row is logged."""
        rest = b"\n" + line if self._ends_torn() else line
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            if not self._why:
                log.error("%s: entries are lost from now on: %s", self._path, error)
            self._why = str(error)
            return False
        return True

    def _ends_torn(self) -> bool:
        """Whether the last line has no end; looked up each time, since another writer may have torn it."""
        end = os.fstat(self._file.fileno()).st_size
        return end > 0 and os.pread(self._file.fileno(), 1, end - 1) != b"\n"


def _line(entry: dict[str, Any]) -> bytes:
    return (json.dumps(entry) + "\n").encode()
