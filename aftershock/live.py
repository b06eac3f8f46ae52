"""What a live run looks like at this moment, from its journals alone: cheap, and the cluster is not asked."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from aftershock.abort import abort, held_by
from aftershock.bench import Bench
from experiments.engines import Engine
from experiments.errors import AftershockError, BadInput
from experiments.fault_kinds import Effect
from results import store

SILENT_S = 10.0  # hosts are sampled once a second: one without a sample for longer does not answer
NOTHING_COMMITTED = {"lag_records": None, "batch": None, "records_per_s": None}


@dataclass(frozen=True)
class LiveHost:
    """A host of a live run; `state` is "up", "down", "silent" (no sample lately), or what a fault holds it in."""

    name: str
    role: str
    domains: tuple[str, ...]
    state: str
    cpu_s: float | None
    rss_bytes: int | None


def state_of(run_id: str) -> dict[str, Any]:
    """A live run as a JSON document; raises `BadInput` if there is none of that id.

    run_id, experiment, started_ns, aborted, phase ("setting up", "measuring", "winding up"), hosts (`LiveHost`);
    elapsed_s, window_s, left_s; faults (planned, injected, healed); next_fault (in_s, kind, targets) or None;
    lag_records, batch, records_per_s (None where nothing was committed yet).
    """
    bench = Bench(run_id)
    if run_id not in store.all_live():
        raise BadInput("run_id", run_id, "a live run")
    now_ns = time.time_ns()
    status, plan, journal = bench.run.status(), bench.plan, bench.journal("injector")
    return {
        **{name: status.get(name) for name in ("run_id", "experiment", "started_ns", "dag_run")},
        "aborted": bench.aborted is not None,
        "hosts": [vars(host) for host in _hosts(bench, journal, now_ns)],
        **_clock(plan, bench.experiment.window_s, now_ns),
        "faults": _faults(plan, journal),
        "next_fault": _next(plan, now_ns),
        **_query(bench, now_ns),
    }


def _clock(plan: dict[str, Any], window_s: float, now_ns: int) -> dict[str, Any]:
    if not plan:
        return {"phase": "setting up", "elapsed_s": 0.0, "window_s": window_s, "left_s": None}
    elapsed_s = min(max((now_ns - plan["window_start_ns"]) / 1e9, 0.0), window_s)
    phase = "measuring" if now_ns < plan["window_end_ns"] else "winding up"
    return {"phase": phase, "elapsed_s": elapsed_s, "window_s": window_s, "left_s": window_s - elapsed_s}


def _hosts(bench: Bench, journal: Sequence[dict[str, Any]], now_ns: int) -> list[LiveHost]:
    if not bench.provisioned:
        return []
    held = {held.host: held.kind.effect for held in held_by(journal) if held.kind.takes_the_host}
    samples = {entry["host"]: entry for entry in bench.journal("hosts") if entry["event"] == "sample"}
    domains = bench.experiment.fault_spec.hosts
    return [
        LiveHost(name, host.role.value, tuple(domains.get(name, ())), _state(held.get(name), samples.get(name), now_ns),
                 *(samples.get(name, {}).get(field) for field in ("cpu_s", "rss_bytes")))
        for name, host in bench.handle.hosts.items()
    ]  # fmt: skip


def _state(effect: Effect | None, sample: dict[str, Any] | None, now_ns: int) -> str:
    if effect is not None:
        return effect.value
    return "silent" if sample and now_ns - sample["at_ns"] > SILENT_S * 1e9 else "up"


def _faults(plan: dict[str, Any], journal: Sequence[dict[str, Any]]) -> dict[str, int]:
    events = [entry["event"] for entry in journal]
    planned = sum(len(event["targets"]) for event in plan.get("events", ()))
    return {"planned": planned, "injected": events.count("injected"), "healed": events.count("healed")}


def _next(plan: dict[str, Any], now_ns: int) -> dict[str, Any] | None:
    for event in sorted(plan.get("events", ()), key=lambda each: each["at"]):
        in_s = (plan["window_start_ns"] - now_ns) / 1e9 + event["at"]
        if in_s > 0:
            return {"in_s": in_s, "kind": event["kind"], "targets": event["targets"]}
    return None


def _query(bench: Bench, now_ns: int) -> dict[str, Any]:
    """What the query committed, and how many records were due until now and are not."""
    if bench.experiment.engine.name is Engine.DATAFLOW:  # its journal tells what was read, not what was committed
        return NOTHING_COMMITTED
    batches = [entry["progress"] for entry in bench.journal("query") if entry["event"] == "progress"]
    path = bench.gateway / "generator.json" if bench.provisioned else None
    if not batches or path is None or not path.exists():
        return NOTHING_COMMITTED
    schedule = store.read_json(path)["schedule"]
    due = max(now_ns - schedule["start_ns"], 0) / 1e9 * schedule["rate"]
    committed = sum(batch["numInputRows"] for batch in batches)
    last = batches[-1]
    return {
        "lag_records": max(round(due - committed), 0),
        "batch": last["batchId"],
        "records_per_s": last["processedRowsPerSecond"],
    }


def end(run_id: str) -> str:
    """Abort a live run, as `aftershock abort` does; returns what happened in one line."""
    try:
        done = abort(run_id)
    except BadInput:
        raise
    except AftershockError as error:
        return f"{run_id} is being aborted, but: {error}"
    left = f", {len(done.left)} left to its teardown" if done.left else ""
    return f"{run_id} was aborted: {len(done.undone)} faults undone in {done.seconds:.1f} s{left}"
