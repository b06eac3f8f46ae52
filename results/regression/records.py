"""Stores comparisons: one immutable directory for each.

regressions/ID/   regression.json   regression.parquet   change_points.parquet
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from experiments.errors import BadInput
from results.damage import Damaged
from results.regression.change import Change
from results.runs import store
from results.runs.json_files import Document, Name, Whole, Words, read_document
from results.summary.metrics import Better, Scale
from results.tables import fit
from results.tables.comparison import COMPARISON_SCHEMAS, COMPARISON_TABLES
from results.tables.reading import read_arrow

log = logging.getLogger(__name__)
DOCUMENT = "regression.json"
WORDS: dict[str, fit.Words] = {
    "regression": {"verdict": Change, "better": Better, "scale": Scale},
    "change_points": {"verdict": Change},
}
ID = re.compile(r"regression-\d{8}-\d{6}-[0-9a-f]{4}")


Verdict = Annotated[Change, Field(strict=False)]
RunIds = list[Annotated[str, Field(pattern=f"^{store.RUN_ID.pattern}$")]]


class ComparedExperiment(Document):
    """The verdict on one experiment.

    experiment, experiment_digest, machine   which runs were compared: those that agree in these
    candidates, baseline                     run ids
    pinned                                   whether the baseline was chosen by hand
    sentences                                what became worse or better, and by how much
    notes                                    which runs were left out of the comparison, and why
    """

    experiment: Name
    experiment_digest: Name
    machine: Name
    verdict: Verdict
    candidates: RunIds
    baseline: RunIds
    pinned: bool
    sentences: list[Words]
    notes: list[Words] = Field(default_factory=list)

    def has(self, row: Mapping[str, Any]) -> bool:
        """Whether a row of the table `regression` is of this experiment."""
        return bool(row["experiment_digest"] == self.experiment_digest and row["machine"] == self.machine)


class RecordedComparison(Document):
    """What was compared, and the verdicts. A verdict is the text of a `Change`.

    verdict     of all experiments together
    asked_for   the experiment that was named; None if all were judged
    """

    regression_id: Name
    recorded_ns: Whole
    verdict: Verdict
    asked_for: Name | None = None
    experiments: list[ComparedExperiment]


@dataclass(frozen=True)
class Regression:
    """The directory of one recorded comparison."""

    regression_id: str
    root: Path

    def document(self) -> RecordedComparison:
        """What was compared, and the verdicts; the id is that of the directory.

        Raises `Damaged` for a document that is not like that, and `FileNotFoundError` where there is none.
        """
        found = read_document(self.root / DOCUMENT, RecordedComparison, self.regression_id)
        return found.model_copy(update={"regression_id": self.regression_id})

    def rows(self, name: str) -> list[dict[str, Any]]:
        """The rows of `regression` or `change_points` (`results.tables.schema`); raises `BadInput` for another name.

        Raises `Damaged` for a table that cannot be used.
        """
        if name not in COMPARISON_SCHEMAS:
            raise BadInput("table", name, ", ".join(COMPARISON_SCHEMAS))
        try:
            return read_arrow(self.path(name), COMPARISON_SCHEMAS[name], WORDS[name]).to_pylist()
        except FileNotFoundError:
            raise Damaged(self.regression_id, f"table {name}", "it is missing") from None

    def path(self, name: str) -> Path:
        """Where the table of this name is or would be."""
        return self.root / f"{name}.parquet"


def recorded(regression_id: str) -> Regression:
    """A recorded comparison; raises `BadInput` when there is none of that id."""
    found = Regression(regression_id, _folder() / regression_id)
    if not ID.fullmatch(regression_id) or not os.path.lexists(found.root / DOCUMENT):
        raise BadInput("regression_id", regression_id, "the id of a recorded regression")
    return found


def all_recorded() -> list[Regression]:
    """Every recorded comparison, newest first."""
    names = [entry.name for entry in os.scandir(_folder())] if _folder().is_dir() else []
    found = [Regression(name, _folder() / name) for name in sorted(filter(ID.fullmatch, names), reverse=True)]
    return [each for each in found if os.path.lexists(each.root / DOCUMENT)]


def keep(comparison: RecordedComparison, tables: Mapping[str, list[dict[str, Any]]]) -> Regression:
    """Write a comparison under its `regression_id`; it appears whole or not at all."""
    regression_id = comparison.regression_id
    with store.scratch() as folder:
        unseen = Regression(regression_id, folder / regression_id)
        unseen.root.mkdir()
        for name, found in tables.items():
            store.write_parquet(unseen.path(name), COMPARISON_TABLES[name].of(found))
        store.write_json(unseen.root / DOCUMENT, comparison.to_json())
        _folder().mkdir(exist_ok=True)
        unseen.root.rename(_folder() / regression_id)
    return recorded(regression_id)


def documents() -> list[RecordedComparison]:
    """What every recorded comparison found, newest first; one that is damaged is passed over with a warning."""
    found, damaged = read_all()
    for damage in damaged:
        log.warning("passed over: %s", damage)
    return found


def read_all() -> tuple[list[RecordedComparison], list[Damaged]]:
    """What every recorded comparison found, newest first; and of those that cannot be read, why."""
    found, damaged = [], []
    for regression in all_recorded():
        try:
            found.append(regression.document())
        except Damaged as damage:
            damaged.append(damage)
        except FileNotFoundError:
            continue  # removed meanwhile
    found.sort(key=lambda comparison: comparison.recorded_ns, reverse=True)  # an id tells seconds only
    return found, damaged


def set_aside() -> set[str]:
    """The runs that were found to be worse: they are no baseline for later ones."""
    entries = [entry for comparison in documents() for entry in comparison.experiments]
    return {run_id for entry in entries if entry.verdict == Change.WORSE for run_id in entry.candidates}


def _folder() -> Path:
    return store.home() / "regressions"
