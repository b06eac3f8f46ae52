"""The one error for a file of results that cannot be used, whatever is wrong with it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from experiments.errors import EnvironmentFailure

LONGEST_REASON = 300  # characters
REMEDY = "restore it, or remove its run"


class Damaged(EnvironmentFailure):
    """A file of a run, of a comparison or of a reproduction is not what it should be; `why` is one printable line."""

    def __init__(self, owner: str, file: str, why: str, remedy: str = REMEDY) -> None:
        self.owner, self.file, self.why = owner, file, in_one_line(why)
        what = f"{file} of {owner}" if owner else file
        super().__init__(f"{what} is damaged: {self.why}", remedy)


class Outdated(Damaged):
    """A table of another version of the code: it lacks a column that the schema now has."""


def in_one_line(text: str) -> str:
    """A text of unknown origin as one line that a terminal only prints: what is no printable character is escaped."""
    line = "".join(each if each.isprintable() else ascii(each)[1:-1] for each in " ".join(text.split()))
    return line if len(line) <= LONGEST_REASON else f"{line[:LONGEST_REASON]} ..."


def regular_size(path: Path) -> int:
    """The size of a regular file [bytes].

    A link counts as none, since it can lead anywhere, and so does a FIFO, which would be waited on for ever. Raises
    `FileNotFoundError` where nothing is, `ValueError` for anything else.
    """
    return checked_size(os.lstat(path))


def checked_size(about: os.stat_result) -> int:
    """As `regular_size`, of what is known already."""
    if not stat.S_ISREG(about.st_mode):
        raise ValueError("it is no regular file")
    return about.st_size
