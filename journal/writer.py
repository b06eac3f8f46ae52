"""Writes the journal of a service: one JSON object a line, flushed at each event."""

from __future__ import annotations

import logging
import os
import threading
from pathlib import Path

from journal.codec import LONGEST_LINE, encode
from journal.event import Event
from journal.events.common import EntriesLost

log = logging.getLogger(__name__)


class Journal:
    """Writes events to a JSON-lines file, each with one system call as long as there is room.

    A kill in the middle of a long line, or a full disk, leaves a torn line. The next writer ends that line first, and
    readers skip it. An entry that cannot be written to the disk, or that is longer than readers take, is lost, and its
    service goes on. The loss is logged, and as soon as an entry can be written again, `EntriesLost` reports it.

    path   of the file
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path, self._lock = path, threading.Lock()
        self._file = path.open("a+b", buffering=0)
        self._lost, self._why = 0, ""

    def record(self, event: Event) -> None:
        """Append one event."""
        line = encode(event)
        with self._lock:
            if not (self._told_of_losses() and self._append(line)):
                self._lost += 1

    def close(self) -> None:
        """Record how many entries were lost since that was last recorded, if any, and close the file."""
        with self._lock:
            self._told_of_losses()
            self._file.close()

    def _told_of_losses(self) -> bool:
        """Whether the journal has an account of all that it lost."""
        if not self._lost:
            return True
        if not self._append(encode(EntriesLost(self._lost, self._why))):
            return False
        log.error("%s: entries are written again; %d were lost (%s)", self.path, self._lost, self._why)
        self._lost, self._why = 0, ""
        return True

    def _append(self, line: bytes) -> bool:
        """Whether all of a line was written; the first failure of several in a row is logged."""
        try:
            if len(line) > LONGEST_LINE:
                raise OSError(f"an entry has {len(line):,} bytes, more than {LONGEST_LINE:,}")
            rest = b"\n" + line if self._ends_torn() else line
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            if not self._why:
                log.error("%s: entries are lost from now on: %s", self.path, error)
            self._why = str(error)
            return False
        return True

    def _ends_torn(self) -> bool:
        """Whether the last line has no end; looked up each time, since another writer may have torn it."""
        end = os.fstat(self._file.fileno()).st_size
        return end > 0 and os.pread(self._file.fileno(), 1, end - 1) != b"\n"
