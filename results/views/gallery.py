"""The papers' tables and figures that were computed again here, read from where `aftershock reproduce` writes.

reproductions/PAPER/FIGURE/PAPER-FIGURE.{verdicts.json,parquet,csv,png,svg}
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from experiments.errors import BadInput
from results.damage import Damaged
from results.runs import store
from results.runs.json_files import Document, Name, Words, read_document
from results.verdict import Verdict

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
KINDS = ("svg", "png", "csv", "parquet")


class _Check(Document):
    check: Name
    verdict: Annotated[Verdict, Field(strict=False)]
    observed: Words | None = None
    expected: Words | None = None
    detail: Words | None = None


class _Document(Document):
    what: Words
    kind: Name
    verdict: Annotated[Verdict, Field(strict=False)]
    verdicts: list[_Check]


@dataclass(frozen=True)
class StoredReproduction:
    """One table or figure of a paper; `lack` says why its verdicts cannot be read."""

    paper: str
    figure: str
    folder: Path
    what: str
    kind: str
    verdict: str
    verdicts: list[dict[str, Any]]
    lack: str | None = None

    def file(self, kind: str) -> Path | None:
        """The file of one of `KINDS`, if it was written; a link is none."""
        path = self.folder.resolve() / f"{self.paper}-{self.figure}.{kind}"
        return path if kind in KINDS and path.is_file() and path.resolve() == path else None

    @property
    def kinds(self) -> list[str]:
        """Which of `KINDS` were written, in that order."""
        return [kind for kind in KINDS if self.file(kind)]


def all_reproduced() -> list[StoredReproduction]:
    """Everything that was reproduced, in the order of papers and figures."""
    folders = sorted((store.home() / "reproductions").glob("*/*/"))
    names = [(folder.parent.name, folder.name) for folder in folders]
    return [_read(paper, figure) for paper, figure in names if _is_reproduced(paper, figure)]


def reproduced(paper: str, figure: str) -> StoredReproduction:
    """One table or figure; raises `BadInput` if it was not reproduced here."""
    if _is_reproduced(paper, figure):
        return _read(paper, figure)
    raise BadInput("id", f"{paper}/{figure}", "a table or figure that was reproduced here")


def _is_reproduced(paper: str, figure: str) -> bool:
    names = NAME.fullmatch(paper) and NAME.fullmatch(figure)
    return names is not None and os.path.lexists(_verdicts(paper, figure))


def _verdicts(paper: str, figure: str) -> Path:
    return store.home() / "reproductions" / paper / figure / f"{paper}-{figure}.verdicts.json"


def _read(paper: str, figure: str) -> StoredReproduction:
    path = _verdicts(paper, figure)
    try:
        document = read_document(path, _Document, f"{paper}/{figure}")
        verdicts = [verdict.to_json() for verdict in document.verdicts]
        return StoredReproduction(paper, figure, path.parent, document.what, document.kind, document.verdict, verdicts)
    except (Damaged, FileNotFoundError) as error:
        lack = f"{path.name} cannot be read ({error})"
        return StoredReproduction(paper, figure, path.parent, figure, "", Verdict.UNKNOWN.value, [], lack)
