"""Where checkpoints and logs survive: objects that are written whole or not at all, and checked when they are read."""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from contextlib import suppress
from pathlib import Path

from experiments.errors import AftershockError, EnvironmentFailure

DIGEST_BYTES = 16


class UnreadableObject(AftershockError):
    """An object is missing, or it is not what was written: whoever needs it falls back to an older one."""

    def __init__(self, key: str, cause: str) -> None:
        super().__init__(f"the object {key} can't be used: {cause}")
        self.key = key


class ObjectStore(ABC):
    """Objects by key, such as `count.0/state-3-1`. An object is never changed, only written and deleted."""

    def put(self, key: str, data: bytes) -> None:
        """Write an object whole; raises `EnvironmentFailure` if the store refuses."""
        self._write(key, _digest(key, data) + data)

    def get(self, key: str) -> bytes:
        """Read an object; raises `UnreadableObject` if it is missing or corrupt."""
        found = self._read(key)
        data = found[DIGEST_BYTES:]
        if found[:DIGEST_BYTES] != _digest(key, data):
            raise UnreadableObject(key, "its checksum differs")
        return data

    @abstractmethod
    def delete(self, key: str) -> None:
        """Delete an object; nothing happens if it is not there."""

    @abstractmethod
    def keys(self) -> list[str]:
        """The keys of all objects, in order."""

    @abstractmethod
    def _write(self, key: str, data: bytes) -> None: ...

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

    def _write(self, key: str, data: bytes) -> None:
        self.objects[key] = data

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
        found = (path for path in self._root.rglob("*") if path.is_file() and not path.name.startswith("."))
        return sorted(str(path.relative_to(self._root)) for path in found)

    def _write(self, key: str, data: bytes) -> None:
        path = self._root / key
        partial = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with partial.open("wb") as file:
                file.write(data)
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


def _digest(key: str, data: bytes) -> bytes:
    """Of the key too: an object in another's place is corrupt."""
    return hashlib.blake2b(
        data, digest_size=DIGEST_BYTES, person=hashlib.blake2b(key.encode(), digest_size=16).digest()
    ).digest()
