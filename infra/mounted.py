"""What is mounted on this machine, as the kernel lists it.

Any user may mount something (FUSE) on a folder of any name. So a name need not be UTF-8, and may hold what Python takes
for a blank or for the end of a line; the kernel escapes blanks, tabs and line feeds only. Needs the standard library
only, because agents on hosts use it too.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

MOUNTS = Path("/proc/self/mounts")
ESCAPED = re.compile(rb"\\([0-7]{3})")


class Mounted(NamedTuple):
    """A file system: what was mounted, on which folder, and its type."""

    source: str
    folder: Path
    kind: str


def mounted() -> list[Mounted]:
    """All file systems, in the order in which they were mounted: on one folder, a later one hides an earlier one."""
    rows = (line.split(b" ") for line in MOUNTS.read_bytes().split(b"\n") if line)
    return [Mounted(_name(source), Path(_name(folder)), _name(kind)) for source, folder, kind, *_ in rows]


def _name(field: bytes) -> str:
    return os.fsdecode(ESCAPED.sub(lambda code: bytes([int(code[1], 8)]), field))
