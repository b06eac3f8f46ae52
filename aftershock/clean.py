"""Removes what dead runs left on this machine, and publishes those of this home as failed.

A run is dead when the processes that worked on it have died (its lease is free), or when its cluster's handle is gone.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from aftershock import lease, orchestrate, steps
from aftershock.lease import Lease
from experiments.errors import BadInput
from infra import leftovers, startup
from infra.leftovers import Traces
from results import store

REASON = "whoever ran it has died; removed by `aftershock clean`"


@dataclass(frozen=True)
class Cleaning:
    """What was removed, what was left alone and why, and the runs that were published as failed."""

    removed: list[Traces]
    kept: list[tuple[Traces, str]]
    published: list[str]

    def to_json(self) -> dict[str, Any]:
        kept = [{**asdict(traces), "reason": reason} for traces, reason in self.kept]
        return {"removed": [asdict(traces) for traces in self.removed], "kept": kept, "published": self.published}


def clean(run_id: str | None = None) -> Cleaning:
    """Remove the traces of every dead run, and of the run named, which nobody must be working on.

    Raises `BadInput` for a named run that is no live one of this home, or that somebody works on.
    """
    named = _check_named(run_id) if run_id else None
    removed, kept = [], []
    with startup.one_at_a_time():
        for traces in leftovers.find():
            reason = why_kept(traces, named)
            if reason:
                kept.append((traces, reason))
            else:
                leftovers.remove(traces.token)
                removed.append(traces)
    published = [run for run in _live_runs() if run == run_id or _is_free(store.live_directory(run))]
    for run in published:
        steps.teardown(run, REASON)
        orchestrate.forget(run)
    return Cleaning(removed, kept, published)


def _check_named(run_id: str) -> Path:
    live_directory = store.live_directory(run_id)
    if not live_directory.is_dir():
        raise BadInput("run_id", run_id, f"a live run: {', '.join(_live_runs()) or 'there is none'}")
    if lease.state_of(live_directory) is Lease.HELD:
        raise BadInput("run_id", run_id, "a run that nobody works on; end this one with Ctrl-C")
    return live_directory


def _live_runs() -> list[str]:
    folder = store.home() / "live"
    return sorted(path.name for path in folder.glob("*") if path.is_dir() and store.RUN_ID.fullmatch(path.name))


def _is_free(live_directory: Path) -> bool:
    return lease.state_of(live_directory) is Lease.FREE


def why_kept(traces: Traces, named: Path | None) -> str:
    """Why these traces must stay; empty when they may go."""
    if traces.needs_root and os.geteuid():
        return "only root can remove namespaces and mounts"
    if traces.hidden:
        return "no Docker daemon can be asked for its containers: start it, or set DOCKER_HOST"
    if not traces.root:
        return "" if traces.needs_root and not traces.processes else "nothing tells whose it is"
    live_directory = Path(traces.root).parent
    if traces.orphaned or live_directory == named or _is_free(live_directory):
        return ""
    if lease.state_of(live_directory) is Lease.HELD:
        return "its run is alive"
    return "its run was begun elsewhere (a scheduler, a test): if that is over, name the run to remove it"
