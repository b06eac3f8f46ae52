"""The results of a run computed again, from its raw logs by the code as it is now."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

from aftershock import derive
from experiments import spec
from experiments.errors import BadInput, EnvironmentFailure
from results import store
from results.machine import experiment_digest
from results.schema import SCHEMA_VERSION
from results.store import Run

EXPERIMENT = "experiment.json"


def recompute(run_id: str) -> Run:
    """Make tables, predictions, verdicts and report again; the new version takes the old one's place when it is whole.

    Raises `BadInput` for a run that did not come to its end, has lost its logs, or whose experiment the code no longer
    knows, and `EnvironmentFailure` when a job fails; the run then stays as it was.
    """
    old = store.finished(run_id)
    if old.status()["state"] != "done":
        raise BadInput("run_id", run_id, "a run that is done: this one failed, and its logs are not whole")
    if not ((old.root / EXPERIMENT).is_file() and old.raw.is_dir()):
        raise BadInput("run_id", run_id, "a run with its experiment and raw logs, which this one has lost")
    experiment = spec.validate(store.read_json(old.root / EXPERIMENT))
    with store.scratch() as folder:
        new = _with_its_logs(old, folder)
        _tabulate(new)
        derive.predict(new, experiment)
        derive.validate(new, experiment)
        derive.report(new, experiment)
        now = {"schema_version": SCHEMA_VERSION, "experiment_digest": experiment_digest(experiment)}
        computed = now | {"recomputed_ns": time.time_ns()}
        store.write_json(new.root / "status.json", old.status() | computed)
        return store.replace(new)


def _tabulate(new: Run) -> None:
    """The tables; the log of a failed job is kept, since the folder that it is in goes; not every failure has one."""
    try:
        derive.tabulate(new, owner=None)
    except EnvironmentFailure as failure:
        log = new.raw / "logs" / "build.log"
        if not log.is_file():
            raise
        kept = store.home() / "logs" / f"{new.run_id}-recompute.log"
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(log, kept)
        raise EnvironmentFailure(failure.cause, f"see {kept}") from None


def _with_its_logs(old: Run, folder: Path) -> Run:
    """A run with the raw logs of the old one, the same files: nothing writes into them, but for the job's own log."""
    new = Run(old.run_id, folder / old.run_id / "result")  # the job names a run by the folder above
    shutil.copytree(old.raw, new.raw, copy_function=os.link, ignore=shutil.ignore_patterns("build.log"))
    shutil.copy(old.root / EXPERIMENT, new.root)
    return new
