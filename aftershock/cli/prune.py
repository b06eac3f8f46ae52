"""`aftershock results prune`: remove runs by number and age, but never one that others are compared with."""

from __future__ import annotations

import argparse
import math
import time
from contextlib import suppress
from typing import Any

from aftershock.cli.declare import PASSED, command, show
from experiments.errors import LEFT_OUT, BadInput
from results.runs.state import RunState


def add(words: Any) -> None:
    """Declare `aftershock results prune`."""
    text = "remove finished runs by number and age; baselines of regressions stay"
    declared = command(words, "prune", text, prune)
    declared.add_argument("--keep", type=int, metavar="N", help="keep the newest N of each experiment")
    declared.add_argument(
        "--older-than", type=float, metavar="DAYS", help="remove only runs that ended more than DAYS days ago"
    )
    declared.add_argument("--dry-run", action="store_true", help="only say what would be removed")


def prune(arguments: argparse.Namespace) -> int:
    """Remove the runs that both limits let go, except baselines; raises `BadInput` if no limit is given."""
    from results.regression.regress import baseline_run_ids
    from results.runs import store
    from results.runs.retention import removable

    _check(arguments)
    every = [run.known_status() for run in store.all_finished()]
    runs, baselines = [status for status in every if status.state != RunState.UNREADABLE], baseline_run_ids()
    dag_runs = {status.run_id: status.dag_run for status in runs}
    limits = (arguments.keep, arguments.older_than)
    doomed = removable(runs, *limits, protected=baselines, now_ns=time.time_ns())
    without_protection = removable(runs, *limits, protected=(), now_ns=time.time_ns())
    spared = [run_id for run_id in without_protection if run_id not in doomed]
    in_use = {dag_run for run_id, dag_run in dag_runs.items() if run_id not in doomed}
    in_use |= {store.live(run_id).known_status().dag_run for run_id in store.all_live()}
    own = {run_id: None if dag_runs[run_id] in in_use else dag_runs[run_id] for run_id in doomed}
    logs = [path for run_id in doomed for path in _remove(run_id, own[run_id], arguments.dry_run)]
    document = {
        "removed": doomed,
        "logs": logs,
        "baselines_kept": spared,
        "kept": len(every) - len(doomed),
        "dry_run": arguments.dry_run,
    }
    lines = [f"{'would remove' if arguments.dry_run else 'removed'} {run_id}" for run_id in doomed]
    lines += [f"{'would remove' if arguments.dry_run else 'removed'} {path}" for path in logs]
    lines += [f"kept {run_id}: others are compared with it" for run_id in spared]
    show(arguments, document, "\n".join(lines or ["nothing to remove"]))
    return PASSED


def _remove(run_id: str, dag_run: str | None, dry_run: bool) -> list[str]:
    """Remove a run and its logs, unless that is only tried; returns the logs' paths, relative to the home."""
    from aftershock.airflow import leftover_files
    from results.runs import store

    if dry_run:
        return [str(path.relative_to(store.home())) for path in leftover_files.logs_of(run_id, dag_run)]
    with suppress(BadInput):  # another process has removed it since the runs were listed
        store.remove(run_id)
    return leftover_files.remove_logs(run_id, dag_run)


def _check(arguments: argparse.Namespace) -> None:
    if arguments.keep is None and arguments.older_than is None:
        raise BadInput("--keep", LEFT_OUT, "--keep N, --older-than DAYS, or both: a run goes when both agree")
    if arguments.keep is not None and arguments.keep < 0:
        raise BadInput("--keep", arguments.keep, "a whole number, not below 0")
    if arguments.older_than is not None and not 0 <= arguments.older_than < math.inf:
        raise BadInput("--older-than", arguments.older_than, "a number of days, not below 0")
