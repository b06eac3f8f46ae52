"""Where checkpoints and logs survive: objects that are written whole or not at all, and checked when they are read."""

from __future__ import annotations

import os
import struct
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias
from zlib import crc32

import pyarrow as pa

from experiments.errors import AftershockError, EnvironmentFailure

Piece: TypeAlias = bytes | pa.Buffer
SEAL = struct.Struct("<IQ")  # checksum and length


class UnreadableObject(AftershockError):
    """An object is missing, or it is not what was written: whoever needs it falls back to an older one."""

    def __init__(self, key: str, cause: str) -> None:
        super().__init__(f"the object {key} can't be used: {cause}")
        self.key = key


class ObjectStore(ABC):
    """Objects by key, such as `count.0/state-3-1`. An object is never changed, only written and deleted."""

    def put(self, key: str, *pieces: Piece) -> None:
        """Write an object whole, its pieces one after the other; raises `EnvironmentFailure` if the store refuses."""
        self._write(key, [_seal(key, pieces), *pieces])

    def get(self, key: str) -> bytes:
        """Read an object; raises `UnreadableObject` if it is missing or corrupt."""
        found = self._read(key)
        data = found[SEAL.size :]
        if found[: SEAL.size] != _seal(key, [data]):
            raise UnreadableObject(key, "its checksum differs")
        return data

    @abstractmethod
    def delete(self, key: str) -> None:
        """Delete an object; nothing happens if it is not there."""

    @abstractmethod
    def keys(self) -> list[str]:
        """The keys of all objects, in order, and of what was begun and never became one: its writer may be dead."""

    @abstractmethod
    def _write(self, key: str, pieces: Sequence[Piece]) -> None: ...

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

    def _write(self, key: str, pieces: Sequence[Piece]) -> None:
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
        (self._root / key).unlink(missing_ok=True)

    def keys(self) -> list[str]:
        return sorted(str(path.relative_to(self._root)) for path in self._root.rglob("*") if path.is_file())

    def _write(self, key: str, pieces: Sequence[Piece]) -> None:
        path = self._root / key
        partial = path.with_name(f".{os.getpid()}.{path.name}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with partial.open("wb") as file:
                file.writelines(pieces)
                file.flush()
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


def _seal(key: str, pieces: Sequence[Piece]) -> bytes:
    """What tells whether an object is as it was written. Of the key too: one in another's place is corrupt."""
    checksum, length = crc32(key.encode()), 0
    for piece in pieces:
        checksum, length = crc32(piece, checksum), length + len(piece)
    return SEAL.pack(checksum, length)
