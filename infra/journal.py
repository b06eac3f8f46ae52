"""Append-only logs of what a service did: one JSON object a line, stamped and flushed at each event.

Whoever looks at a journal again and again follows it (`Followed`), and reads what has come since.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, Generic, Protocol, TypeVar

log = logging.getLogger(__name__)


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


class Digest(Protocol):
    """What is kept of a journal: entries are taken in one by one, in their order."""

    def take(self, entry: dict[str, Any]) -> None: ...


DigestT = TypeVar("DigestT", bound=Digest)


class Followed(Generic[DigestT]):
    """A journal that others write, taken into a digest as it grows; not for several threads at once.

    Each look reads on from the end of the last whole line that it knows. A journal that has become another (shorter, a
    new file, or with other contents there) is taken in from its beginning, into a new digest. An entry that the digest
    cannot use is left out and said once in the log.
    """

    def __init__(self, path: Path, begin: Callable[[], DigestT]) -> None:
        self._path, self._begin = path, begin
        self._start(None)

    def _start(self, identity: tuple[int, int] | None) -> None:
        self._identity, self._at, self._last_line, self._digest = identity, 0, b"", self._begin()

    def look(self) -> DigestT:
        """The digest of all that the journal holds by now; one that was never begun is empty."""
        try:
            with self._path.open("rb") as file:
                self._read_on(file)
        except FileNotFoundError:
            self._start(None)
        return self._digest

    def _read_on(self, file: BinaryIO) -> None:
        about = os.fstat(file.fileno())
        if (about.st_dev, about.st_ino) != self._identity or not self._goes_on(file):
            self._start((about.st_dev, about.st_ino))
        file.seek(self._at)
        for line in file:
            if not line.endswith(b"\n"):
                break
            self._at, self._last_line = self._at + len(line), line
            if entry := _entry(line):
                self._take(entry)

    def _take(self, entry: dict[str, Any]) -> None:
        try:
            self._digest.take(entry)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            log.warning("%s: an entry is left out, since it cannot be used (%r): %s", self._path, error, entry)

    def _goes_on(self, file: BinaryIO) -> bool:
        """Whether the last line that was read is still where it was."""
        file.seek(self._at - len(self._last_line))
        return file.read(len(self._last_line)) == self._last_line


def _entry(line: str | bytes) -> dict[str, Any] | None:
    """What a line says; None for a torn one, since no part of an object is JSON."""
    try:
        return json.loads(line)
    except ValueError:
        return None
