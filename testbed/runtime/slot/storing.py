"""Stores the checkpoints of a slot's partitions, in a separate thread."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

from experiments.errors import EnvironmentFailure
from testbed.core.effects import Store
from testbed.core.partition.partition import Partition
from testbed.core.seal import Piece
from testbed.runtime.background import Background
from testbed.runtime.network.messages import Kept, Refused, printable
from testbed.runtime.slot.hosted import At
from testbed.stores.store import ObjectStore

STORE_INTERVALS = 2  # intervals within which a checkpoint should be stored
PATIENCE_S = 120.0  # with a store that refuses the same checkpoint again and again
BUSY_S, PAUSE_S = 1e-3, 1e-4


@dataclass
class Unstored:
    """The checkpoints of one partition since its last restore that the store has yet to answer for.

    There is their number, and since when [s, monotonic] one waits to count; by batches, since when the store owes an
    answer. A checkpoint that the store took does not count if it builds on one that the store refused. The store may be
    asked again for one that it refused, so it is kept when each was taken and first refused [s, monotonic].
    """

    under_way: int = 0
    since_s: float | None = None
    taken_s: dict[int, float] = field(default_factory=dict)
    refused_s: dict[int, float] = field(default_factory=dict)


class Storing:
    """Writes checkpoints in order, and tells partitions what the store has answered.

    By batches, the next checkpoint needs input. So one that the store has refused must not hold the sources up: they
    would wait for ever. Only one that is still being written does.

    If the store refuses the same checkpoint for `PATIENCE_S`, the slot ends with the reason.

    lags        whether some checkpoint has waited for too long: logs grow until it is stored
    written_s   CPU time of the thread that writes [s]
    written_of  the same for each partition
    """

    def __init__(self, store: ObjectStore, background: Background, at: At, *, by_batch: bool) -> None:
        self._store, self._background, self._at, self._by_batch = store, background, at, by_batch
        self._unstored: dict[int, Unstored] = {}
        self._kept: list[tuple[Kept, float]] = []  # and when it was taken [s, monotonic]
        self._refused: list[Refused] = []
        self.lags, self.written_s = False, 0.0
        self.written_of: dict[int, float] = {}

    def restart(self, number: int) -> None:
        """A partition rolls back: what is under way is of no use to it."""
        self._unstored[number] = Unstored()

    def clear(self) -> None:
        """Forget all partitions."""
        self._unstored, self.written_of = {}, {}

    def life(self, number: int) -> object:
        """What is the same until a partition rolls back or is forgotten."""
        return self._unstored.get(number)

    def is_busy(self, number: int) -> bool:
        """Whether the store has yet to answer for a checkpoint of this partition."""
        return number in self._unstored and self._unstored[number].under_way > 0

    def store(self, number: int, effect: Store) -> None:
        """Write a checkpoint of a partition."""
        now_s, unstored = time.monotonic(), self._unstored[number]
        if unstored.since_s is None or (self._by_batch and not unstored.under_way):
            unstored.since_s = now_s
        begun_s = unstored.taken_s.setdefault(effect.checkpoint.number, now_s)
        unstored.under_way += 1
        self._background.submit(
            partial(self._write, number, unstored, effect), partial(self._on_written, number, unstored, effect, begun_s)
        )

    def on_counted(self, number: int, checkpoint: int) -> None:
        """A checkpoint of this partition is stored and counts; later ones may wait until the store is asked again."""
        unstored = self._unstored[number]
        unstored.since_s = time.monotonic() if unstored.under_way else None
        unstored.taken_s, unstored.refused_s = (
            {later: at_s for later, at_s in known.items() if later > checkpoint}
            for known in (unstored.taken_s, unstored.refused_s)
        )

    def on_clock(self, now_s: float, interval_s: float) -> None:
        """See whether the store keeps up with this checkpoint interval."""
        waiting = [
            each.since_s
            for each in self._unstored.values()
            if each.since_s is not None and (each.under_way or not self._by_batch)
        ]
        self.lags = bool(waiting) and now_s - min(waiting) > STORE_INTERVALS * interval_s

    def take_kept(self) -> tuple[Kept, ...]:
        """The checkpoints that were stored since the last call."""
        kept, self._kept, now_s = self._kept, [], time.monotonic()
        return tuple(replace(each, age_s=now_s - taken_s) for each, taken_s in kept)

    def take_refused(self) -> tuple[Refused, ...]:
        """The checkpoints that the store refused since the last call."""
        refused, self._refused = tuple(self._refused), []
        return refused

    def _write(self, number: int, unstored: Unstored, effect: Store) -> int | EnvironmentFailure:
        """The bytes written, or why the store refused.

        What a life that is over left to write is of no use. If it ends during the write, what was written is deleted
        again: whoever deletes its objects may have been there already.
        """
        written, begun_s = 0, time.thread_time()
        if self._unstored.get(number) is not unstored:
            return written
        try:
            for key, content in effect.objects.items():
                written += self._store.put(key, letting_others_go_on(content()))
        except EnvironmentFailure as error:
            return error
        finally:
            if self._unstored.get(number) is not unstored:
                let_go(self._store, effect.objects)
        taken_s = time.thread_time() - begun_s
        self.written_s += taken_s
        self.written_of[number] = self.written_of.get(number, 0.0) + taken_s
        return written

    def _on_written(
        self, number: int, unstored: Unstored, effect: Store, begun_s: float, written: int | EnvironmentFailure
    ) -> None:
        of = effect.checkpoint
        unstored.under_way -= 1
        if self._unstored.get(number) is not unstored:
            return
        if isinstance(written, EnvironmentFailure):
            now_s = time.monotonic()
            if now_s - unstored.refused_s.setdefault(of.number, now_s) >= PATIENCE_S:
                raise written
            self._refused.append(Refused(number, of.number, printable(str(written))))
            self._at(number, Partition.on_store_failed, of.epoch, of.number)
            return
        self._kept.append((Kept(number, of.number, time.monotonic() - begun_s, written, of.forced), begun_s))
        self._at(number, Partition.on_stored, of.epoch, of.number)


def let_go(store: ObjectStore, keys: Iterable[str]) -> None:
    """Delete objects that nobody needs. The end of the run deletes what the store refuses to delete now."""
    with suppress(EnvironmentFailure):
        for key in keys:
            store.delete(key)


def letting_others_go_on(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """These pieces; after each millisecond comes a pause, in which a thread that waits goes on.

    Without it a thread that makes pieces of Python's objects lets go only when it has been asked for 5 ms, and then at
    the end of the piece that it is at.
    """
    begun_s = time.perf_counter()
    for piece in pieces:
        yield piece
        if time.perf_counter() - begun_s >= BUSY_S:
            time.sleep(PAUSE_S)
            begun_s = time.perf_counter()
