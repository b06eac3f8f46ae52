"""A small finished run, made up, for tests of what shows runs: four minutes, three kills, five verdicts."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

from chaos.events import FaultEvent
from chaos.fault_plan import PLAN_FILE, FaultPlan
from experiments import spec
from experiments.fault_kinds import FaultKind
from experiments.hosts import Role
from infra.broker import Broker
from infra.cluster import Handle, Host
from journal.events.injector import Injected, Striking
from journal.events.query import BatchCommitted
from journal.events.services import HostSample
from journal.events.testbed import Copied, EpochReady, PartitionsAbsent, PartitionTentative, Recovering, WorkerLost
from journal.writer import Journal
from results.regression import records
from results.runs import store
from results.summary.findings import REPLAY_MODEL
from results.tables.schema import SCHEMA_VERSION, TABLES
from tests.unit.results.protection.runs import write_fast_and_safe
from workloads.schedule import Schedule
from workloads.sending.load_config import LOAD_FILE, LoadConfig

START_NS = 1_790_000_000_123_456_789  # 2026-09-21 14:13:20 UTC
WINDOW_S = 240
CHECKPOINTS = 230
LIVE, LIVE_DAG_RUN = "wordcount-live", "manual__now"
WIDEST = "ppa-partially-active-20261123-230314-3dc7"
REGRESSION = "regression-20260921-060000-abcd"
LEVELS = (0.81, 0.815, 0.805, 0.812, 0.809, 0.811, 0.808, 0.813, 0.807, 0.71, 0.72, 0.705, 0.715, 0.712, 0.708, 0.718)
DAG_RUN = "manual__2026-09-21T14:13:20+00:00"

SVG = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 320"><rect width="640" height="320" fill="white"/>
<path d="M40 280 L200 {0} L400 {1} L600 {2}" fill="none" stroke="#0b62c4" stroke-width="3"/>
<path d="M40 20 V280 H620" fill="none" stroke="#333"/></svg>"""
PLOTS = {"utilization.svg": (90, 60, 110), "timeline.svg": (200, 120, 40), "hosts.svg": (60, 150, 240)}
FRONT_PAGE = "<!doctype html><title>Data Docs</title><a href='suites/faults.html'>faults</a>"


WITHOUT_LOGIN = "/static/{version}/{name:path}"  # the one route that everybody may use


def addresses(run_id: str, other_id: str) -> dict[str, str]:
    """One address per route of the pages, by the route's path; all but the last exist where both runs do."""
    run = f"/aftershock/runs/{run_id}"
    return {
        "/": "/aftershock/",
        "/runs/{run_id}": run,
        "/runs/{run_id}/charts.json": f"{run}/charts.json",
        "/runs/{run_id}/report.html": f"{run}/report.html",
        "/runs/{run_id}/plots/{name:path}": f"{run}/plots/timeline.svg",
        "/runs/{run_id}/checks/{name:path}": f"{run}/checks/data_docs/index.html",
        "/runs/{run_id}/tables/{name}.csv": f"{run}/tables/faults.csv",
        "/runs/{run_id}/tables/{name}.parquet": f"{run}/tables/faults.parquet",
        "/compare": f"/aftershock/compare?run={run_id}&run={other_id}",
        "/compare.json": f"/aftershock/compare.json?run={run_id}&run={other_id}",
        "/matrix": "/aftershock/matrix",
        "/matrix.json": "/aftershock/matrix.json",
        "/matrix.csv": "/aftershock/matrix.csv",
        "/matrix.svg": "/aftershock/matrix.svg",
        "/history": "/aftershock/history",
        "/history.json": "/aftershock/history.json",
        "/regressions": "/aftershock/regressions",
        "/regressions/{regression_id}": f"/aftershock/regressions/{REGRESSION}",
        "/reproductions": "/aftershock/reproductions",
        "/reproductions/{paper}/{figure}.{kind}": "/aftershock/reproductions/utilization/fig-04.svg",
        "/live": "/aftershock/live",
        "/live/{run_id}": f"/aftershock/live/{LIVE}",
        "/live/{run_id}/state.json": f"/aftershock/live/{LIVE}/state.json",
        "/live/{run_id}/abort": f"/aftershock/live/{LIVE}/abort",
        "/dag-runs/{dag_run}": f"/aftershock/dag-runs/{quote(LIVE_DAG_RUN)}",
        WITHOUT_LOGIN: "/aftershock/static/latest/aftershock.css",
        "/{rest:path}": "/aftershock/nothing/here",
    }


def write_run(run_id: str, started_ns: int = START_NS, dag_run: str | None = DAG_RUN) -> store.Run:
    """Put a complete run into the store below $AFTERSHOCK_HOME."""
    run = _empty_run(run_id)
    for name, rows in _tables(run_id).items():
        write_table(run, name, rows)
    for name, heights in PLOTS.items():
        _write(run.plots / name, SVG.format(*heights))
    _write(run.report, "<!doctype html><title>Report</title><h1>Report of the run</h1><img src='plots/timeline.svg'>")
    _write(run.checks / "data_docs" / "index.html", FRONT_PAGE)
    _write(run.checks / "data_docs" / "suites" / "faults.html", "<!doctype html><title>Suite</title><p>faults</p>")
    origin = {"cores": 2, "others_cores": 0.6} | ({"dag_run": dag_run} if dag_run else {})
    _write_status(run, state="done", started_ns=started_ns, error=None, exit_code=0, **origin)
    return run


MORE_S = (-0.5, 0.1, 0.4)  # by how much runs of one protection differ
UNJUDGED = 2 * len(MORE_S)


def write_everything() -> None:
    """Put runs with a history, a comparison, protections, a reproduction and a live run below $AFTERSHOCK_HOME."""
    for number, level in enumerate(LEVELS):
        write_night(number, level)
    write_regression()
    write_protections()
    write_reproduction()
    write_live_run()


def write_protections() -> None:
    """Two protections of a workload in three runs each: one is faster, the other loses less with each fault."""
    for number, more_s in enumerate(MORE_S):
        started_ns = START_NS - (100 + number) * 86_400 * 10**9
        seen = {"service_rate": 1000.0 + 20 * more_s, "started_ns": started_ns}
        write_fast_and_safe(number, (10.0 + more_s, 9.0), (4.0 + more_s, 4.2), **seen)


def write_night(number: int, utilization: float) -> store.Run:
    """A run of a history: of the same experiment and machine as the others, one day after the one before."""
    run = _empty_run(f"night-{number:02d}")
    tables = _tables(run.run_id)
    tables["runs"][0] |= {"utilization": utilization}
    for name in ("runs", "faults", "recoveries", "verdicts"):
        write_table(run, name, tables[name])
    origin = {"machine": "a machine, 2 cores, 24 GiB", "experiment_digest": "0" * 16, "schema_version": SCHEMA_VERSION}
    started_ns = START_NS - (len(LEVELS) - number) * 86_400 * 10**9
    _write_status(run, state="done", started_ns=started_ns, error=None, exit_code=0, **origin)
    return run


def write_regression() -> None:
    """The nights after the change, judged against those before."""
    names = [f"night-{number:02d}" for number in range(len(LEVELS))]
    where = {"experiment": "wordcount", "experiment_digest": "0" * 16, "machine": "a machine, 2 cores, 24 GiB"}
    own = {"metric": "utilization", "unit": "", "verdict": "worse"}
    row = where | own | {
        "better": "higher", "scale": "ratio", "why": "", "candidates": 5, "baseline": 9, "candidate_median": 0.712,
        "baseline_median": 0.81, "effect": -0.121, "low": -0.13, "high": -0.11, "p_value": 0.001,
    }  # fmt: skip
    change = where | own | {
        "run_id": "night-09", "started_ns": START_NS, "before": 0.81, "after": 0.712, "p_value": 0.0001,
    }  # fmt: skip
    entry = where | {
        "verdict": "worse", "candidates": names[-5:], "baseline": names[:9], "pinned": False,
        "sentences": ["utilization became worse: 0.81 to 0.712 (-12.1 %)"],
    }  # fmt: skip
    document = {"regression_id": REGRESSION, "recorded_ns": START_NS, "verdict": "worse", "experiments": [entry]}
    records.keep(records.RecordedComparison.model_validate(document), {"regression": [row], "change_points": [change]})


def write_reproduction() -> None:
    """A figure of a paper, computed again."""
    folder = store.home() / "reproductions" / "utilization" / "fig-04"
    _write(folder / "utilization-fig-04.svg", SVG.format(90, 60, 110))
    _write(folder / "utilization-fig-04.csv", "interval_s,utilization\n1,0.5\n")
    check = {"check": "agrees", "verdict": "pass", "observed": "0.9", "expected": "0.9", "detail": None}
    what = "utilization over the checkpoint interval"
    about = {"id": "utilization/fig-04", "what": what, "kind": "C", "verdict": "pass", "verdicts": [check]}
    store.write_json(folder / "utilization-fig-04.verdicts.json", about)


def write_live_run(run_id: str = LIVE) -> store.Run:
    """A run in its measurement window, one of its hosts down; no process is behind it."""
    run, now_ns = store.live(run_id), time.time_ns()
    experiment = spec.load()
    status = {"run_id": run_id, "experiment": "wordcount", "state": "running", "dag_run": LIVE_DAG_RUN}
    store.write_json(run.root / "status.json", status | {"started_ns": now_ns - 90 * 10**9})
    store.write_json(run.root / "experiment.json", experiment.model_dump(mode="json"))
    strikes = ((20.0, "worker-2"), (3600.0, "worker-1"))
    events = tuple(FaultEvent(at, "a test", (host,), FaultKind.KILL, 60.0) for at, host in strikes)
    plan = FaultPlan(now_ns - 30 * 10**9, now_ns + 7200 * 10**9, events)
    store.write_json(run.raw / PLAN_FILE, plan.to_json())
    names = {"gateway": Role.GATEWAY, "worker-1": Role.WORKER, "worker-2": Role.WORKER, "worker-3": Role.WORKER}
    hosts = {name: Host(name, "127.0.1.1", role, 1, 640) for name, role in names.items()}
    cluster = store.live_directory(run_id) / "cluster"
    cluster.mkdir()
    Handle(run_id, "local", "s0-0123456789abcdef", str(cluster), hosts).save()
    strike, proof = (0, "worker-2", FaultKind.KILL, now_ns - 10 * 10**9), (now_ns, now_ns, {}, {})
    for event in (Striking(*strike), Injected(*strike, *proof)):
        Journal(run.raw / "injector.jsonl").record(event)
    samples = Journal(run.raw / "hosts.jsonl")
    for name in names:
        for second, cpu_s in ((3599, 0.25), (3600, 0.5)):
            samples.record(HostSample(name, cpu_s, 100 * 2**20, at_ns=now_ns + second * 10**9))
    source = {"startOffset": {"input": {"0": 0}}, "endOffset": {"input": {"0": 1000}}}
    progress = {"id": "a-query", "batchId": 7, "numInputRows": 1000, "processedRowsPerSecond": 512.0}
    rest = {"timestamp": "2026-09-21T14:13:20.000Z", "durationMs": {}, "stateOperators": [], "sources": [source]}
    Journal(run.raw / "query.jsonl").record(BatchCommitted(progress | rest))
    load = LoadConfig(Broker("127.0.1.1:9092"), experiment.workload, Schedule(now_ns - 10 * 10**9, 200.0, 6))
    store.write_json(cluster / "hosts" / "gateway" / "orders" / LOAD_FILE, load.to_json())
    return run


def write_live_testbed_run(run_id: str) -> store.Run:
    """A run of the testbed, some of whose partitions are lost while others go on without them."""
    run = write_live_run(run_id)
    store.write_json(run.root / "experiment.json", spec.load("ppa-top100").model_dump(mode="json"))
    (run.raw / "query.jsonl").unlink()
    journal = Journal(run.raw / "query.jsonl")
    widths = {"requests": 8, "slices": 4, "merged": 2, "top": 1, "out": 1}
    names = [f"{name}.{index}" for name, width in widths.items() for index in range(width)]
    lost = ("requests.0", "requests.4", "slices.0")
    journal.record(Recovering(1, dict.fromkeys(names, 0), {}, tuple(names)))
    journal.record(EpochReady(1, (0, 1, 2, 3)))
    journal.record(Copied(1, {"merged.1": "slot-5"}))
    journal.record(WorkerLost("slot-1", 0, "connection ended", lost))
    journal.record(PartitionsAbsent(lost))
    for name in ("merged.0", "top.0"):
        journal.record(PartitionTentative(name, 1, 7))
    return run


def write_tentative_run(run_id: str) -> store.Run:
    """A complete run whose second recovery came late, so that 20 windows had tentative output, all of it corrected."""
    run = write_run(run_id)
    accuracies = [0.25 + 0.01 * (number % 3) if number > 4 else 0.9 - 0.13 * number for number in range(20)]
    write_table(run, "tentative", [_tentative(100.0 + number, value) for number, value in enumerate(accuracies)])
    worth = {"tentative_accuracy": 0.26, "tentative_fidelity": 0.25}
    write_table(run, "runs", [_run_row(run_id) | worth])
    return run


def write_widest_run() -> store.Run:
    """A complete run that has every table of the schema, with a value in each column, as wide as real ones are."""
    run = write_run(WIDEST)
    what = {"experiment": "ppa-partially-active", "engine": "dataflow", "protocol": "communication-induced"}
    write_table(run, "runs", [_run_row(WIDEST) | what | {"recovery": "partially-active"}])
    _write_status(run, START_NS - 10**13, state="done", error=None, exit_code=0, experiment=what["experiment"])
    for name, schema in TABLES.items():
        if not run.has(name):
            write_table(run, name, [{field.name: _wide(field) for field in schema}] * 2)
    return run


def write_failed_run(run_id: str, error: str, started_ns: int = START_NS) -> store.Run:
    """Put a run into the store that failed before it had any result."""
    run = _empty_run(run_id)
    _write_status(run, state="failed", started_ns=started_ns, error=error, exit_code=3)
    return run


def write_table(run: store.Run, name: str, rows: list[dict[str, Any]]) -> None:
    run.tables.mkdir(exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, schema=TABLES[name]), run.tables / f"{name}.parquet")


def _empty_run(run_id: str) -> store.Run:
    run = store.Run(run_id, store.home() / "runs" / store.check_run_id(run_id))
    run.root.mkdir(parents=True)
    return run


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _write_status(run: store.Run, started_ns: int, **rest: Any) -> None:
    status = {"run_id": run.run_id, "experiment": "wordcount", "started_ns": started_ns}
    store.write_json(run.root / "status.json", status | {"ended_ns": started_ns + 300 * 10**9} | rest)


def _wide(field: pa.Field) -> Any:
    """A value of a column, as wide as one of a real run."""
    if field.name.endswith("_ns"):
        return _at(WINDOW_S)
    wide = {pa.int64(): 1_234_567_890, pa.float64(): -0.00012345, pa.bool_(): False}
    return wide.get(field.type, "requests.10,requests.11: 4 processes killed")


def _at(second: float) -> int:
    return START_NS + round(second * 1e9)


def _tables(run_id: str) -> dict[str, list[dict[str, Any]]]:
    return {
        "runs": [_run_row(run_id)],
        "faults": [_fault(i, at_s) for i, at_s in enumerate((31.0, 98.5, 170.25))],
        "recoveries": [_recovery(i, at_s) for i, at_s in enumerate((31.0, 98.5, 170.25))],
        "checkpoints": [_checkpoint(i) for i in range(CHECKPOINTS)],
        "ledger": _ledger(),
        "latency": [
            {"second": s, "records": 5000, "p50_s": 0.4, "p99_s": 1.25, "p999_s": 2.125} for s in range(WINDOW_S)
        ],
        "throughput": [
            {"second": s, "due_records": 21_000.0, "committed_records": 20_000.0, "lag_records": 1000.0 * (s % 60)}
            for s in range(WINDOW_S)
        ],
        "predictions": [_prediction()],
        "replayed_recoveries": [_replayed(i, at_s) for i, at_s in enumerate((31.0, 98.5, 170.25))],
        "useful_time": [{"second": s, "measured_s": 0.8125 * s, "replayed_s": 0.826 * s} for s in range(WINDOW_S + 1)],
        "verdicts": _verdicts(),
    }


def _run_row(run_id: str) -> dict[str, Any]:
    return {
        "run_id": run_id, "experiment": "wordcount", "workload": "wordcount", "engine": "structured-streaming",
        "recovery": "query", "trigger": "micro-batch", "driver": "local", "seed": 1, "workers": 3, "depth": 1,
        "window_start_ns": _at(0), "window_end_ns": _at(WINDOW_S), "window_s": float(WINDOW_S),
        "checkpoint_interval_s": 8.0, "failure_rate": 0.0125, "service_rate": 20_480.0, "load_rate": 21_000.0,
        "utilization": 0.8125, "utilization_by_records": 0.806, "faults": 3, "records_committed": 3_993_600,
    }  # fmt: skip


def _fault(fault: int, at_s: float) -> dict[str, Any]:
    return {
        "fault": fault, "kind": "kill", "targets": f"worker-{fault + 1}", "cause": "process 0 of host",
        "planned_ns": _at(at_s), "actual_ns": _at(at_s + 0.004), "proved_ns": _at(at_s + 0.02), "healed_ns": None,
        "joined_ns": None, "executors_ns": None, "lateness_s": 0.004,
        "outcome": "injected", "violations": 0, "heal_violations": None,
        "proof": "4 processes killed; 0 survivors, 0 open ports",
    }  # fmt: skip


def _recovery(recovery: int, at_s: float) -> dict[str, Any]:
    return {
        "recovery": recovery, "fault": recovery, "faults": 1, "death_ns": _at(at_s), "notice_ns": _at(at_s + 1.5),
        "ready_ns": _at(at_s + 6), "restored_ns": _at(at_s + 11), "normal_ns": None, "detect_s": 1.5,
        "restart_s": 4.5, "restore_s": 9.5, "catch_up_s": None, "lost_s": 4.0, "executor_s": 3.5,
    }  # fmt: skip


def _tentative(end_s: float, accuracy: float) -> dict[str, Any]:
    """A window of ten seconds that ended after the fault at 98.5 s."""
    return {
        "window_start_ns": _at(end_s - 10), "window_end_ns": _at(end_s), "exact": 100, "emitted": 100,
        "both": round(100 * accuracy), "accuracy": accuracy, "absent": "requests.2,requests.3",
        "throughout": end_s > 108.5, "output_fidelity": 0.25, "internal_completeness": 0.3,
        "first_ns": _at(end_s + 0.4), "corrected_ns": _at(124.0), "leaked": 0,
    }  # fmt: skip


def _checkpoint(batch: int) -> dict[str, Any]:
    return {
        "batch": batch, "started_ns": _at(batch), "completed_ns": _at(batch + 0.9), "duration_s": 0.9,
        "checkpoint_s": 0.2, "processing_s": 0.7, "records": 17_000 + batch, "in_window": True,
        "undisturbed": True,
    }  # fmt: skip


def _ledger() -> list[dict[str, Any]]:
    shares = [("useful", 195.0), ("checkpoint", 15.0), ("lost", 12.0), ("detect", 4.5), ("restart", 13.5)]
    rows, clock_s = [], 0.0
    for name, seconds in shares:
        rows.append({"start_ns": _at(clock_s), "end_ns": _at(clock_s + seconds), "class": name, "seconds": seconds})
        clock_s += seconds
    return rows


def _prediction() -> dict[str, Any]:
    return {
        "quantity": "utilization", "model": REPLAY_MODEL, "measured": 0.8125, "predicted": 0.826, "low": 0.79,
        "high": 0.861, "failure_rate": 0.0125, "checkpoint_cost_s": 0.5, "recovery_time_s": 6.0, "interval_s": 8.0,
        "hop_delay_s": 0.0, "depth": 1,
    }  # fmt: skip


def _replayed(fault: int, at_s: float) -> dict[str, Any]:
    return {
        "fault": fault, "struck_s": at_s, "down_s": 6.0, "replayed_down_s": 5.5, "warm_up_s": 0.0,
        "replayed_warm_up_s": 0.0, "lost_s": 4.0, "replayed_lost_s": 3.75, "difference_s": 0.75,
    }  # fmt: skip


def _verdicts() -> list[dict[str, Any]]:
    columns = TABLES["verdicts"].names
    rows = [
        ("kills on time", "faults", "pass", "0.004 s late at p99", "at most 0.05 s", None),
        ("ledger adds up", "ledger", "pass", "240.000 s", "240.000 s", None),
        ("utilization agrees", "predictions", "pass", "0.813", "0.790 to 0.861", None),
        ("exactly once", "quality", "unknown", "no table", "no lost or duplicated record", None),
        ("estimates agree", "runs", "fail", "0.0065 apart", "at most 0.005", "0.8125 against 0.806"),
    ]
    return [dict(zip(columns, row, strict=True)) for row in rows]
