"""What is said of a figure whose runs were done, and cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from reproductions.reproduce import missing_runs, reproduce
from tests.unit.reproductions.runs import put_run

pytestmark = pytest.mark.usefixtures("home")
FIGURE = "checkmate/fig-09"


def test_runs_in_which_a_fault_was_withheld_are_not_said_to_be_missing(tmp_path: Path):
    asked = missing_runs(FIGURE)
    for experiment in asked[:2]:
        put_run(experiment, {"faults": [{"outcome": "withheld"}]})
    assert len(missing_runs(FIGURE)) == len(asked)
    (detail,) = {row["detail"] for row in reproduce(FIGURE, tmp_path).verdicts}
    assert detail.startswith(f"none of its {len(asked)} runs can be used: in 2 of them, done on this machine, ")
    assert "has been done" not in detail
