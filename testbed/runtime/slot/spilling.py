"""Moves output that is too much for memory to the store and back, in the thread that stores."""

from __future__ import annotations

from functools import partial

from experiments.errors import AftershockError, EnvironmentFailure
from testbed.core.effects import Discard, Fetch, Spill
from testbed.core.partition.partition import Partition
from testbed.runtime.background import Background
from testbed.runtime.slot.hosted import At
from testbed.runtime.slot.storing import Storing, let_go
from testbed.stores.store import ObjectStore, UnreadableObject


class Spilling:
    """When a life of a partition is over, it writes and reads nothing more: what it wrote would only be deleted after
    the next life, and a store that refuses to read ends no slot that needs nothing of it."""

    def __init__(self, store: ObjectStore, background: Background, storing: Storing, at: At) -> None:
        self._store, self._background, self._storing, self._at = store, background, storing, at

    def do(self, number: int, effect: Spill | Fetch | Discard) -> None:
        """Do what a partition asks, after what was asked before."""
        life = self._storing.life(number)
        match effect:
            case Spill(key):
                self._background.submit(
                    partial(self._write, number, life, effect), partial(self._on_written, number, key)
                )
            case Fetch(key):
                self._background.submit(
                    partial(self._read, number, life, key), partial(self._on_read, number, life, key)
                )
            case Discard(keys):
                self._background.submit(partial(let_go, self._store, keys), lambda _: None)

    def forget(self, partition: Partition) -> None:
        """A copy is of no more use: it writes nothing more, and what it has written is deleted."""
        self._storing.restart(partition.number)
        if keys := partition.sending.spilled.keys:
            self.do(partition.number, Discard(tuple(sorted(keys))))

    def _write(self, number: int, life: object, effect: Spill) -> EnvironmentFailure | None:
        """Why the store refused; None if it did not."""
        if self._storing.life(number) is life:
            try:
                self._store.put(effect.key, effect.content())
            except EnvironmentFailure as error:
                return error
            finally:
                if self._storing.life(number) is not life:
                    let_go(self._store, [effect.key])  # as with a checkpoint
        return None

    def _on_written(self, number: int, key: str, refusal: EnvironmentFailure | None) -> None:
        answer = Partition.on_spilled if refusal is None else Partition.on_spill_refused
        self._at(number, answer, key)

    def _read(self, number: int, life: object, key: str) -> bytes | AftershockError:
        if self._storing.life(number) is not life:
            return UnreadableObject(key, "nobody needs it any more")
        try:
            return self._store.get(key)
        except AftershockError as error:
            return error

    def _on_read(self, number: int, life: object, key: str, found: bytes | AftershockError) -> None:
        if self._storing.life(number) is not life:
            return
        if isinstance(found, UnreadableObject):
            self._at(number, Partition.on_unreadable, key)
        elif isinstance(found, AftershockError):
            raise found
        else:
            self._at(number, Partition.on_fetched, key, found)
