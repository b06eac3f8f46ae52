"""A file of JSON lines that only grows: a long measurement can be ended at any moment, and continued later."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from experiments.errors import BadInput

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Line = TypeVar("Line", bound="DataclassInstance")


class JsonLedger(Generic[Line]):
    """What was measured so far: a line each, which is a dataclass of this kind. One that a crash cut short is removed.

    Raises `BadInput` for a file that such a ledger did not write, which stays as it is, and for a path that is none.
    """

    def __init__(self, path: Path, kind: type[Line]) -> None:
        if path.is_dir() or not path.parent.is_dir():
            raise BadInput("--ledger", str(path), "a file, or a new one in a folder that exists")
        self._path, self.lines = path, list[Line]()
        if path.exists():
            *whole, cut = path.read_bytes().split(b"\n")
            self.lines += [_parsed(text, kind, f"line {number} of {path}") for number, text in enumerate(whole, 1)]
            if not _beginning(kind).startswith(cut[: len(_beginning(kind))]):
                raise _not_ours(kind, f"the end of {path}")
            os.truncate(path, path.stat().st_size - len(cut))

    def add(self, line: Line) -> None:
        """Add a line, and return once it is on the disk."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(line)) + "\n")
            file.flush()
            os.fsync(file.fileno())
        self.lines.append(line)


def _parsed(text: bytes, kind: type[Line], where: str) -> Line:
    line_of: Callable[..., Line] = kind
    try:
        return line_of(**json.loads(text))
    except (ValueError, TypeError):
        raise _not_ours(kind, where) from None


def _beginning(kind: type[Any]) -> bytes:
    """How each line begins."""
    return f'{{"{fields(kind)[0].name}": '.encode()


def _not_ours(kind: type[Any], where: str) -> BadInput:
    names = ", ".join(each.name for each in fields(kind))
    return BadInput("--ledger", where, f"a file that this command has written, with {names} in each line")
