"""A file of JSON lines that only grows: a long measurement can be ended at any moment, and continued later."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

# Keys of ledgers that were begun before, and what they are called since.
RENAMED = {"amiss": "wrong"}


def whole_lines(path: Path) -> list[dict[str, Any]]:
    """The lines that are complete; one that a crash has cut short is cut off the file."""
    if not path.exists():
        return []
    data = path.read_bytes()
    whole = data[: data.rfind(b"\n") + 1]
    if whole != data:
        path.write_bytes(whole)
    lines = map(json.loads, whole.splitlines())
    return [{RENAMED.get(key, key): value for key, value in line.items()} for line in lines]


def add_line(path: Path, line: dict[str, Any]) -> None:
    """Add a line, and return once it is on the disk."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
        file.flush()
        os.fsync(file.fileno())
