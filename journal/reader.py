"""Reads journals: as a whole, or followed, which reads what was added since the last call.

What runs on a host may have written anything to its journal. A line that is no entry, or an event that lacks a field
or has one of another type, is left out.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Generic, Protocol, TypeVar

from experiments.wording import elided
from journal.codec import LONGEST_LINE, EventT, Vocabulary
from journal.event import Event
from journal.events.common import LOSSES

log = logging.getLogger(__name__)
BEYOND_NS = 2**63  # moments have 64 bits, in tables too


def raw_entries(path: Path) -> Iterator[dict[str, Any]]:
    """Every entry of a journal as it is written, in order; none of a journal that was never begun."""
    return (entry for _, entry in _lines_and_entries(path))


def events(path: Path, vocabulary: Vocabulary[EventT]) -> Iterator[EventT]:
    """Every event of a journal that is in the vocabulary, in order; none of a journal that was never begun.

    An event whose fields do not fit is left out, and a warning is logged.
    """
    for line, entry in _lines_and_entries(path):
        try:
            event = vocabulary.decode(line, entry["event"])
        except ValueError as error:
            _warn(path, error, entry)
        else:
            if event is not None:
                yield event


def _lines_and_entries(path: Path) -> Iterator[tuple[bytes, dict[str, Any]]]:
    try:
        with path.open("rb") as file:
            for line in _whole_lines(file):
                if entry := _entry(line):
                    yield line, entry
    except FileNotFoundError:
        return


def _whole_lines(file: BinaryIO) -> Iterator[bytes]:
    """The lines that have an end and are not too long."""
    amid_line = False
    while piece := file.readline(LONGEST_LINE):
        is_end = piece.endswith(b"\n")
        if is_end and not amid_line:
            yield piece
        amid_line = not is_end


def losses(path: Path) -> tuple[int, str]:
    """How many entries of a journal were not written, as far as the writer could tell, and why."""
    told = [event for event in events(path, LOSSES) if event.count > 0]
    return sum(event.count for event in told), ", ".join(dict.fromkeys(event.error for event in told))


class Digest(Protocol):
    """What is kept of a journal: events are taken in one by one, in their order."""

    def take(self, event: Event) -> None:
        """Take in the next event; one that the digest cannot use may raise `ValueError`."""


DigestT = TypeVar("DigestT", bound=Digest)


class JournalFollower(Generic[DigestT]):
    """A journal that others write, taken into a digest as it grows; not for several threads at once.

    Each look reads on from the end of the last whole line that it knows. A journal that has become another (shorter, a
    new file, or with other contents there) is taken in from its beginning, into a new digest. An event whose fields do
    not fit, or that the digest cannot use, is left out, and a warning is logged.
    """

    def __init__(self, path: Path, vocabulary: Vocabulary[Any], begin: Callable[[], DigestT]) -> None:
        self._path, self._vocabulary, self._begin = path, vocabulary, begin
        self._start(None)

    def _start(self, identity: tuple[int, int] | None) -> None:
        self._identity, self._at, self._last_line, self._digest = identity, 0, b"", self._begin()
        self._amid_line = False  # what was read last is a piece of a line that is too long

    def poll(self) -> DigestT:
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
        while line := file.readline(LONGEST_LINE):
            is_end = line.endswith(b"\n")
            if not is_end and len(line) < LONGEST_LINE:
                break
            self._at, self._last_line = self._at + len(line), line
            if is_end and not self._amid_line:
                self._take_line(line)
            self._amid_line = not is_end

    def _take_line(self, line: bytes) -> None:
        if entry := _entry(line):
            self._take(line, entry)
        else:
            log.warning("%s: a line is left out, since it is no entry: %s", self._path, elided(repr(line)))

    def _take(self, line: bytes, entry: dict[str, Any]) -> None:
        try:
            event = self._vocabulary.decode(line, entry["event"])
            if event is not None:
                self._digest.take(event)
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            _warn(self._path, error, entry)

    def _goes_on(self, file: BinaryIO) -> bool:
        """Whether the last line that was read is still where it was."""
        file.seek(self._at - len(self._last_line))
        return file.read(len(self._last_line)) == self._last_line


def _warn(path: Path, error: Exception, entry: dict[str, Any]) -> None:
    log.warning("%s: an entry is left out, since it cannot be used (%r): %s", path, error, elided(repr(entry)))


def _entry(line: bytes) -> dict[str, Any] | None:
    """The entry of a line; None for a torn one, since no part of an object is JSON, and for what is no entry."""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not (isinstance(entry, dict) and isinstance(entry.get("event"), str)):
        return None
    at_ns = entry.get("at_ns")
    return entry if type(at_ns) is int and abs(at_ns) < BEYOND_NS else None
