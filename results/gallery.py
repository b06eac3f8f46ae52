"""The papers' tables and figures that were computed again here, read from where `aftershock reproduce` writes.

reproductions/PAPER/FIGURE/PAPER-FIGURE.{verdicts.json,parquet,csv,png,svg}
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.errors import BadInput, EnvironmentFailure
from results import store

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
KINDS = ("svg", "png", "csv", "parquet")


@dataclass(frozen=True)
class Reproduced:
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
        return [kind for kind in KINDS if self.file(kind)]


def all_reproduced() -> list[Reproduced]:
    """Everything that was reproduced, in the order of papers and figures."""
    found = sorted((store.home() / "reproductions").glob("*/*/*.verdicts.json"))
    names = [(path.parent.parent.name, path.parent.name) for path in found]
    return [_read(paper, figure) for paper, figure in names if NAME.fullmatch(paper) and NAME.fullmatch(figure)]


def reproduced(paper: str, figure: str) -> Reproduced:
    """One table or figure; raises `BadInput` if it was not reproduced here."""
    if NAME.fullmatch(paper) and NAME.fullmatch(figure) and _verdicts(paper, figure).is_file():
        return _read(paper, figure)
    raise BadInput("id", f"{paper}/{figure}", "a table or figure that was reproduced here")


def _verdicts(paper: str, figure: str) -> Path:
    return store.home() / "reproductions" / paper / figure / f"{paper}-{figure}.verdicts.json"


def _read(paper: str, figure: str) -> Reproduced:
    path = _verdicts(paper, figure)
    try:
        document = store.read_json(path)
        told = [str(document[name]) for name in ("what", "kind", "verdict")]
        return Reproduced(paper, figure, path.parent, *told, list(document["verdicts"]))
    except (EnvironmentFailure, FileNotFoundError, KeyError, TypeError) as error:
        return Reproduced(
            paper, figure, path.parent, figure, "", "unknown", [], f"{path.name} cannot be read ({error})"
        )
