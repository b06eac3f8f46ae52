"""What the source partitions of a slot read, and where they stop when the run drains."""

from __future__ import annotations

from testbed.core.partition import Partition
from testbed.runtime.job import Job
from testbed.runtime.sources import Feed, Read, feed_of


class Inputs:
    """The sources of a slot, each with its feed.

    draining   whether the sources come to their end, those of one partition of the input at the same record
    """

    def __init__(self, job: Job) -> None:
        self._job, self.draining = job, False
        self._feeds: dict[int, Feed] = {}
        self._sources: dict[int, Partition] = {}

    def __contains__(self, number: int) -> bool:
        return number in self._sources

    def open(self, source: Partition) -> None:
        """A source is hosted now."""
        self._sources[source.number] = source
        self._feeds[source.number] = feed_of(self._job, source.layout)

    def read(self, source: Partition) -> Read | None:
        """The next input of a source; None if there is nothing yet.

        Whoever drains still reads again what was in flight, and up to the common end.
        """
        position, until = source.next_input
        if self.draining and until is None:
            until = self._end_of(source)
            if position >= until:
                return Read(None, position, True)
        return self._feeds[source.number].read(position, until)

    def close(self) -> None:
        """All inputs end."""
        for feed in self._feeds.values():
            feed.close()
        self._feeds, self._sources = {}, {}

    def _end_of(self, source: Partition) -> int:
        """Where the furthest of the sources is that read the same partition of the input: all of them are here."""
        index = source.layout.index
        return max(each.position for each in self._sources.values() if each.layout.index == index)
