"""Restores partitions from checkpoints, in a thread, since a large state takes longer than a slot may be silent."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from experiments.errors import AftershockError
from testbed.core.control import Restore, ToCoordinator, ToPartition, Unreadable
from testbed.core.partition.partition import Rebuilt
from testbed.runtime.background import Background
from testbed.runtime.connectors.sinks import Superseded
from testbed.runtime.slot.hosted import Hosted, Timed
from testbed.stores.store import ObjectStore, UnreadableObject


@dataclass(frozen=True)
class ReadBack:
    """What was read for a partition: the objects, what it becomes by them, and how long that took [s]."""

    objects: dict[str, bytes]
    rebuilt: Rebuilt
    seconds: float

    @property
    def size_bytes(self) -> int:
        """The size of the objects."""
        return sum(map(len, self.objects.values()))


class Restoring:
    """`on_read` is called in the slot's thread with a partition, its `Restore`, what was read and rebuilt for it, and
    what the coordinator has told it since.

    The coordinator is told of an object that can't be read. What was read for a recovery or a session that is over by
    then is dropped.
    """

    def __init__(
        self,
        store: ObjectStore,
        background: Background,
        hosted: Hosted,
        tell: Callable[[int, ToCoordinator], None],
        on_read: Callable[[Timed, Restore, ReadBack, list[ToPartition]], None],
    ) -> None:
        self._store, self._background = store, background
        self._hosted, self._tell, self._on_read = hosted, tell, on_read
        self._under_way: dict[int, int] = {}
        self._put_off: dict[int, list[ToPartition]] = {}

    def cancel(self, numbers: Iterable[int]) -> None:
        """Another recovery begins for these partitions."""
        for number in numbers:
            self._under_way.pop(number, None)

    def clear(self) -> None:
        """The session is over: what is read back later should not wait for what was asked before."""
        self._under_way.clear()
        self._put_off.clear()

    def begin(self, partition: Timed, message: Restore) -> None:
        """Read back what the partition is to restore."""
        self._under_way[partition.number] = message.epoch
        self._put_off[partition.number] = []
        self._background.submit(partial(self._read_back, partition, message), partial(self._end, partition, message))

    def put_off(self, number: int, message: ToPartition) -> bool:
        """Whether the partition is being restored: then it hears the message afterwards."""
        if number in self._under_way:
            self._put_off[number].append(message)
        return number in self._under_way

    def _read_back(self, partition: Timed, message: Restore) -> ReadBack | AftershockError:
        """The objects, and what the state becomes by them."""
        if self._under_way.get(partition.number) != message.epoch:
            return Superseded(f"epoch {message.epoch} is over")
        keys, begun_s = (*message.checkpoint.state_keys, *message.log_keys), time.monotonic()
        try:
            objects = {key: self._store.get(key) for key in keys}
        except AftershockError as error:
            return error
        rebuilt = partition.rebuilt(message, objects)
        return ReadBack(objects, rebuilt, time.monotonic() - begun_s)

    def _end(self, partition: Timed, message: Restore, found: ReadBack | AftershockError) -> None:
        number = partition.number
        if self._under_way.get(number) != message.epoch or not self._hosted.has(partition):
            return
        del self._under_way[number]
        if isinstance(found, UnreadableObject):
            self._tell(number, Unreadable(number, message.epoch, found.key))
            return
        if isinstance(found, AftershockError):
            raise found
        self._on_read(partition, message, found, self._put_off.pop(number))
