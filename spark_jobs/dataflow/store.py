"""Where checkpoints and logs survive: objects that are written whole or not at all, and checked when they are read."""

from __future__ import annotations

import os
import struct
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias
from uuid import uuid4
from zlib import crc32

import pyarrow as pa

from experiments.errors import AftershockError, EnvironmentFailure

Piece: TypeAlias = bytes | pa.Buffer
SEAL = struct.Struct("<IQ")  # checksum and length
WRITTEN_BYTES, MOST_PIECES = 1 << 18, 256


class UnreadableObject(AftershockError):
    """An object is missing, or it is not what was written: whoever needs it falls back to an older one."""

    def __init__(self, key: str, cause: str) -> None:
        super().__init__(f"the object {key} can't be used: {cause}")
        self.key = key


class ObjectStore(ABC):
    """Objects by key, such as `count.0/state-3-1`. An object is never changed, only written and deleted."""

    def put(self, key: str, pieces: Iterable[Piece]) -> int:
        """Write an object whole, its pieces one after the other, and return its length [bytes].

        A piece is asked for when those before it are being written, so that large objects are never there at once.
        Raises `EnvironmentFailure` if the store refuses.
        """
        sealed = _Sealed(key, pieces)
        self._write(key, sealed)
        return sealed.length

    def get(self, key: str) -> bytes:
        """Read an object; raises `UnreadableObject` if it is missing or corrupt."""
        found = self._read(key)
        data, seal = found[: -SEAL.size], found[-SEAL.size :]
        *_, expected = _Sealed(key, [data])
        if seal != expected:
            raise UnreadableObject(key, "its checksum differs")
        return data

    def check(self) -> None:
        """Raises `EnvironmentFailure` for a store that takes nothing, or doesn't give it back."""
        key, content = f"check/{uuid4().hex}-0", b"content"
        self.put(key, [content])
        try:
            if self.get(key) != content:
                raise UnreadableObject(key, "it differs")
        except UnreadableObject as error:
            raise EnvironmentFailure(str(error), "look at the store") from error
        self.delete(key)

    def clear(self) -> int:
        """Delete all objects and return how many there were; raises `EnvironmentFailure` if the store refuses."""
        keys = self.keys()
        for key in keys:
            self.delete(key)
        return len(keys)

    @abstractmethod
    def delete(self, key: str) -> None:
        """Delete an object; nothing happens if it is not there. Raises `EnvironmentFailure` if the store refuses."""

    @abstractmethod
    def keys(self) -> list[str]:
        """The keys of all objects, in order, and of what was begun and never became one: its writer may be dead.

        Raises `EnvironmentFailure` if the store refuses.
        """

    @abstractmethod
    def _write(self, key: str, pieces: Iterable[Piece]) -> None: ...

    @abstractmethod
    def _read(self, key: str) -> bytes: ...


class MemoryStore(ObjectStore):
    """Objects in this process, for the simulation."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}

    def delete(self, key: str) -> None:
        self.objects.pop(key, None)

    def keys(self) -> list[str]:
        return sorted(self.objects)

    def _write(self, key: str, pieces: Iterable[Piece]) -> None:
        self.objects[key] = b"".join(pieces)

    def _read(self, key: str) -> bytes:
        if key not in self.objects:
            raise UnreadableObject(key, "it is not there")
        return self.objects[key]


class DirectoryStore(ObjectStore):
    """Objects as files below a directory that every host can reach."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def delete(self, key: str) -> None:
        try:
            (self._root / key).unlink(missing_ok=True)
        except OSError as error:
            raise EnvironmentFailure(f"the object {key} can't be deleted: {error}", "look at the store") from error

    def keys(self) -> list[str]:
        try:
            return sorted(str(path.relative_to(self._root)) for path in self._root.rglob("*") if path.is_file())
        except OSError as error:
            raise EnvironmentFailure(f"the objects in {self._root} can't be listed: {error}", "look there") from error

    def _write(self, key: str, pieces: Iterable[Piece]) -> None:
        path = self._root / key
        partial = path.with_name(f".{os.getpid()}.{path.name}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with partial.open("wb", buffering=0) as file:
                for some in _gathered(pieces):
                    _write_all(file.fileno(), some)
                os.fsync(file.fileno())
            partial.replace(path)
        except OSError as error:
            with suppress(OSError):
                partial.unlink()
            raise EnvironmentFailure(f"the object {key} can't be written: {error}", "look at the store") from error

    def _read(self, key: str) -> bytes:
        try:
            return (self._root / key).read_bytes()
        except OSError as error:
            raise UnreadableObject(key, str(error)) from error


class _Sealed:
    """The pieces of an object, then what tells whether it is as it was written: of the key too, for an object in
    another's place is corrupt."""

    def __init__(self, key: str, pieces: Iterable[Piece]) -> None:
        self._checksum, self._pieces = crc32(key.encode()), pieces
        self.length = 0

    def __iter__(self) -> Iterator[Piece]:
        for piece in self._pieces:
            self._checksum, self.length = crc32(piece, self._checksum), self.length + len(piece)
            yield piece
        yield SEAL.pack(self._checksum, self.length)


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
