"""The one error for a file of results that cannot be used."""

from __future__ import annotations

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
