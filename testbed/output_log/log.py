"""Writes the log of an operator: blocks are gathered, committed together as a segment, and deleted when not needed."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from experiments.errors import BadInput
from testbed.output_log.blocks import NO_LIFE, Block, Segment, merged
from testbed.output_log.extent import Extent
from testbed.output_log.reading import SegmentId, segment_key
from testbed.stores.store import ObjectStore


@dataclass(frozen=True)
class KeptSegment:
    """A segment in the store.

    ends           entries of the log up to its end
    results        rows emitted up to its end
    begins         the first entry that a recovery from its end reads
    replay_after   the position after which such a recovery replays the input
    """

    id: SegmentId
    ends: int
    results: int
    begins: int
    replay_after: int


class OutputLog:
    """The log of one operator in one life.

    A recovery may find the newest `spare` segments damaged. It then rolls back to the end of the one before, so what
    such a recovery needs is kept, too.
    """

    def __init__(self, store: ObjectStore, name: str, spare: int = 1) -> None:
        if spare < 0:
            raise BadInput("spare", spare, "0 segments or more")
        self._store, self._name, self._spare = store, name, spare
        self._life, self._last = 0, SegmentId(NO_LIFE, 0)
        self._entries = self._results = 0
        self._pending: list[Block] = []
        self._kept: deque[KeptSegment] = deque()
        self._unneeded: deque[SegmentId] = deque()  # to be deleted

    def restore(self, life: int, kept: Sequence[KeptSegment], strays: Iterable[SegmentId]) -> None:
        """Go on behind these segments, in a life that no segment has; `strays` lead nowhere and will be deleted."""
        self._life, self._kept, self._unneeded = life, deque(kept), deque(strays)
        self._last = kept[-1].id if kept else SegmentId(NO_LIFE, 0)
        self._entries = kept[-1].ends if kept else 0
        self._results = kept[-1].results if kept else 0
        self._pending.clear()

    def append(self, block: Block) -> None:
        """Add a block. It is not safe yet, so its rows must not be sent."""
        self._pending.append(block)

    def commit(self, extent: Extent) -> Block | None:
        """Write all blocks since the last commit as one segment and return it: now its rows may be sent.

        Raises `EnvironmentFailure` if the store refuses; the next commit writes them, too.
        """
        if not self._pending:
            return None
        id, block = SegmentId(self._life, self._last.number + 1), merged(self._pending)
        segment = Segment(self._life, self._last.life, id.number, self._entries, block)
        self._store.put(segment_key(self._name, id), segment.pieces())
        self._pending.clear()
        self._last, self._entries, self._results = id, segment.ends, block.results
        self._kept.append(KeptSegment(id, self._entries, self._results, extent.begins, extent.replay_after))
        return block

    @property
    def replay_after(self) -> int:
        """No recovery will replay the records up to this position, so they need not be kept."""
        return min((each.replay_after for each in self._fallbacks), default=0) if self._guarded else 0

    def trim(self, delivered: int) -> int:
        """Delete the segments that no recovery reads and whose rows, up to number `delivered`, have all arrived.

        Returns how many. Raises `EnvironmentFailure` if the store refuses; the next call deletes the rest.
        """
        begins = min((each.begins for each in self._fallbacks), default=0)
        while self._guarded and self._kept[0].ends <= begins and self._kept[0].results <= delivered:
            self._unneeded.append(self._kept.popleft().id)
        deleted = 0
        while self._unneeded:
            self._store.delete(segment_key(self._name, self._unneeded[0]))
            self._unneeded.popleft()
            deleted += 1
        return deleted

    @property
    def results(self) -> int:
        """How many rows the log has, since the beginning."""
        return self._results

    @property
    def segments(self) -> int:
        """How many segments the log has in the store."""
        return len(self._kept)

    @property
    def _fallbacks(self) -> list[KeptSegment]:
        """The segments at whose ends a recovery may start to read."""
        return list(self._kept)[-self._spare - 1 :]

    @property
    def _guarded(self) -> bool:
        """Whether there are more segments than may be damaged: before that, everything is needed."""
        return len(self._kept) > self._spare + 1
