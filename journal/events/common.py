"""Events that several journals share."""

from __future__ import annotations

from dataclasses import dataclass

from journal.codec import Vocabulary
from journal.event import Event


@dataclass(frozen=True)
class EntriesLost(Event, name="entries-lost"):
    """`count` entries of this journal could not be written; `error` says why the last of them could not."""

    count: int
    error: str


@dataclass(frozen=True)
class Failed(Event, name="failed"):
    """A service cannot go on."""

    error: str


@dataclass(frozen=True)
class DriverStarted(Event, name="driver-started"):
    """The driver program began. A supervisor starts it again if it ends."""


@dataclass(frozen=True)
class DriverStopped(Event, name="driver-stopped"):
    """The driver program ends in an orderly way."""


@dataclass(frozen=True)
class ExecutorsLost(Event, name="executors-lost"):
    """Spark's scheduler no longer has these executors."""

    executors: tuple[str, ...]


LOSSES = Vocabulary(EntriesLost)
FAILURES = Vocabulary(Failed)
