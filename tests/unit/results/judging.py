"""Judges a run by one check, and the damage that is planted in its tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from experiments.spec import Experiment
from results.checks.catalogue import CHECKS
from results.checks.evidence import Evidence
from results.checks.rules import Seen, TableCheck
from results.runs.store import Run, write_json
from results.views.causes import Cause, parts_from_prediction
from tests.unit.results import synthetic


def judged(check: TableCheck[Seen], evidence: Seen, folder: Path) -> dict[str, Any]:
    """Judge by one check; only a test that judges waits for Great Expectations, which takes seconds to load."""
    from results.checks.judge import judge, open_context

    return judge(open_context(folder / "data_docs"), check, evidence)[0]


def verdict_of(name: str, run: Run, tmp_path: Path, experiment: Experiment | None = None) -> dict[str, Any]:
    """Judge a run by one check."""
    check = next(check for check in CHECKS if check.name == name)
    return judged(check, Evidence(run, experiment or synthetic.experiment()), tmp_path)


def parts_at(name: str, run: Run, experiment: Experiment) -> Cause | None:
    """Where a run of this experiment parts from the model of a check."""
    write_json(run.experiment_path, experiment.model_dump(mode="json"))
    return parts_from_prediction(run, name)


def put(column: str, row: int, value: object) -> synthetic.Change:
    def change(frame: pd.DataFrame) -> pd.DataFrame:
        frame = frame.reset_index(drop=True)
        frame.loc[row, column] = value
        return frame

    return change


def null(column: str, row: int) -> synthetic.Change:
    def change(frame: pd.DataFrame) -> pd.DataFrame:
        spoilt = frame[column].astype("object")
        spoilt.iloc[row] = None
        return frame.assign(**{column: spoilt})

    return change


def move(column: str, row: int, by: float) -> synthetic.Change:
    return lambda frame: frame.assign(**{column: frame[column].where(frame.index != row, frame[column] + by)})


def every(column: str, value: object) -> synthetic.Change:
    return lambda frame: frame.assign(**{column: value})
