"""The runs that a measured reproduction lacks, run from the command line one after the other."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from aftershock.airflow import orchestrate
from experiments.errors import BadInput
from experiments.spec import Experiment
from reproductions import measured
from reproductions.reproduce import folder_of, missing_runs
from results.runs.state import RunState


def run_missing(id: str, size: int | None, out: Path | None) -> None:
    """Run what a table or figure lacks, each experiment once; a run that fails is told in one line, others go on.

    Runs that are finished are not repeated, so that an interrupted call goes on where it stopped. Raises `BadInput` for
    what could not be reproduced, or not written to `out`, before anything is run, and `EnvironmentFailure` at the first
    experiment of which no run comes, since the machine would fail the others too.
    """
    tried: set[tuple[str, int]] = set()
    while lacking := [each for each in missing_runs(id, size) if (each.name, each.seed) not in tried]:
        folder_of(id, out)
        minutes = measured.expected_s(lacking) / 60
        _say(f"{id}: {len(lacking)} runs are missing, about {minutes:.0f} min one after the other")
        _run_all(id, lacking)
        tried |= {(each.name, each.seed) for each in lacking}


def _run_all(id: str, experiments: Sequence[Experiment]) -> None:
    for number, experiment in enumerate(experiments, 1):
        _say(f"{id}: run {number} of {len(experiments)}, {experiment.name}")
        try:
            status = orchestrate.run(experiment).status()
        except BadInput as error:
            _say(f"{id}: no run of {experiment.name}: {error}")
        else:
            if status.state != RunState.DONE:
                _say(f"{id}: run {status.run_id} failed: {status.error}")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
