"""Executes missing runs from the command line, one after the other: of a measured reproduction, or of examples."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from aftershock.airflow import orchestrate
from experiments import spec
from experiments.errors import BadInput, EnvironmentFailure
from experiments.spec import Experiment
from reproductions import measured
from reproductions.reproduce import folder_of, missing_runs
from results.publication import examples_to_run
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
        for unusable in measured.missing(run_each(id, lacking, (BadInput,))):
            _say(f"{id}: the run of {unusable.name} does not count: what the experiment asks for did not happen in it")
        tried |= {(each.name, each.seed) for each in lacking}


def run_each(
    told: str, experiments: Sequence[Experiment], passed_over: tuple[type[Exception], ...]
) -> list[Experiment]:
    """Run experiments one after the other, with lines that begin with `told`; those that raise such errors are told.

    Returns those whose run is done.
    """
    done = []
    for number, experiment in enumerate(experiments, 1):
        _say(f"{told}: run {number} of {len(experiments)}, {experiment.name}")
        try:
            status = orchestrate.run(experiment).status()
        except passed_over as error:
            _say(f"{told}: no run of {experiment.name}: {error}")
        else:
            if status.state == RunState.DONE:
                done.append(experiment)
            else:
                _say(f"{told}: run {status.run_id} failed: {status.error}")
    return done


def run_examples() -> None:
    """Run each example of which no run is published or could be, the shortest first.

    A run that fails, or that this machine cannot execute, is reported in one line. An interrupted call resumes where it
    stopped.
    """
    lacking = sorted(map(spec.load, examples_to_run()), key=lambda each: measured.expected_s([each]))
    minutes = measured.expected_s(lacking) / 60
    _say(f"examples: {len(lacking)} runs are missing, about {minutes:.0f} min one after the other")
    run_each("examples", lacking, (BadInput, EnvironmentFailure))


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
