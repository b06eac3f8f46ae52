"""Writes the records of a sink partition, in a separate thread."""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa

from experiments.errors import AftershockError
from testbed.stores.folders import make_folder, sync_folder

Numbered: TypeAlias = Mapping[int, Sequence[pa.RecordBatch]]  # output by its number, the lowest first


class Superseded(AftershockError):
    """Another slot has this sink by now: what this one has to say counts no more."""


class Outlet(ABC):
    """The world beyond one sink partition. Both calls may wait for it, and return when it has what they brought.

    They raise `Superseded` where the world knows that this outlet is an old one.
    """

    @abstractmethod
    def publish(self, outputs: Numbered) -> int:
        """Everything up to some number or nothing; what has a number that is published, or an earlier one, is left out.
        Returns the last number that is published.

        Number 0, without batches, only asks.
        """

    @abstractmethod
    def write(self, batches: Sequence[pa.RecordBatch]) -> None:
        """Write at least one batch, at once. A later failure does not undo it."""

    def abandon(self) -> None:
        """Publish nothing more, even if it is asked to: a successor will. Another thread may be publishing."""
        return

    def close(self) -> None:
        """Nothing more will come."""
        return


class Nowhere(Outlet):
    """Forgets everything."""

    def __init__(self) -> None:
        self._out = 0

    def publish(self, outputs: Numbered) -> int:
        self._out = max(*outputs, self._out)
        return self._out

    def write(self, batches: Sequence[pa.RecordBatch]) -> None:
        return


class Files(Outlet):
    """A file for each published number, which is there whole or not at all; one that only grows for the rest.

    What a predecessor was publishing when it was killed may be there, with a name that is not safe on the disk yet. So
    each call syncs the folder, whatever it has written itself. It is first looked at by the first call, which may wait:
    who makes the outlet must not.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._out = folder, -1
        self._opened_ns, self._written = time.time_ns(), 0

    def publish(self, outputs: Numbered) -> int:
        make_folder(self._folder)
        if self._out < 0:
            self._out = max((int(path.stem) for path in self._folder.glob("[0-9]*.arrow")), default=0)
        for number, batches in outputs.items():
            if batches:
                self._save(f"{number:09d}.arrow", batches)
            self._out = max(number, self._out)
        sync_folder(self._folder)
        return self._out

    def write(self, batches: Sequence[pa.RecordBatch]) -> None:
        make_folder(self._folder)
        self._written += 1
        self._save(f"plain-{self._opened_ns}-{self._written:09d}.arrow", batches)
        sync_folder(self._folder)

    def _save(self, name: str, batches: Sequence[pa.RecordBatch]) -> None:
        path = self._folder / name
        if path.exists():
            return
        scratch = self._folder / f".{os.getpid()}.{name}"
        with scratch.open("wb") as file, pa.ipc.new_stream(file, batches[0].schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
        with scratch.open("rb") as written:
            os.fsync(written.fileno())
        scratch.replace(path)


def published(folder: Path) -> list[pa.Table]:
    """The content of every file that `Files` has written below a folder, by name of sink partition and number."""
    return [pa.ipc.open_stream(path.read_bytes()).read_all() for path in sorted(folder.rglob("[!.]*.arrow"))]
