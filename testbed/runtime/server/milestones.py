"""The progress and the work of each partition, as slots report it to the coordinator's server."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from journal.events.testbed import (
    TESTBED,
    CheckpointRefused,
    CheckpointStored,
    PartitionLoaded,
    PartitionReached,
    Recovering,
    Report,
)
from journal.reader import events
from journal.writer import Journal
from testbed.core.dataflow.layout import Layout
from testbed.runtime.network.messages import Kept, Loaded, Reached, SlotStatus


class Milestones:
    """Keeps how far each partition has ever been, and tells the journal what slots have to tell once.

    A slot tells how long ago something was. So its clock need not agree with that of the journal.
    """

    def __init__(self, layout: Layout, journal: Journal) -> None:
        self._names = [each.name for each in layout.partitions]
        self._journal = journal
        self._reached: dict[int, dict[int, int]] = {}

    def take_over(self) -> None:
        """Know what the drivers before have told the journal."""
        told: dict[str, Mapping[str, int]] = {}
        for event in events(self._journal.path, TESTBED):
            if isinstance(event, Report | Recovering):
                told |= event.reached
        for number, name in enumerate(self._names):
            self._reached[number] = {int(channel): at for channel, at in told.get(name, {}).items()}

    def note(self, status: SlotStatus) -> None:
        """A slot has reported."""
        for number, progress in status.progress.items():
            known = self._reached.setdefault(number, {})
            known |= {channel: max(at, known.get(channel, at)) for channel, at in progress.items()}
        now_ns = time.time_ns()
        for kept in status.kept:
            self._journal.record(CheckpointStored(**self._told(kept), taken_ns=_ago(now_ns, kept)))
        for refused in status.refused:
            self._journal.record(CheckpointRefused(self._names[refused.partition], refused.number, refused.error))
        for loaded in status.loaded:
            self._journal.record(PartitionLoaded(**self._told(loaded), at_ns=_ago(now_ns, loaded)))
        for reached in status.reached:
            self._journal.record(PartitionReached(**self._told(reached), at_ns=_ago(now_ns, reached)))

    def reached(self, partitions: Iterable[int]) -> dict[int, dict[int, int]]:
        """How far each of these has ever been, as far as slots have reported: a slot may be lost before it does."""
        return {number: dict(self._reached.get(number, {})) for number in partitions}

    def named(self, reached: Mapping[int, Mapping[int, int]]) -> dict[str, dict[str, int]]:
        """The same as the journal has it."""
        return {self._names[number]: {str(c): at for c, at in by.items()} for number, by in reached.items()}

    def _told(self, message: Kept | Loaded | Reached) -> dict[str, Any]:
        told = {name: value for name, value in vars(message).items() if name != "age_s"}
        return told | {"partition": self._names[message.partition]}


def _ago(now_ns: int, message: Kept | Loaded | Reached) -> int:
    return now_ns - round(message.age_s * 1e9)
