"""The present state of a live run, read from its journals alone, without asking the cluster; and its end by hand."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from aftershock.airflow import orchestrate
from aftershock.run import lease
from aftershock.run.abort import Abortion, abort
from aftershock.run.engines.engine import Pace
from aftershock.run.fault_state import FaultState
from aftershock.run.live_run import UNREADABLE, LiveRun
from aftershock.run.run_journals import JournalStates, Sample, journals
from aftershock.run.step_progress import RunProgress, run_progress
from chaos.fault_plan import FaultPlan
from experiments.errors import AftershockError, BadInput, EnvironmentFailure
from experiments.fault_kinds import Effect
from results.runs import store
from workloads.sending.load_config import LOAD_FILE, LoadConfig


class HostCondition(StrEnum):
    """What the samples of a host say of it, while no fault holds it."""

    UP = "up"  # it was sampled of late
    UNKNOWN = "unknown"  # it never was
    SILENT = "silent"  # it was not of late


class WindowPhase(StrEnum):
    """Where a run is, by its measurement window."""

    SETTING_UP = "setting up"
    MEASURING = "measuring"
    WINDING_UP = "winding up"


SILENT_S = 10.0  # hosts are sampled once a second: one without a sample for longer does not answer


@dataclass(frozen=True)
class LiveHost:
    """A host of a live run, with what its processes use.

    state      what a fault holds it in, or else what its samples say
    cpu_cores  cores kept busy between the last two samples
    """

    name: str
    role: str
    domains: tuple[str, ...]
    state: HostCondition | Effect
    cpu_cores: float | None
    rss_bytes: int | None


def state_of(run_id: str) -> dict[str, Any]:
    """A live run as a JSON document; raises `BadInput` if there is none of that id, also if it ends meanwhile, and
    `EnvironmentFailure` for one that is damaged.

    run_id, experiment, started_ns, aborted, phase ("setting up", "measuring", "winding up"), hosts (`LiveHost`);
    abandoned (whether the processes that worked on it have died: then nothing goes on any more);
    elapsed_s, window_s, left_s (None before the window is known, and of one that was cut short); progress
    (`RunProgress` with its properties: every step, the current one by its name and number, what is awaited, whether
    that is late, what is left in seconds and in words);
    faults (strikes planned, injected, healed: a fault strikes each of its hosts; None planned before there is a plan);
    next_fault (in_s, kind, targets), or None, also once the run is being ended;
    lag_records, committed_records, records_per_s (None where nothing was committed yet), doing (of `Pace`);
    partitions (the state of each by its name, in the order of the dataflow; only the testbed tells),
    copied (the worker that has a copy, by the name of the partition).
    """
    if run_id not in store.all_live():
        raise BadInput("run_id", run_id, "a live run")
    try:
        return _state(LiveRun(run_id))
    except UNREADABLE as error:
        if run_id not in store.all_live():
            raise BadInput("run_id", run_id, "a live run") from None
        cause = f"run {run_id} is being ended, or damaged ({type(error).__name__}: {error})"
        raise EnvironmentFailure(cause, f"look again; if it stays so, `aftershock abort {run_id}`") from None


def _state(live: LiveRun) -> dict[str, Any]:
    status, plan = live.run.status(), live.plan
    with journals(live.run_id) as seen:
        now_ns = time.time_ns()
        progress = run_progress(live, now_ns)
        until_ns = now_ns if progress.ends_ns is None else progress.ends_ns
        return {
            **{name: getattr(status, name) for name in ("run_id", "experiment", "started_ns", "dag_run")},
            "aborted": live.aborted is not None,
            "abandoned": lease.state_of(store.live_directory(live.run_id)) is lease.Lease.FREE,
            "hosts": [vars(host) for host in _hosts(live, seen, now_ns)],
            **_clock(plan, live.experiment.window_s, until_ns, is_ending=progress.ends_ns is not None),
            "progress": _progress(progress),
            "faults": _faults(plan, seen.faults),
            "next_fault": _next(plan, now_ns) if progress.ends_ns is None else None,
            **_query(live, seen.query.pace, min(until_ns, plan.window_end_ns) if plan else until_ns),
            "partitions": seen.query.partitions.states(),
            "copied": seen.query.partitions.copied,
        }


def all_states() -> list[dict[str, Any]]:
    """Every live run as `state_of` describes it, or with its `run_id` and `problem`, why it cannot be looked at."""
    states = (_state_or_problem(run_id) for run_id in store.all_live())
    return [state for state in states if state is not None]


def _state_or_problem(run_id: str) -> dict[str, Any] | None:
    """None for a run that has ended meanwhile."""
    try:
        return state_of(run_id)
    except AftershockError as error:
        return {"run_id": run_id, "problem": str(error)} if run_id in store.all_live() else None


def _clock(plan: FaultPlan | None, window_s: float, until_ns: int, *, is_ending: bool) -> dict[str, Any]:
    """Phase and window, as they are at `until_ns`, or were when the end of the run began."""
    if plan is None:
        phase = WindowPhase.WINDING_UP if is_ending else WindowPhase.SETTING_UP
        return {"phase": phase, "elapsed_s": 0.0, "window_s": window_s, "left_s": None}
    elapsed_s = min(max((until_ns - plan.window_start_ns) / 1e9, 0.0), window_s)
    is_over = until_ns >= plan.window_end_ns
    phase = WindowPhase.WINDING_UP if is_over or is_ending else WindowPhase.MEASURING
    left_s = None if is_ending and not is_over else window_s - elapsed_s
    return {"phase": phase, "elapsed_s": elapsed_s, "window_s": window_s, "left_s": left_s}


def _progress(found: RunProgress) -> dict[str, Any]:
    """With what follows from its fields: the pages say it in the same words as the terminal."""
    told = {"number": found.number, "is_late": found.is_late, "left": found.left}
    return {**asdict(found), "current": found.current.name, **told}


def _hosts(live: LiveRun, seen: JournalStates, now_ns: int) -> list[LiveHost]:
    if not live.provisioned:
        return []
    held = {held.host: held.kind.effect for held in seen.faults.held if held.kind.takes_the_host}
    domains = live.experiment.fault_spec.hosts
    return [
        _host(name, host.role.value, tuple(domains.get(name, ())), held.get(name), seen.hosts.last.get(name), now_ns)
        for name, host in live.handle.hosts.items()
    ]


def _host(
    name: str, role: str, domains: tuple[str, ...], effect: Effect | None, sample: Sample | None, now_ns: int
) -> LiveHost:
    """What the last sample says of resources holds only as long as the host is up."""
    if effect is not None or sample is None:
        return LiveHost(name, role, domains, HostCondition.UNKNOWN if effect is None else effect, None, None)
    if now_ns - sample.seen.at_ns > SILENT_S * 1e9:
        return LiveHost(name, role, domains, HostCondition.SILENT, None, None)
    return LiveHost(name, role, domains, HostCondition.UP, sample.cores, sample.seen.rss_bytes)


def _faults(plan: FaultPlan | None, so_far: FaultState) -> dict[str, int | None]:
    return {"planned": plan.strikes if plan else None, "injected": so_far.injected, "healed": so_far.healed}


def _next(plan: FaultPlan | None, now_ns: int) -> dict[str, Any] | None:
    if plan is None:
        return None
    for event in sorted(plan.events, key=lambda each: each.at):
        in_s = (plan.window_start_ns - now_ns) / 1e9 + event.at
        if in_s > 0:
            return {"in_s": in_s, "kind": event.kind.value, "targets": list(event.targets)}
    return None


def _query(live: LiveRun, pace: Pace, until_ns: int) -> dict[str, Any]:
    """What the query has committed, and how many records were due by then, or in the window, and are not."""
    path = live.orders / LOAD_FILE if live.provisioned else None
    lag_records = None
    if path is not None and path.exists() and pace.committed_records is not None:
        schedule = LoadConfig.from_json(store.read_json(path)).schedule
        lag_records = max(schedule.due_count(until_ns) - pace.committed_records, 0)
    told = {name: getattr(pace, name) for name in ("committed_records", "records_per_s", "doing")}
    return {"lag_records": lag_records, **told}


def abort_with_leftovers(run_id: str) -> Abortion:
    """Abort a live run, and remove what its command left if that has died; raises what `abort` does."""
    aborted = abort(run_id)
    live_directory = store.live_directory(run_id)
    if not live_directory.exists() and lease.state_of(live_directory) is lease.Lease.FREE:
        orchestrate.forget(run_id)
    return aborted


def end(run_id: str) -> str:
    """Abort a live run, as `aftershock abort` does; returns what happened in one line, be it an error.

    Raises `BadInput` if there is no live run of that id.
    """
    try:
        return f"{run_id} {abort_with_leftovers(run_id).outcome}"
    except BadInput:
        raise
    except AftershockError as error:
        return f"{run_id} is being aborted, but: {error}"
    except UNREADABLE as error:
        return f"{run_id} cannot be aborted: it is being ended, or damaged ({type(error).__name__}: {error})"
