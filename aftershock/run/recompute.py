"""Computes the results of a run again, from its raw logs and with the present code."""

from __future__ import annotations

import os
import shutil
import stat
import time
from pathlib import Path
from typing import Any

from aftershock.run import batch_job, derive
from experiments import spec
from experiments.engines import EngineName
from experiments.errors import BadInput, EnvironmentFailure
from results.runs import store
from results.runs.machine import experiment_digest
from results.runs.state import RunState
from results.runs.store import Run
from results.tables.schema import SCHEMA_VERSION

CHAINING_SINCE = 4  # the version of the tables with which the testbed began to chain operators


def recompute(run_id: str) -> Run:
    """Make tables, predictions, verdicts and report again; the new version takes the old one's place when it is whole.

    Raises `BadInput` for a run that did not come to its end, has lost its logs, or whose experiment the code no longer
    knows, and `EnvironmentFailure` when a job fails; the run then stays as it was.
    """
    old = store.finished(run_id)
    if old.status().state != RunState.DONE:
        raise BadInput("run_id", run_id, "a run that is done: this one failed, and its logs are not whole")
    if not (old.experiment_path.is_file() and old.raw.is_dir()):
        raise BadInput("run_id", run_id, "a run with its experiment and raw logs, which this one has lost")
    document = as_it_ran(old)
    experiment = spec.validate(document)
    with store.scratch() as folder:
        new = _with_its_logs(old, folder)
        store.write_json(new.experiment_path, document)
        now = {"schema_version": SCHEMA_VERSION, "experiment_digest": experiment_digest(experiment)}
        computed = now | {"recomputed_ns": time.time_ns()}
        store.write_json(new.root / "status.json", old.status().to_json() | computed)  # the report reads it
        _tabulate(new)
        derive.predict(new, experiment)
        derive.validate(new, experiment)
        derive.report(new, experiment)
        return store.replace(new)


def as_it_ran(old: Run) -> dict[str, Any]:
    """The experiment of a run, with what was no field yet when it ran."""
    document = old.experiment()
    engine = document.get("engine", {})
    if (old.status().schema_version or 0) < CHAINING_SINCE and engine.get("name") == EngineName.DATAFLOW:
        engine["chaining"] = False
    return document


def _tabulate(new: Run) -> None:
    """The tables; the log of a failed job is kept, since the folder that it is in goes; not every failure has one."""
    try:
        derive.tabulate(new, owner=None)
    except EnvironmentFailure as failure:
        log = new.raw / "logs" / batch_job.LOG
        if not log.is_file():
            raise
        kept = store.home() / "logs" / f"{new.run_id}-recompute.log"
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(log, kept)
        raise EnvironmentFailure(failure.cause, f"see {kept}") from None


def _with_its_logs(old: Run, folder: Path) -> Run:
    """A run with the raw logs of the old one, the same files: nothing writes into them, but for the job's own log."""
    new = Run(old.run_id, folder / old.run_id / "result")  # the job names a run by the folder above
    shutil.copytree(old.raw, new.raw, copy_function=os.link, ignore=_no_logs)
    return new


def _no_logs(folder: str, names: list[str]) -> list[str]:
    """What the job must not read: its own log, links, which lead elsewhere, and FIFOs, at which it would wait."""
    kinds = {name: os.lstat(os.path.join(folder, name)).st_mode for name in names}
    return [n for n, mode in kinds.items() if n == batch_job.LOG or not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))]
