"""Reads the papers' tables and figures that `aftershock reproduce` has written.

reproductions/PAPER/FIGURE/PAPER-FIGURE.{verdicts.json,parquet,csv,png,svg}

Those that this installation has not computed are shown as they were published with the repository. So are those
of which it has verdicts that say why there is no table, if a table was published.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from pydantic import Field

from experiments.errors import BadInput
from results.damage import Damaged
from results.runs import published, store
from results.runs.json_files import Document, Name, Whole, Words, read_document
from results.runs.published import Publication
from results.verdict import Verdict

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
TABLES = ("csv", "parquet")
KINDS = ("svg", "png", *TABLES)


class StoredComparison(Document):
    """How a table compares with the published one."""

    verdict: Annotated[Verdict, Field(strict=False)]
    observed: Words | None = None
    expected: Words | None = None
    detail: Words | None = None


class StoredVerdict(StoredComparison):
    """The verdict of one check."""

    check: Name


class _Document(Document):
    what: Words
    kind: Name
    verdict: Annotated[Verdict, Field(strict=False)]
    verdicts: list[StoredVerdict]
    size: Whole | None = None
    published: StoredComparison | None = None


@dataclass(frozen=True)
class StoredReproduction:
    """One table or figure of a paper.

    beside       how it compares with the published one, if it was compared
    size         what it was computed at; None where there is no size to choose
    lack         why its verdicts cannot be read
    publication  how it came about, if it is a published one
    """

    paper: str
    figure: str
    folder: Path
    what: str
    kind: str
    verdict: str
    verdicts: list[StoredVerdict]
    size: int | None = None
    beside: StoredComparison | None = None
    lack: str | None = None
    publication: Publication | None = None
    is_published: bool = False

    @property
    def id(self) -> str:
        """The id that `aftershock reproduce` takes."""
        return f"{self.paper}/{self.figure}"

    @property
    def verdicts_path(self) -> Path:
        """Where its verdicts are."""
        return self.folder / f"{self.paper}-{self.figure}.verdicts.json"

    def file(self, kind: str) -> Path | None:
        """The file of one of `KINDS`, if it was written; a link is none, nor is what this version does not read."""
        if self.is_published and self.lack:
            return None
        path = self.folder.resolve() / f"{self.paper}-{self.figure}.{kind}"
        return path if kind in KINDS and path.is_file() and path.resolve() == path else None

    @property
    def has_table(self) -> bool:
        """Whether its table is there, for programs or for people."""
        return any(self.file(kind) for kind in TABLES)

    @property
    def kinds(self) -> list[str]:
        """Which of `KINDS` were written, in that order."""
        return [kind for kind in KINDS if self.file(kind)]


def all_reproduced() -> list[StoredReproduction]:
    """Everything that was reproduced, in the order of papers and figures."""
    folders = [folder for root in (store.home(), published.folder()) for folder in root.glob("reproductions/*/*/")]
    names = sorted({(folder.parent.name, folder.name) for folder in folders})
    found = (_found(paper, figure) for paper, figure in names)
    return [each for each in found if each is not None]


def reproduced(paper: str, figure: str) -> StoredReproduction:
    """One table or figure; raises `BadInput` if it was neither reproduced here nor published."""
    found = _found(paper, figure)
    if found is None:
        raise BadInput("id", f"{paper}/{figure}", "a table or figure that was reproduced here")
    return found


def published_reproduction(id: str) -> StoredReproduction | None:
    """The table or figure as it was published, even if another one was computed here; None if none was published."""
    paper, _, figure = id.partition("/")
    folder = published.folder() / "reproductions" / paper / figure
    return _read_published(paper, figure, folder) if _is_name(paper, figure) and published.is_there(folder) else None


def _found(paper: str, figure: str) -> StoredReproduction | None:
    """What was computed here, or else what was published."""
    own = _own(paper, figure)
    if own and own.has_table:
        return own
    other = published_reproduction(f"{paper}/{figure}")
    return other if own is None or (other and other.has_table) else own


def _own(paper: str, figure: str) -> StoredReproduction | None:
    folder = store.home() / "reproductions" / paper / figure
    if _is_name(paper, figure) and os.path.lexists(folder / f"{paper}-{figure}.verdicts.json"):
        return _read(paper, figure, folder)
    return None


def _is_name(paper: str, figure: str) -> bool:
    return bool(NAME.fullmatch(paper) and NAME.fullmatch(figure))


def _read_published(paper: str, figure: str, folder: Path) -> StoredReproduction:
    try:
        about = published.read(folder, f"{paper}/{figure}")
    except (Damaged, FileNotFoundError) as error:
        return replace(_unread(paper, figure, folder, str(error)), is_published=True)
    return replace(_read(paper, figure, folder), publication=about, is_published=True)


def _read(paper: str, figure: str, folder: Path) -> StoredReproduction:
    path = folder / f"{paper}-{figure}.verdicts.json"
    try:
        document = read_document(path, _Document, f"{paper}/{figure}")
    except (Damaged, FileNotFoundError) as error:
        return _unread(paper, figure, folder, f"{path.name} cannot be read ({error})")
    about = (document.what, document.kind, document.verdict, document.verdicts, document.size)
    return StoredReproduction(paper, figure, folder, *about, beside=document.published)


def _unread(paper: str, figure: str, folder: Path, why: str) -> StoredReproduction:
    return StoredReproduction(paper, figure, folder, figure, "", Verdict.UNKNOWN.value, [], lack=why)
