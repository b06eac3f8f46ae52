"""The input of a slot's source partitions, and where they stop when the run drains."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from testbed.core.dataflow.layout import PartitionLayout
from testbed.core.partition.partition import Partition
from testbed.runtime.connectors.sources import Feed, Generated, Read
from testbed.runtime.job import InputKind, Job


class Inputs:
    """The sources of a slot, each with its feed. When the run drains, all sources of one partition of the input end at
    the same record, which the coordinator decides once all of them have stopped."""

    def __init__(self, job: Job) -> None:
        self._feed_of = feeds(job)
        self._ends: Mapping[int, int] | None = None
        self._feeds: dict[int, Feed] = {}
        self._sources: dict[int, Partition] = {}

    def __contains__(self, number: int) -> bool:
        return number in self._sources

    def open(self, source: Partition) -> None:
        """A source is hosted now."""
        self._sources[source.number] = source
        self._feeds[source.number] = self._feed_of(source.layout)

    def close_one(self, number: int) -> None:
        """This source is not hosted any more; nothing happens if it never was."""
        feed = self._feeds.pop(number, None)
        self._sources.pop(number, None)
        if feed is not None:
            feed.close()

    def read(self, source: Partition) -> Read | None:
        """The next input of a source; None if there is nothing yet."""
        position, until = source.source_input.span
        if self._ends and until is None:
            until = self._ends[source.layout.index]
            if position >= until:
                return Read(None, position, True)
        elif self._ends is not None and until is None:
            return None
        return self._feeds[source.number].read(position, until)

    def drain(self, ends: Mapping[int, int]) -> None:
        """Read only what was sent before and, once the ends are known, up to there."""
        self._ends = ends

    def begin(self) -> None:
        """A recovery begins: unless the ends are known, sources that had stopped read on until all have caught up."""
        self._ends = self._ends or None

    @property
    def draining(self) -> bool:
        """Whether the sources stop or come to their end."""
        return self._ends is not None

    def close(self) -> None:
        """All inputs end."""
        for feed in self._feeds.values():
            feed.close()
        self._feeds, self._sources = {}, {}


def feeds(job: Job) -> Callable[[PartitionLayout], Feed]:
    """What makes the inputs of the source partitions of a slot: those in Kafka are read for all of them together."""
    if job.input.kind is InputKind.KAFKA:
        from testbed.runtime.connectors.shared_input import SharedInput
        from testbed.runtime.connectors.topics import KafkaEvents

        return partial(KafkaEvents, SharedInput(job))
    return partial(Generated, job)
