"""The store of checkpoints and logs: objects are written as a whole or not at all, and sealed.

They hold pickles, and reading a pickle runs the code of its author. So no part of an object is used before its seal is
verified.
"""

from __future__ import annotations

import errno
import os
import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from experiments.documents.plain_files import RefusedFile, read_whole
from experiments.errors import AftershockError, EnvironmentFailure
from experiments.waiting import retry
from testbed.core.seal import KEY_BYTES, SEAL_BYTES, Piece, Seal, is_sealed
from testbed.stores.folders import make_folder, sync_folder

PATIENCE_S, AGAIN_S = 120.0, 1.0  # for what must be read
DAMAGED = {errno.EIO, errno.EBADMSG, errno.EUCLEAN}  # what file systems say of blocks that they can't read
WRITTEN_BYTES, MOST_PIECES = 1 << 18, 256


class UnreadableObject(AftershockError):
    """An object is missing, or it is not what was written: code that needs it falls back to an older one."""

    def __init__(self, key: str, cause: str) -> None:
        super().__init__(f"the object {key} can't be used: {cause}")
        self.key = key


class ObjectStore(ABC):
    """Objects by key, such as `count.0/state-3-1`. An object is never changed, only written and deleted.

    `store_key` is known to all who read what others wrote. A store without one draws its own: it gives back only what
    it took itself.
    """

    def __init__(self, store_key: bytes | None = None) -> None:
        self._store_key = store_key or secrets.token_bytes(KEY_BYTES)

    def put(self, key: str, pieces: Iterable[Piece]) -> int:
        """Write an object whole, its pieces one after the other, and return its length [bytes].

        A piece is asked for when those before it are being written, so that large objects are never there at once.
        Raises `EnvironmentFailure` if the store refuses.
        """
        sealed = _Sealed(Seal(self._store_key, key), pieces)
        self._write(key, sealed)
        return sealed.length

    def create(self, key: str, content: bytes) -> bool:
        """Write a small object unless there is one with this key; returns whether it did. One of several writers wins.

        Raises `EnvironmentFailure` if the store refuses; then the object may be there all the same.
        """
        return self._create(key, b"".join(_Sealed(Seal(self._store_key, key), [content])))

    def get(self, key: str) -> bytes:
        """Read an object; raises `UnreadableObject` if it is missing, or not as a member of the run wrote it.

        Raises `EnvironmentFailure` if the store refuses for long.
        """
        found = self._read(key)
        length = len(found) - SEAL_BYTES
        if length < 0 or not is_sealed(self._store_key, key, memoryview(found)[:length], found[length:]):
            raise UnreadableObject(key, "its seal is not that of the run")
        return found[:length]

    def check(self) -> None:
        """Raises `EnvironmentFailure` for a store that takes nothing, or does not list it or give it back."""
        key, content = f"check/{uuid4().hex}-0", b"content"
        self.put(key, [content])
        try:
            if self.get(key) != content:
                raise UnreadableObject(key, "it differs")
            if key not in self.keys("check"):
                raise UnreadableObject(key, "it is not listed")
            if self.create(key, content):
                allowed = "one that creates an object only if there is none (S3: If-None-Match)"
                raise EnvironmentFailure("the store creates an object that is there already", f"use {allowed}")
        except UnreadableObject as error:
            raise EnvironmentFailure(str(error), "look at the store") from error
        self.delete(key)

    def clear(self) -> int:
        """Delete all objects and return how many there were.

        Raises `EnvironmentFailure` if the store refuses, but first deletes what it can: this is the end of the run.
        """
        keys, refusals = self.keys(), list[EnvironmentFailure]()
        for portion in self._portions(keys):
            try:
                self._delete_portion(portion)
            except EnvironmentFailure as refusal:
                refusals.append(refusal)
        if refusals:
            raise refusals[0]
        return len(keys)

    @abstractmethod
    def delete(self, key: str) -> None:
        """Delete an object; nothing happens if it is not there. Raises `EnvironmentFailure` if the store refuses."""

    @abstractmethod
    def keys(self, folder: str = "") -> list[str]:
        """The keys of all objects, in order, and of what was begun and never became one: its writer may be dead.

        `folder`: only keys that begin with it and a slash. Raises `EnvironmentFailure` if the store refuses.
        """

    def _portions(self, keys: list[str]) -> list[list[str]]:
        """These keys as one request after the other deletes them."""
        return [[key] for key in keys]

    def _delete_portion(self, keys: list[str]) -> None:
        for key in keys:
            self.delete(key)

    @abstractmethod
    def _write(self, key: str, pieces: Iterable[Piece]) -> None: ...

    @abstractmethod
    def _create(self, key: str, sealed: bytes) -> bool: ...

    @abstractmethod
    def _read(self, key: str) -> bytes: ...


class MemoryStore(ObjectStore):
    """Objects in this process, for the simulation."""

    def __init__(self, store_key: bytes | None = None) -> None:
        super().__init__(store_key)
        self.objects: dict[str, bytes] = {}

    def delete(self, key: str) -> None:
        self.objects.pop(key, None)

    def keys(self, folder: str = "") -> list[str]:
        return sorted(key for key in self.objects if not folder or key.startswith(f"{folder}/"))

    def _write(self, key: str, pieces: Iterable[Piece]) -> None:
        self.objects[key] = b"".join(pieces)

    def _create(self, key: str, sealed: bytes) -> bool:
        return self.objects.setdefault(key, sealed) is sealed

    def _read(self, key: str) -> bytes:
        if key not in self.objects:
            raise UnreadableObject(key, "it is not there")
        return self.objects[key]


class DirectoryStore(ObjectStore):
    """Objects as files below a directory that every host can reach.

    A read that fails is retried until `patience_s` is over, since a file server may be out of reach for a while. A disk
    with a bad block gives the same error: if that lasts, the object is unreadable, and the run falls back to an older
    one.
    """

    def __init__(self, root: Path, store_key: bytes | None = None, patience_s: float = PATIENCE_S) -> None:
        super().__init__(store_key)
        self._root, self._patience_s = root, patience_s

    def delete(self, key: str) -> None:
        try:
            (self._root / key).unlink(missing_ok=True)
        except OSError as error:
            raise EnvironmentFailure(f"the object {key} can't be deleted: {error}", "look at the store") from error

    def keys(self, folder: str = "") -> list[str]:
        top = self._root / folder
        try:
            return sorted(str(path.relative_to(self._root)) for path in _files_below(top))
        except OSError as error:
            raise EnvironmentFailure(f"the objects in {top} can't be listed: {error}", "look there") from error

    def _write(self, key: str, pieces: Iterable[Piece]) -> None:
        with self._written_beside(key, pieces) as (partial, path):
            partial.replace(path)

    def _create(self, key: str, sealed: bytes) -> bool:
        with self._written_beside(key, [sealed]) as (partial, path):
            try:
                path.hardlink_to(partial)  # unlike a rename, it replaces nothing
            except FileExistsError:
                return False
            finally:
                partial.unlink()
        return True

    @contextmanager
    def _written_beside(self, key: str, pieces: Iterable[Piece]) -> Iterator[tuple[Path, Path]]:
        """A file with these pieces, safe on the disk, and the place where it is to go.

        Afterwards that place has its name for good, too, whether this file has gone there or another was there before.
        """
        path = self._root / key
        # The number of the process says who was writing, but containers of one host may have the same one.
        partial = path.with_name(f".{os.getpid()}.{uuid4().hex}.{path.name}")
        try:
            make_folder(path.parent)
            with partial.open("xb", buffering=0) as file:  # a link that somebody left there would lead elsewhere
                for some in _gathered(pieces):
                    _write_all(file.fileno(), some)
                os.fsync(file.fileno())
            yield partial, path
            sync_folder(path.parent)
        except Exception as error:  # whoever makes the pieces may fail, too
            with suppress(OSError):
                partial.unlink()
            if not isinstance(error, OSError):
                raise
            raise EnvironmentFailure(f"the object {key} can't be written: {error}", "look at the store") from error

    def _read(self, key: str) -> bytes:
        try:
            return retry(lambda: self._fetched(key), OSError, interval_s=AGAIN_S, limit_s=self._patience_s)
        except OSError as error:
            if error.errno in DAMAGED:
                raise UnreadableObject(key, str(error)) from error
            cause = f"the object {key} can't be read: {error}"
            raise EnvironmentFailure(cause, "look at the store, and at this host") from error

    def _fetched(self, key: str) -> bytes:
        try:
            return read_whole(self._root / key, None)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise UnreadableObject(key, "it is not there") from error
        except RefusedFile as refusal:
            raise UnreadableObject(key, f"it is {refusal.what}") from None


class _Sealed:
    """The pieces of an object, then their seal."""

    def __init__(self, seal: Seal, pieces: Iterable[Piece]) -> None:
        self._seal, self._pieces = seal, pieces
        self.length = 0

    def __iter__(self) -> Iterator[Piece]:
        for piece in self._pieces:
            self._seal.add(piece)
            self.length += len(piece)
            yield piece
        yield self._seal.end()


def _files_below(top: Path) -> Iterator[Path]:
    """Every file below a folder; none if it is not there.

    Raises `OSError` for a folder that can't be listed. `Path.rglob` takes it for an empty one: in Python 3.11 if access
    is denied, in later versions whatever the reason.
    """

    def refuse(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError | NotADirectoryError):
            raise error

    for folder, _, names in os.walk(top, onerror=refuse):
        yield from (path for name in names if (path := Path(folder, name)).is_file())


def _gathered(pieces: Iterable[Piece]) -> Iterator[list[Piece]]:
    """As many pieces as are worth a system call: what was made a moment ago is still in the processor's cache."""
    some, length = [], 0
    for piece in pieces:
        some.append(piece)
        length += len(piece)
        if length >= WRITTEN_BYTES or len(some) == MOST_PIECES:
            yield some
            some, length = [], 0
    yield some


def _write_all(file: int, pieces: list[Piece]) -> None:
    """A system call may write less than it was given."""
    views = [memoryview(piece).cast("B") for piece in pieces]
    while views:
        written = os.writev(file, views)
        while views and written >= len(views[0]):
            written -= len(views.pop(0))
        if views:
            views[0] = views[0][written:]
