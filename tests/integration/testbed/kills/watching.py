"""How a run of the testbed stands, by its journal, now or at any moment that is over."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from typing import Any

Entry = dict[str, Any]
Act = Callable[[], object]
NS = 1e9
LOOK_S = 0.005


class Stage(Enum):
    """Not begun; a slot is missing; all go back to a line; all have gone on."""

    WAITING = "waiting"
    SHORT = "short"
    RESTORING = "restoring"
    RUNNING = "running"


class Standing:
    """What the journal's entries say when they are taken in one after the other.

    stored   the checkpoints that were stored since all went on
    losses   how many slots were lost
    end      the entry that says that the output is complete, once it is there
    """

    def __init__(self, slots: int) -> None:
        self._slots, self._there = slots, set[str]()
        self.stage, self.ready_ns, self.stored, self.losses, self.in_round = Stage.WAITING, 0, 0, 0, False
        self.end: Entry | None = None

    def take(self, entry: Entry) -> None:
        event = entry["event"]
        if event == "worker-joined":
            self._there.add(entry["worker"])
        elif event == "worker-lost":
            self._there.discard(entry["worker"])
            self.losses += 1
            if len(self._there) < self._slots and self.stage is not Stage.WAITING:
                self.stage = Stage.SHORT
        elif event == "recovering":
            self.stage, self.in_round = Stage.RESTORING, False
        elif event == "ready":
            self.stage, self.ready_ns, self.stored = Stage.RUNNING, entry["at_ns"], 0
        elif event == "checkpoint":
            self.stored += 1
        elif event in ("round-started", "round-stored"):
            self.in_round = event == "round-started"
        elif event == "finished":
            self.end = entry


class Watch(Standing):
    """Follows a journal while it is being written; `entries` has all of it so far."""

    def __init__(self, journal: Path, slots: int) -> None:
        super().__init__(slots)
        self.entries: list[Entry] = []
        journal.touch()
        self._file, self._rest = journal.open("rb"), b""

    def follow(self) -> list[Entry]:
        """Take in what is new, and return it."""
        new = list(self._new())
        for entry in new:
            self.take(entry)
        self.entries += new
        return new

    def wait(self, until: Act, limit_s: float, meanwhile: Act | None = None) -> bool:
        """Follow until something has come, for so long at most; returns whether it has. `meanwhile` is done each time
        that it has not."""
        deadline_s = time.monotonic() + limit_s
        while True:
            self.follow()
            if until():
                return True
            if time.monotonic() > deadline_s:
                return False
            if meanwhile is not None:
                meanwhile()
            time.sleep(LOOK_S)

    def wait_for(self, until: Act, limit_s: float, meanwhile: Act | None = None) -> None:
        """The same, where it must come."""
        if not self.wait(until, limit_s, meanwhile):
            raise TimeoutError(f"what was waited for has not come in {limit_s:g} s; see {self._file.name}")

    def close(self) -> None:
        self._file.close()

    def _new(self) -> Iterator[Entry]:
        *lines, self._rest = (self._rest + self._file.read()).split(b"\n")
        return map(json.loads, lines)
