"""Executes missing runs from the command line, one after the other: of a measured reproduction, or of examples."""

from __future__ import annotations

import sys
from pathlib import Path

from aftershock.airflow import orchestrate
from experiments import spec
from experiments.errors import BadInput, EnvironmentFailure
from experiments.spec import Experiment
from reproductions import measured
from reproductions.reproduce import folder_of, missing_runs
from results.publication import examples_to_run
from results.runs.machine import experiment_digest
from results.runs.state import RunState
from results.runs.step_times import whole_s


def run_missing(id: str, size: int | None, out: Path | None) -> None:
    """Run what a table or figure lacks, each experiment once; a run that fails is told in one line, others go on.

    After each run it is asked anew what is lacking: a run may tell of another, which is to follow it at once.
    Runs that are finished are not repeated, so that an interrupted call goes on where it stopped. Raises `BadInput` for
    what could not be reproduced, or not written to `out`, before anything is run, and `EnvironmentFailure` at the first
    experiment of which no run comes, since the machine would fail the others too.
    """
    tried: set[tuple[str, int]] = set()  # digests with seeds: experiments of one name may differ
    known = 0  # runs, those that were tried included
    while lacking := [each for each in missing_runs(id, size) if _key(each) not in tried]:
        folder_of(id, out)
        if len(tried) + len(lacking) > known:
            minutes = whole_s(*lacking) / 60
            _say(f"{id}: {len(lacking)} runs are missing, about {minutes:.0f} min one after the other")
        known = len(tried) + len(lacking)
        experiment = lacking[0]
        tried.add(_key(experiment))
        if _ran(f"run {len(tried)} of {known}", id, experiment, (BadInput,)) and measured.missing([experiment]):
            _say(f"{id}: the run of {experiment.name} does not count: what it asks for did not happen in it")


def _key(experiment: Experiment) -> tuple[str, int]:
    return experiment_digest(experiment), experiment.seed


def run_examples() -> None:
    """Run each example of which no run is published or could be, the shortest first.

    A run that fails, or that this machine cannot execute, is reported in one line. An interrupted call resumes where it
    stopped.
    """
    lacking = sorted(map(spec.load, examples_to_run()), key=whole_s)
    minutes = whole_s(*lacking) / 60
    _say(f"examples: {len(lacking)} runs are missing, about {minutes:.0f} min one after the other")
    for number, experiment in enumerate(lacking, 1):
        _ran(f"run {number} of {len(lacking)}", "examples", experiment, (BadInput, EnvironmentFailure))


def _ran(number: str, told: str, experiment: Experiment, passed_over: tuple[type[Exception], ...]) -> bool:
    """Run an experiment, with lines that begin with `told`; returns whether its run is done.

    Errors of the kinds `passed_over` are told, others raised.
    """
    _say(f"{told}: {number}, {experiment.name}")
    try:
        status = orchestrate.run(experiment).status()
    except passed_over as error:
        _say(f"{told}: no run of {experiment.name}: {error}")
        return False
    if status.state != RunState.DONE:
        _say(f"{told}: run {status.run_id} failed: {status.error}")
    return status.state == RunState.DONE


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
