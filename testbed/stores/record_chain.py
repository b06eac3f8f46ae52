"""A chain of records in a store: only one writer at a time can add the next one (decision 37).

Each record has the next number, and a store creates an object only if none has its name. A new writer first adds a
record, before anything else. The previous writer then finds that number taken, and knows that it was replaced.
"""

from __future__ import annotations

import re
import secrets
from contextlib import suppress

from experiments.errors import AftershockError, EnvironmentFailure
from testbed.stores.store import ObjectStore, UnreadableObject

FOLDER = "driver"
NAME = re.compile(rf"{FOLDER}/record-(\d+)")
WRITER_BYTES = 16
NOTHING = b""  # the first record of the first writer


class TakenOver(AftershockError):
    """Another writer has come since: nothing that this one decides counts any more."""

    def __init__(self) -> None:
        super().__init__("another driver has taken over this run: this one ends")


class RecordChain:
    """The records of a store, as one writer sees them.

    first   the number of this writer's first record, once it has taken over: no other writer ever has the same

    The first record of each writer stays, so that the previous writer always finds its next number taken. The record
    that the writer found stays, too. Of its other records, only the newest stays.
    """

    def __init__(self, store: ObjectStore) -> None:
        self._store, self._writer = store, secrets.token_bytes(WRITER_BYTES)
        self._number, self.first, self._content = 0, 0, NOTHING

    def take_over(self) -> bytes:
        """Shut out every writer before this one. Returns the newest record, which is this writer's first one now, or
        `NOTHING` if there is none.

        Raises `EnvironmentFailure` if the store refuses, and then may be called again; `UnreadableObject` if the record
        can't be read, since an older one may name what was deleted since.
        """
        while True:
            self._number, self.first = self._newest(), 0
            found = self._last()
            if found is None:
                continue
            with suppress(TakenOver):  # its writer was just adding one
                self.add(found)
                # If there are newer ones, its writer has added several, and the number was free again. What was added
                # here stays, because it may shut out a writer that came in between.
                if self._newest() == self._number:
                    return found

    def add(self, content: bytes) -> None:
        """Write the next record.

        Raises `TakenOver`, and `EnvironmentFailure` if the store refuses: the record may be there all the same, so the
        next call looks.
        """
        self._content, written = content, self._writer + content
        while not self._store.create(_key(self._number + 1), written):
            found = self._found(self._number + 1)
            if found[:WRITER_BYTES] != self._writer:
                raise TakenOver
            if found == written:  # a refusal was none
                break
            self._step()
        self._step()

    def confirm(self) -> None:
        """Add the newest record once more: raises `TakenOver` if another writer has come, and errors as `add` does."""
        self.add(self._content)

    def _newest(self) -> int:
        found = map(NAME.fullmatch, self._store.keys(FOLDER))
        return max((int(each[1]) for each in found if each), default=0)

    def _last(self) -> bytes | None:
        """The newest record; None if its writer lives, and has deleted it meanwhile."""
        if not self._number:
            return NOTHING
        try:
            return self._store.get(_key(self._number))[WRITER_BYTES:]
        except UnreadableObject:
            if self._newest() > self._number:
                return None
            raise

    def _found(self, number: int) -> bytes:
        try:
            return self._store.get(_key(number))
        except UnreadableObject:  # deleted, or sealed by others
            raise TakenOver from None

    def _step(self) -> None:
        before, self._number = self._number, self._number + 1
        if not self.first:
            self.first = self._number
        elif before > self.first:
            with suppress(EnvironmentFailure):  # a record that stays does no harm
                self._store.delete(_key(before))


def _key(number: int) -> str:
    return f"{FOLDER}/record-{number:08d}"
