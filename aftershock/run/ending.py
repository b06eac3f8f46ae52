"""Ends a run: destroys its cluster, keeps its logs, and publishes it. Only one process at a time does this."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from aftershock.run import step_notes
from aftershock.run.gathering import gather_logs, remove_strange
from aftershock.run.live_run import ABORTED, LiveRun
from aftershock.run.step_progress import learn_from
from experiments.errors import AftershockError, EnvironmentFailure
from experiments.locks import locked, locked_if_free
from infra import leftovers
from infra.cluster import HANDLE_FILE, Handle
from infra.drivers import driver_for
from infra.external import borrowed
from infra.services import startup
from results.runs import store
from results.runs.state import RunState
from results.runs.store import RunStatus

log = logging.getLogger(__name__)
NOT_KEPT = "left-out.txt"  # in raw/logs: what of the hosts' logs was not kept, and why
REMOVAL = "the removal of the cluster"
ENDS = (RunState.DONE, RunState.FAILED)


def tear_down(run_id: str, error: str | None) -> str | None:
    """Destroy the cluster and publish the run as done, or as failed with its partial logs; a second caller waits.

    Returns the state; None for a run that never began.
    """
    path = lock_path(run_id)
    path.parent.mkdir(parents=True, exist_ok=True)
    with locked(path, f"the teardown of run {run_id}", stays=False):
        _end(LiveRun(run_id), error)
    return store.finished(run_id).status().state if store.is_finished(run_id) else None


@contextmanager
def keeping_teardown_away(run_id: str) -> Iterator[bool]:
    """Within, nobody tears the run down, or yields False: somebody is doing it. A teardown that comes later waits."""
    path = lock_path(run_id)
    with locked_if_free(path, make=True) as is_ours:
        try:
            yield is_ours
        finally:
            if is_ours:
                path.unlink(missing_ok=True)


def lock_path(run_id: str) -> Path:
    """The lock that the process holds that ends the run."""
    return store.live_directory(run_id).with_name(f".{run_id}.teardown")


def failure_path(run_id: str) -> Path:
    """The file in which a step notes why it failed."""
    return store.live(run_id).root / "failure.json"


def _end(live: LiveRun, error: str | None) -> None:
    step_notes.begin(live.run_id, "teardown")
    damage = _destroy(live)
    if live.began:
        _keep_logs(live)
        _remove_scratch(live.run.root)
        if live.run.known_status().state not in ENDS:  # else an earlier teardown was cut off before it could publish
            _note_the_end(live, damage or error)
        store.publish(live.run)
    live_directory = store.live_directory(live.run_id)
    store.discard(live_directory)
    if live_directory.exists():
        remedy = f"look at what is in there, then `aftershock clean {live.run_id}`"
        raise EnvironmentFailure(f"{live_directory} cannot be removed", remedy)


def _destroy(live: LiveRun) -> str | None:
    """Destroy the cluster, if there is one; returns what is wrong with its handle.

    If the handle is damaged, only its place is known: everything that names this place is removed.
    """
    if not live.provisioned:
        return None
    try:
        handle = live.handle
    except EnvironmentFailure as damage:
        uid = live.root.lstat().st_uid
        with step_notes.waiting(live.run_id) as tell:
            tell(startup.ITS_TURN)
            with startup.one_at_a_time():
                tell(REMOVAL)
                for traces in leftovers.at(live.root, uid):
                    leftovers.remove(traces.label, uid)
        _keep_notes_of_a_borrowed_cluster(live)
        return damage.cause
    with step_notes.waiting(live.run_id, _removal_of(handle)):
        driver_for(handle).destroy(handle)
    return None


def _removal_of(handle: Handle) -> str:
    """What a teardown does with a cluster, for the live page."""
    if handle.is_borrowed:
        return "the heals of struck hosts, and the removal of topics and checkpoints"
    return REMOVAL


def _keep_notes_of_a_borrowed_cluster(live: LiveRun) -> None:
    """Raise `EnvironmentFailure` if the run's notes are all that tells of struck hosts, topics and checkpoints."""
    folder = live.root / borrowed.FOLDER
    if folder.is_dir():
        copy = live.run.raw / HANDLE_FILE
        remedy = (
            f"copy {copy} to {live.root / HANDLE_FILE}, then `aftershock clean {live.run_id}`; without a copy, undo by"
            f" hand what {folder} tells, and remove that folder first"
        )
        raise EnvironmentFailure(f"the handle of run {live.run_id}, which borrows a cluster, is damaged", remedy)


def _keep_logs(live: LiveRun) -> None:
    """Keep what the services on the hosts printed and wrote, as far as it is regular files."""
    if not live.root.is_dir():
        return
    folder = live.run.raw / "logs"
    if problems := [*remove_strange(live.run.raw), *gather_logs(live.root, folder)]:
        for problem in problems:
            log.warning("not kept: %s", problem)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / NOT_KEPT).write_text("".join(f"{problem}\n" for problem in problems), encoding="utf-8")


def _remove_scratch(folder: Path) -> None:
    """Remove what writers left that were killed while they wrote."""
    for path in folder.rglob(".*"):
        if store.SCRATCH.fullmatch(path.name) and not path.is_dir():
            path.unlink()


def _note_the_end(live: LiveRun, error: str | None) -> None:
    status = _final_status(live, error)
    store.write_json(live.run.root / "status.json", status.to_json())
    if status.state == RunState.DONE:
        learn_from(live)


def _final_status(live: LiveRun, error: str | None) -> RunStatus:
    known = live.run.known_status()
    if known.state == RunState.UNREADABLE:
        error = error or known.error
    failure = _failure(live.run_id)
    error = ABORTED if live.aborted else failure.get("error", error)
    outcome = {"state": RunState.FAILED if error else RunState.DONE, "ended_ns": time.time_ns(), "error": error}
    exit_code = failure.get("exit_code", AftershockError.exit_code) if error else 0
    return known.model_copy(update={**outcome, "exit_code": exit_code})


def _failure(run_id: str) -> dict[str, Any]:
    """What a step noted of its failure; a damaged note is one."""
    path = failure_path(run_id)
    if not path.exists():
        return {}
    try:
        noted = store.read_json(path)
    except EnvironmentFailure as damage:
        return {"error": damage.cause}
    return noted if isinstance(noted, dict) else {"error": f"{path} is damaged"}
