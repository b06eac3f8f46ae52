"""The one error for a file of results that cannot be used, whatever is wrong with it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from experiments.errors import EnvironmentFailure
from experiments.wording import on_one_line

LONGEST_REASON = 300  # characters
REMEDY = "restore it, or remove its run"


class Damaged(EnvironmentFailure):
    """A file of a run, of a comparison or of a reproduction is not what it should be; `why` is one printable line."""

    def __init__(self, owner: str, file: str, why: str, remedy: str = REMEDY) -> None:
        self.owner, self.file, self.why = owner, file, on_one_line(" ".join(why.split()), LONGEST_REASON)
        what = f"{file} of {owner}" if owner else file
        super().__init__(f"{what} is damaged: {self.why}", remedy)


class Outdated(Damaged):
    """A table of another version of the code: it lacks a column that the schema now has."""


def regular_size(path: Path) -> int:
    """The size of a regular file [bytes].

    A link counts as none, since it can lead anywhere, and so does a FIFO, which would be waited on for ever. Raises
    `FileNotFoundError` where nothing is, `ValueError` for anything else.
    """
    about = os.lstat(path)
    if not stat.S_ISREG(about.st_mode):
        raise ValueError("it is no regular file")
    return about.st_size
