"""Writes the log of an operator: blocks are gathered, committed together as a segment, and deleted when not needed."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from experiments.errors import AftershockError, BadInput
from testbed.output_log.blocks import NO_LIFE, Block, Segment, merged
from testbed.output_log.extent import Extent
from testbed.output_log.reading import SegmentId, life_key, newest_life, segment_key
from testbed.stores.store import ObjectStore


class LogTakenOver(AftershockError):
    """Another writer has begun a newer life of this log: what this one writes counts no more."""

    def __init__(self, name: str) -> None:
        super().__init__(f"another operator has taken over the log {name}: this one ends")


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

    Life 0 begins a new log and is not reserved. Whoever goes on with a log begins a life first.

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

    def begin_life(self) -> None:
        """Reserve a life that no other writer has had or will have. After that, older writers begin no deletion.

        The object that reserves the life stays for ever, so that its number is never free again. Raises
        `EnvironmentFailure` if the store refuses.
        """
        life = newest_life(self._store, self._name) + 1
        while not self._store.create(life_key(self._name, life), b""):
            life += 1
        self._life = life

    def restore(self, kept: Sequence[KeptSegment], strays: Iterable[SegmentId]) -> None:
        """Go on behind these segments, in the life that has begun; `strays` lead nowhere and will be deleted."""
        self._kept, self._unneeded = deque(kept), deque(strays)
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

        Returns how many. Raises `EnvironmentFailure` if the store refuses; the next call deletes the rest. Raises
        `LogTakenOver` instead of deleting anything if there is a newer life: to see that, it lists the whole log.
        """
        begins = min((each.begins for each in self._fallbacks), default=0)
        while self._guarded and self._kept[0].ends <= begins and self._kept[0].results <= delivered:
            self._unneeded.append(self._kept.popleft().id)
        if self._unneeded:
            self._confirm_life()
        deleted = 0
        while self._unneeded:
            self._store.delete(segment_key(self._name, self._unneeded[0]))
            self._unneeded.popleft()
            deleted += 1
        return deleted

    def _confirm_life(self) -> None:
        """Raises `LogTakenOver` if there is a newer life. One look is enough for all deletions of a `trim`.

        A life that begins after the look lists the segments after it, too. So it finds the newest segment of this
        writer, and `trim` deletes nothing that a recovery from that segment reads.
        """
        if newest_life(self._store, self._name) > self._life:
            raise LogTakenOver(self._name)

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
