"""The journals of live runs, followed: what a page asks for again and again is read once.

Every process that serves pages follows for itself; nothing is shared but the journals.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from threading import Lock
from typing import Any

from aftershock.abort import Holding
from aftershock.bench import Bench
from aftershock.pace import Pace, pace_of
from infra.journal import Followed
from results import store

MOST_WATCHED = 64  # runs; of a run that is looked at again after so many others, the journals are read again


class Faults(Holding):
    """What faults hold, and how many were injected and undone."""

    def __init__(self) -> None:
        super().__init__()
        self.injected = self.healed = 0

    def take(self, entry: dict[str, Any]) -> None:
        super().take(entry)
        self.injected += entry["event"] == "injected"
        self.healed += entry["event"] == "healed"


@dataclass(frozen=True)
class Sample:
    """A look at a host: CPU time of its processes [s], how many cores they kept busy since the look before, memory."""

    at_ns: int
    cpu_s: float
    cores: float | None
    rss_bytes: int


class Samples:
    """The last look at every host, by its name."""

    def __init__(self) -> None:
        self.last: dict[str, Sample] = {}

    def take(self, entry: dict[str, Any]) -> None:
        if entry["event"] == "sample":
            cores = _cores(self.last.get(entry["host"]), entry["at_ns"], entry["cpu_s"])
            self.last[entry["host"]] = Sample(entry["at_ns"], entry["cpu_s"], cores, entry["rss_bytes"])


def _cores(before: Sample | None, at_ns: int, cpu_s: float) -> float | None:
    """None for a first look, and where processes have ended since, whose time is gone with them."""
    if before is None or at_ns <= before.at_ns or cpu_s < before.cpu_s:
        return None
    return (cpu_s - before.cpu_s) / (at_ns - before.at_ns) * 1e9


@dataclass(frozen=True)
class Seen:
    """What the journals of a run say by now; to be looked at within `journals` only."""

    faults: Faults
    hosts: Samples
    query: Pace


class Watch:
    """The followed journals of one run, for one thread at a time."""

    def __init__(self, bench: Bench) -> None:
        self.lock = Lock()
        self._faults = Followed(bench.journal_path("injector"), Faults)
        self._hosts = Followed(bench.journal_path("hosts"), Samples)
        self._query = Followed(bench.journal_path("query"), partial(pace_of, bench.experiment))

    def look(self) -> Seen:
        return Seen(self._faults.look(), self._hosts.look(), self._query.look())


@contextmanager
def journals(run_id: str) -> Iterator[Seen]:
    """What the journals of a live run say, which does not change before this is left."""
    watch = _watch(store.live_directory(run_id))
    with watch.lock:
        yield watch.look()


@lru_cache(maxsize=MOST_WATCHED)
def _watch(live: Path) -> Watch:
    return Watch(Bench(live.name))
