"""What comparisons found, kept: one immutable directory for each, as a run has one.

regressions/ID/   regression.json   regression.parquet   change_points.parquet
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from experiments.errors import BadInput
from results import store
from results.regression.judging import Change
from results.schema import REGRESSION_TABLES

ID = re.compile(r"regression-\d{8}-\d{6}-[0-9a-f]{4}")


@dataclass(frozen=True)
class Regression:
    """The directory of one recorded comparison."""

    regression_id: str
    root: Path

    def document(self) -> dict[str, Any]:
        """What was compared, and the verdicts.

        regression_id, recorded_ns, verdict (of all together), asked_for (the experiment that was named, or null);
        experiments     a list of {experiment, experiment_digest, machine, verdict, candidates and baseline (run ids),
                        pinned (whether the baseline was), sentences (what became worse or better, and by how much)}
        """
        return store.read_json(self.root / "regression.json")

    def rows(self, name: str) -> list[dict[str, Any]]:
        """The rows of `regression` or `change_points` (`results.schema`); raises `BadInput` for another name."""
        if name not in REGRESSION_TABLES:
            raise BadInput("table", name, ", ".join(REGRESSION_TABLES))
        return pq.read_table(self.path(name)).to_pylist()

    def path(self, name: str) -> Path:
        return self.root / f"{name}.parquet"


def recorded(regression_id: str) -> Regression:
    """A recorded comparison; raises `BadInput` when there is none of that id."""
    found = Regression(regression_id, _folder() / regression_id)
    if not ID.fullmatch(regression_id) or not (found.root / "regression.json").is_file():
        raise BadInput("regression_id", regression_id, "the id of a recorded regression")
    return found


def all_recorded() -> list[Regression]:
    """Every recorded comparison, newest first."""
    names = [document.parent.name for document in _folder().glob("*/regression.json")]
    return [recorded(name) for name in sorted(filter(ID.fullmatch, names), reverse=True)]


def keep(document: dict[str, Any], tables: dict[str, list[dict[str, Any]]]) -> Regression:
    """Write a comparison under the `regression_id` of its document; it appears whole or not at all."""
    regression_id = document["regression_id"]
    with store.scratch() as folder:
        unseen = Regression(regression_id, folder / regression_id)
        unseen.root.mkdir()
        for name, found in tables.items():
            store.write_parquet(unseen.path(name), pa.Table.from_pylist(found, schema=REGRESSION_TABLES[name]))
        store.write_json(unseen.root / "regression.json", document)
        _folder().mkdir(exist_ok=True)
        unseen.root.rename(_folder() / regression_id)
    return recorded(regression_id)


def documents() -> list[dict[str, Any]]:
    """What every recorded comparison found, newest first."""
    found = [regression.document() for regression in all_recorded()]
    return sorted(found, key=lambda document: document["recorded_ns"], reverse=True)  # an id tells seconds only


def set_aside() -> set[str]:
    """The runs that were found to be worse: they are no baseline for later ones."""
    entries = [entry for document in documents() for entry in document["experiments"]]
    return {run_id for entry in entries if entry["verdict"] == Change.WORSE for run_id in entry["candidates"]}


def _folder() -> Path:
    return store.home() / "regressions"
