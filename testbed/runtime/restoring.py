"""Brings partitions back to checkpoints: a large state takes longer than a slot may be silent, so a thread reads it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from experiments.errors import AftershockError
from testbed.core.control import Restore, ToCoordinator, Unreadable
from testbed.core.partition import Partition, Rebuilt
from testbed.runtime.background import Background
from testbed.runtime.exchange import Exchange
from testbed.runtime.hosted import Hosted
from testbed.runtime.sinks import Superseded
from testbed.stores.store import ObjectStore, UnreadableObject

ReadBack: TypeAlias = tuple[dict[str, bytes], Rebuilt]


class Restoring:
    """`on_read` is called in the slot's thread with a partition, its `Restore`, and what was read and rebuilt for it.

    The coordinator is told of an object that can't be read. What was read for an epoch or a session that is over by
    then is dropped.
    """

    def __init__(
        self,
        store: ObjectStore,
        background: Background,
        exchange: Exchange,
        hosted: Hosted,
        tell: Callable[[int, ToCoordinator], None],
        on_read: Callable[[Partition, Restore, ReadBack], None],
    ) -> None:
        self._store, self._background, self._exchange = store, background, exchange
        self._hosted, self._tell, self._on_read = hosted, tell, on_read

    def begin(self, partition: Partition, message: Restore) -> None:
        """Read back what the partition is to restore."""
        self._background.submit(partial(self._read_back, partition, message), partial(self._end, partition, message))

    def _read_back(self, partition: Partition, message: Restore) -> ReadBack | AftershockError:
        """The objects, and what the state becomes by them."""
        if message.epoch != self._exchange.epoch:
            return Superseded(f"epoch {message.epoch} is over")
        keys = (*message.checkpoint.state_keys, *message.log_keys)
        try:
            objects = {key: self._store.get(key) for key in keys}
        except AftershockError as error:
            return error
        return objects, partition.rebuilt(message, objects)

    def _end(self, partition: Partition, message: Restore, found: ReadBack | AftershockError) -> None:
        if message.epoch != self._exchange.epoch or not self._hosted.has(partition):
            return
        if isinstance(found, UnreadableObject):
            self._tell(partition.number, Unreadable(partition.number, message.epoch, found.key))
            return
        if isinstance(found, AftershockError):
            raise found
        self._on_read(partition, message, found)
