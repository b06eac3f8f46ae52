"""Removes what dead runs left on this machine and in S3, and publishes those of this home as failed.

A run is dead when the processes that worked on it have died (its lease is free), or when its cluster's handle is gone.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from aftershock.airflow import leftover_files, orchestrate
from aftershock.run import lease, steps
from aftershock.run.lease import Lease
from experiments.documents.parsing import parse
from experiments.engines import EngineSpec
from experiments.errors import AftershockError, BadInput, EnvironmentFailure
from infra import leftovers
from infra.leftovers import Traces
from infra.removal import ROOT_USER
from infra.services import startup
from results.runs import store
from results.runs.state import RunState

REASON = "the process that ran it has died; removed by `aftershock clean`"


@dataclass(frozen=True)
class Emptied:
    """A place in S3 where a run had left objects, and how many."""

    run_id: str
    place: str
    objects: int


@dataclass(frozen=True)
class Cleaning:
    """What was removed, what was left alone and why, and the runs that were published as failed.

    emptied   places in S3 that had objects
    swept     files and folders of this home that dead processes left; if a run was named, only its directory
    refused   an error for each run of which something could not be removed, or of which S3 did not delete the objects
    """

    removed: list[Traces]
    kept: list[tuple[Traces, str]]
    published: list[str]
    emptied: list[Emptied]
    swept: list[str]
    refused: list[EnvironmentFailure]

    def to_json(self) -> dict[str, Any]:
        """As `aftershock clean --json` prints it: errors as text, a reason with each kept trace."""
        kept = [{**asdict(traces), "reason": reason} for traces, reason in self.kept]
        return {
            "removed": [asdict(traces) for traces in self.removed],
            "kept": kept,
            "published": self.published,
            "emptied": [asdict(each) for each in self.emptied],
            "swept": self.swept,
            "refused": [str(error) for error in self.refused],
        }


def clean(run_id: str | None = None) -> Cleaning:
    """Remove the traces of the named run, on which no process may be working, or else of every dead run.

    What they checkpointed to S3 is deleted after that, and of a finished run only if it is named. Raises `BadInput` for
    a named run that is no run of this home, or a finished one that had no store in S3, or one that somebody works on.
    """
    named = _check_named(run_id) if run_id else None
    removed, kept, failed = _remove_traces(named)
    dead = [run for run in _live_runs() if (run == run_id if run_id else _is_free(run))]
    published, directories, unpublished = _tear_down(dead)
    emptied, refused = _empty({*published, *([run_id] if run_id else [])} - unpublished.keys())
    swept = directories + ([] if run_id else leftover_files.sweep())
    return Cleaning(removed, kept, published, emptied, swept, [*failed, *unpublished.values(), *refused])


def _remove_traces(named: Path | None) -> tuple[list[Traces], list[tuple[Traces, str]], list[EnvironmentFailure]]:
    """Remove what dead runs left: what was removed, what was kept and why, and what could not be removed.

    If a run is named, what does not name its root is passed over; by the handle, the teardown finds what names none.
    """
    removed, kept, failed = [], [], []
    with startup.one_at_a_time():
        for traces in leftovers.find():
            if named and not _of(named, traces):
                continue
            if reason := why_kept(traces, named):
                kept.append((traces, reason))
                continue
            try:
                leftovers.remove(traces.label, traces.uid)
                removed.append(traces)
            except EnvironmentFailure as error:
                failed.append(EnvironmentFailure(f"cluster {traces.label}: {error.cause}", error.remedy))
    return removed, kept, failed


def _of(named: Path, traces: Traces) -> list[str]:
    """The roots of the traces that are in that live directory."""
    return [root for root in traces.roots if Path(root).parent == named]


def _tear_down(run_ids: list[str]) -> tuple[list[str], list[str], dict[str, EnvironmentFailure]]:
    """Tear dead runs down; one that cannot be torn down stops no other.

    Returns the ids of those that were published as failed, the directories of those that had not begun, or were
    done, and why the others are not over.
    """
    published, directories, failed = [], [], {}
    for run_id in run_ids:
        try:
            state = steps.teardown(run_id, REASON)
            orchestrate.forget(run_id)
            if state == RunState.FAILED:
                published.append(run_id)
            else:
                directories.append(str(store.live_directory(run_id).relative_to(store.home())))
        except AftershockError as error:
            failed[run_id] = EnvironmentFailure(f"run {run_id}: {error}", f"then `aftershock clean {run_id}`")
        except OSError as error:
            cause = f"run {run_id}: {error.filename or 'the system'}: {error.strerror}"
            failed[run_id] = EnvironmentFailure(cause, f"mend that, then `aftershock clean {run_id}`")
    return published, directories, failed


def _check_named(run_id: str) -> Path:
    live_directory = store.live_directory(run_id)
    if not live_directory.is_dir() and not _engine(run_id).store:
        live = ", ".join(_live_runs()) or "there is none"
        raise BadInput("run_id", run_id, f"a live run: {live}; or a finished one with engine.store, which S3 may hold")
    if lease.state_of(live_directory) is Lease.HELD:
        raise BadInput("run_id", run_id, "a run on which no process works; end this one with Ctrl-C")
    return live_directory


def _engine(run_id: str) -> EngineSpec:
    """The engine of a finished run; that of a run which is not there, or never had an experiment, has no store."""
    path = store.stored(run_id).experiment_path
    document = store.read_json(path) if path.is_file() else {}
    return parse(EngineSpec, document.get("engine", {}) if isinstance(document, dict) else document, "engine")


def _empty(run_ids: set[str]) -> tuple[list[Emptied], list[EnvironmentFailure]]:
    """Delete what these finished runs left in S3, with the credentials of this process's environment."""
    emptied, refused = [], []
    for run_id in sorted(run_ids):
        try:
            engine = _engine(run_id)
            if place := engine.objects_of(run_id):
                from testbed.stores.s3 import S3Store  # here, since it takes a while to import

                if objects := S3Store(place, engine.store_endpoint).clear():
                    emptied.append(Emptied(run_id, place, objects))
        except BadInput as error:
            refused.append(EnvironmentFailure(f"run {run_id}: {error}", "look into its experiment.json"))
        except EnvironmentFailure as error:
            remedy = f"{error.remedy}, then `aftershock clean {run_id}`"
            refused.append(EnvironmentFailure(f"run {run_id}: {error.cause}", remedy))
    return emptied, refused


def _live_runs() -> list[str]:
    folder = store.home() / "live"
    return sorted(path.name for path in folder.glob("*") if _is_run(path))


def _is_run(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink() and store.RUN_ID.fullmatch(path.name) is not None


def _is_free(run_id: str) -> bool:
    return lease.state_of(store.live_directory(run_id)) is Lease.FREE


def why_kept(traces: Traces, named: Path | None) -> str:
    """Why these traces must stay; empty when they may go."""
    if os.geteuid() not in (ROOT_USER, traces.uid):
        return "it is another user's"
    if traces.needs_root and os.geteuid() != ROOT_USER:
        return "only root can remove namespaces and mounts"
    if traces.hidden:
        return "no Docker daemon can be asked for its containers: start it, or set DOCKER_HOST"
    of_named = _of(named, traces) if named else []
    if of_named:
        traces = replace(traces, roots=tuple(of_named))
    if len(traces.roots) > 1:
        return f"its processes name several roots: {', '.join(map(ascii, traces.roots))}"
    if traces.elsewhere and not of_named:
        return "its root is in a file system that is not seen from here, as of a container: clean up there"
    if not traces.root:
        return "" if traces.needs_root and not traces.processes else "nothing tells whose it is"
    try:
        orphaned = traces.orphaned
    except EnvironmentFailure as doubt:
        return f"it may be somebody else's: {doubt.cause}"
    return "" if orphaned or of_named else _why_alive(traces)


def _why_alive(traces: Traces) -> str:
    """Why the traces of a run that has its handle must stay; empty if no process works on the run any more."""
    match lease.state_of(Path(traces.root).parent, traces.uid):
        case Lease.FREE:
            return ""
        case Lease.HELD:
            return "its run is alive"
    return "its run was begun elsewhere (a scheduler, a test): if that is over, name the run to remove it"
