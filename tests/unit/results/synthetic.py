"""A complete, self-consistent run directory, made up: what checks and reports are developed and tested on.

The timeline is a walk through the window: periods of work and a checkpoint, cut short by kills.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from experiments.spec import Experiment
from models.utilization import utilization
from results.runs.store import Run, write_json
from results.summary.findings import LAW_MODEL, LONG_RUN, LONG_RUN_MODEL, NO_FAULTS_MODEL, REPLAY_MODEL
from results.tables.schema import SCHEMA_VERSION, TABLES, LedgerClass

START_NS = 1_790_000_000_000_000_000
INTERVAL_S, CHECKPOINT_S, DETECT_S, RESTART_S, RATE = 8.0, 0.7, 1.1, 4.2, 3000.0
SLOWER = 0.996  # the replay works so much slower than the run
KILLS_S = (21.3, 50.9, 77.0, 121.45, 152.2, 201.7)
ABSORBED_S = 78.2  # the host of the third kill is still down
Change = Callable[[pd.DataFrame], pd.DataFrame]


def ns(seconds: float) -> int:
    return START_NS + round(seconds * 1e9)


def experiment(**fields: Any) -> Experiment:
    process = {"kind": "kill", "scope": "host", "rate": 0.009, "heal_after": 2}
    return Experiment.model_validate({"faults": {"processes": [process]}, "seed": 7} | fields)


def make_run(
    root: Path,
    *,
    run_id: str = "wordcount-7-20261120",
    name: str = "wordcount",
    kills: tuple[float, ...] = KILLS_S,
    window_s: float = 240.0,
    without: tuple[str, ...] = (),
    changes: dict[str, Change] | None = None,
) -> Run:
    """Write a run whose tables agree with each other; `changes` then spoil tables, those in `without` are left out."""
    run = Run(run_id, root / run_id)
    run.tables.mkdir(parents=True)
    status = {"run_id": run_id, "experiment": name, "state": "done", "started_ns": START_NS - 60 * 10**9}
    status |= {"schema_version": SCHEMA_VERSION, "ended_ns": ns(window_s + 30), "error": None, "exit_code": 0}
    write_json(run.root / "status.json", status)
    changes = {"runs": lambda frame: frame} | (changes or {})
    for table, frame in _tables(kills, window_s).items():
        if table in without:
            continue
        if table in changes:
            own = frame.assign(run_id=run_id, experiment=name) if table == "runs" else frame.copy()
            write_table(run, table, changes[table](own))
        else:
            (run.tables / f"{table}.parquet").write_bytes(_file(table, kills, window_s))
    return run


def write_table(run: Run, name: str, frame: pd.DataFrame) -> None:
    """Write a table under its schema where it fits, else as it is: a spoilt table must reach the checks spoilt."""
    pq.write_table(_fitted(name, frame), run.tables / f"{name}.parquet")


def _fitted(name: str, frame: pd.DataFrame) -> pa.Table:
    loose = pa.schema([pa.field(field.name, field.type) for field in TABLES[name]])
    try:
        return pa.Table.from_pandas(frame, schema=loose if list(frame) == loose.names else None, preserve_index=False)
    except (pa.ArrowException, TypeError):
        return pa.Table.from_pandas(frame, preserve_index=False)


@cache
def _file(table: str, kills: tuple[float, ...], window_s: float) -> bytes:
    """What the file of a table has that nothing spoils and that is the same in all runs: most are."""
    written = pa.BufferOutputStream()
    pq.write_table(_fitted(table, _tables(kills, window_s)[table]), written)
    return written.getvalue().to_pybytes()


def _walk(kills: tuple[float, ...], window_s: float) -> tuple[list[tuple], list[dict], list[dict]]:
    """Return ledger segments (start, end, class, batch, fault), recoveries and checkpoints."""
    segments, recoveries, checkpoints = [], [], []
    now, batch, pending = 0.0, 100, list(kills)
    while now < window_s:
        end = min(now + INTERVAL_S, window_s)
        if pending and pending[0] < end:
            death, fault = pending.pop(0), len(recoveries)
            spread = 1 + 0.25 * np.sin(3.0 * fault)
            notice, ready = death + DETECT_S * spread, death + (DETECT_S + RESTART_S) * spread
            known_as = _number(fault)
            segments += [(now, death, "lost", None, known_as), (death, notice, "detect", None, known_as)]
            segments.append((notice, ready, "restart", None, known_as))
            recoveries.append(_recovery(fault, now, death, notice, ready, spread))
            now = ready
            continue
        if end == window_s:
            segments.append((now, end, "useful", batch, None))
            break
        segments.append((now, end - CHECKPOINT_S, "useful", batch, None))
        segments.append((end - CHECKPOINT_S, end, "checkpoint", batch, None))
        cold = segments[-3][2] == "restart" if len(segments) > 2 else False
        checkpoints.append({"batch": batch, "started": now, "completed": end, "undisturbed": not cold})
        now, batch = end, batch + 1
    return segments, recoveries, checkpoints


def _number(recovery: int) -> int:
    """Of the fault that it is from: the fourth was absorbed."""
    return recovery if recovery < 3 else recovery + 1


def _recovery(fault: int, began: float, death: float, notice: float, ready: float, spread: float) -> dict:
    restored = ready + 2.5 * spread
    normal = restored + 6.0 * spread
    moments = {"death": death, "notice": notice, "ready": ready, "restored": restored, "normal": normal}
    return {"recovery": fault, "fault": _number(fault), "faults": 1, "lost_s": death - began} | {
        f"{name}_ns": ns(at) for name, at in moments.items()
    } | {"detect_s": notice - death, "restart_s": ready - notice, "restore_s": restored - ready,
         "catch_up_s": normal - restored, "executor_s": 0.8 * (ready - notice)}  # fmt: skip


@cache
def _tables(kills: tuple[float, ...], window_s: float) -> dict[str, pd.DataFrame]:
    """The tables of a run whose id and name are left out."""
    segments, recoveries, checkpoints = _walk(kills, window_s)
    ledger = pd.DataFrame(segments, columns=["start", "end", "class", "batch", "fault"])
    ledger = pd.DataFrame({
        "start_ns": ledger["start"].map(ns), "end_ns": ledger["end"].map(ns), "class": ledger["class"],
        "seconds": (ledger["end"].map(ns) - ledger["start"].map(ns)) / 1e9,
        "batch": ledger["batch"].astype("Int64"), "fault": ledger["fault"].astype("Int64"),
    })  # fmt: skip
    useful = ledger["seconds"][ledger["class"] == "useful"].sum() / window_s
    rate = 0.027 if kills else 0.0
    throughput = _throughput(ledger, window_s)
    return {
        "runs": pd.DataFrame([{
            "run_id": "", "experiment": "", "workload": "wordcount", "engine": "structured-streaming",
            "recovery": "query", "trigger": "micro-batch", "driver": "local", "seed": 7, "workers": 3, "depth": 1,
            "window_start_ns": ns(0), "window_end_ns": ns(window_s), "window_s": window_s,
            "checkpoint_interval_s": INTERVAL_S, "failure_rate": rate, "service_rate": RATE, "load_rate": RATE * 1.1,
            "utilization": useful, "utilization_by_records": useful + 0.012, "faults": len(kills),
            "records_committed": int(throughput["committed_records"].sum()),
            "protocol": None, "fell_back": None, "message_overhead": None, "copies_cpu_share": None,
            "checkpoint_cpu_share": None, "tentative_accuracy": None,
            "tentative_fidelity": None, "sustainable_rate": None, "unsustainable_rate": None,
            "search_end": None, "clock_step_s": 0.00002,
        }]),
        "faults": _faults(kills),
        "fault_fit": _fault_fit(kills),
        "recoveries": pd.DataFrame(recoveries, columns=TABLES["recoveries"].names),
        "checkpoints": _checkpoints(checkpoints),
        "ledger": ledger,
        "latency": _latency(throughput),
        "throughput": throughput,
        "hosts": _hosts(kills, window_s),
        "quality": _quality(window_s),
        "predictions": _predictions(float(useful), rate, recoveries, window_s),
        "replayed_recoveries": _replayed_recoveries(recoveries),
        "useful_time": _useful_time(ledger, window_s),
    }  # fmt: skip


def _faults(kills: tuple[float, ...]) -> pd.DataFrame:
    rows = [
        {"kind": "kill", "targets": f"worker-{i % 3 + 1}", "cause": f"exponential clock of worker-{i % 3 + 1}",
         "planned_ns": ns(at), "actual_ns": ns(at + 0.0004 + 0.0002 * i), "proved_ns": ns(at + 0.05),
         "healed_ns": ns(at + 4.1), "joined_ns": ns(at + 6.2), "executors_ns": ns(at + 6.2),
         "lateness_s": 0.0004 + 0.0002 * i, "outcome": "injected",
         "proof": "4 processes killed; 0 survivors, 0 open ports", "violations": 0, "heal_violations": 0}
        for i, at in enumerate(kills)
    ]  # fmt: skip
    if kills:
        absorbed = {"kind": "kill", "targets": "worker-3", "cause": "exponential clock of worker-3"}
        rows.insert(3, absorbed | {"planned_ns": ns(ABSORBED_S), "outcome": "absorbed"})
    frame = pd.DataFrame(rows, columns=TABLES["faults"].names)
    frame["fault"] = range(len(frame))
    whole = ["actual_ns", "proved_ns", "healed_ns", "joined_ns", "executors_ns", "violations", "heal_violations"]
    return frame.astype(dict.fromkeys(whole, "Int64"))


def probes() -> pd.DataFrame:
    """A search that doubled from 2,000 to a rate that failed, and closed in on 5,657."""
    rates = (2000.0, 4000.0, 8000.0, 8000.0, 5657.0, 6727.0, 6169.0, 5907.0)
    verdicts = ("sustained", "sustained", "void", "not-sustained", "sustained", *("not-sustained",) * 3)
    begun = np.arange(len(rates)) * 30.0 - 300
    growths = np.array([0.02 if verdict == "not-sustained" else 0.0 for verdict in verdicts]) * rates * 2
    return pd.DataFrame({
        "probe": range(len(rates)), "rate": rates, "started_ns": [ns(at) for at in begun],
        "watched_ns": [ns(at + 4) for at in begun], "ended_ns": [ns(at + 14) for at in begun],
        "due_records": [rate * 10 for rate in rates], "delivered_records": [rate * 10 for rate in rates],
        "read_records": [rate * 10 for rate in rates] - growths * 10, "lag_begin": -3.0, "lag_end": growths * 10,
        "lag_median": growths * 5, "growth": growths, "verdict": verdicts, "why": "because",
    })  # fmt: skip


def _fault_fit(kills: tuple[float, ...]) -> pd.DataFrame:
    strikes = len(kills) + 1
    rows = [
        ("count", "process 0", strikes, 6.48, 0.97), ("gaps", "process 0", strikes, 0.21, 0.86),
        ("lateness", "injected", len(kills), 0.0014, None), ("missing", "injected", strikes, 0.0, None),
        ("composition", "injected", strikes, 0.0, None),
    ]  # fmt: skip
    frame = pd.DataFrame(rows if kills else [], columns=TABLES["fault_fit"].names)
    return frame.astype({"samples": "int64", "statistic": "float64", "p_value": "float64"})


def _checkpoints(rows: list[dict]) -> pd.DataFrame:
    wiggle = 1 + 0.1 * np.sin(np.arange(len(rows)))
    return pd.DataFrame({
        "batch": [row["batch"] for row in rows], "started_ns": [ns(row["started"]) for row in rows],
        "completed_ns": [ns(row["completed"]) for row in rows], "duration_s": INTERVAL_S,
        "checkpoint_s": CHECKPOINT_S * wiggle, "processing_s": INTERVAL_S - CHECKPOINT_S * wiggle,
        "wal_s": 0.11 * wiggle, "commit_log_s": 0.09 * wiggle, "state_commit_s": 0.5 * wiggle, "hop_delay_s": 0.0,
        "records": int(RATE * INTERVAL_S), "stages": 2, "state_rows": 41_233, "state_bytes": 12_400_000,
        "in_window": True, "undisturbed": [row["undisturbed"] for row in rows],
    })  # fmt: skip


def _throughput(ledger: pd.DataFrame, window_s: float) -> pd.DataFrame:
    seconds = np.arange(int(window_s))
    due = np.full(len(seconds), RATE * 1.1)
    committed = np.zeros(len(seconds))
    for row in ledger[ledger["class"] == "checkpoint"].itertuples():
        second = min(int((row.end_ns - START_NS) / 1e9), len(seconds) - 1)
        committed[second] += RATE * (INTERVAL_S - CHECKPOINT_S)
    lag = 26_000 + np.cumsum(due - committed)
    return pd.DataFrame({"second": seconds, "due_records": due, "committed_records": committed, "lag_records": lag})


def _latency(throughput: pd.DataFrame) -> pd.DataFrame:
    rows = throughput[throughput["committed_records"] > 0]
    middle = rows["lag_records"] / (RATE * 1.1)
    return pd.DataFrame({
        "second": rows["second"], "records": rows["committed_records"].astype(int),
        "p50_s": middle, "p99_s": middle + 4.0, "p999_s": middle + 4.4,
    })  # fmt: skip


def _hosts(kills: tuple[float, ...], window_s: float) -> pd.DataFrame:
    noise = np.random.default_rng(3)
    rows = []
    for host in ("gateway", "worker-1", "worker-2", "worker-3"):
        for second in range(int(window_s)):
            down = any(host == f"worker-{i % 3 + 1}" and 0 <= second - at < 4 for i, at in enumerate(kills))
            busy = 0.0 if down else float(np.clip(0.55 + 0.15 * noise.standard_normal(), 0.05, 1.0))
            rows.append({"second": second, "host": host, "cpu_s": busy, "rss_bytes": 410_000_000})
    return pd.DataFrame(rows)


def _quality(window_s: float) -> pd.DataFrame:
    ends = np.arange(10, window_s, 5)
    return pd.DataFrame({
        "window_start_ns": [ns(end - 10) for end in ends], "window_end_ns": [ns(end) for end in ends],
        "exact": 2100, "emitted": 2105, "lost": 0, "wrong": 0,
        "duplicated": np.where(np.arange(len(ends)) % 9 == 4, 45, 0),
    })[TABLES["quality"].names]  # fmt: skip


def _predictions(measured: float, rate: float, recoveries: list[dict], window_s: float) -> pd.DataFrame:
    inputs = {"failure_rate": rate, "checkpoint_cost_s": CHECKPOINT_S, "recovery_time_s": DETECT_S + RESTART_S,
              "interval_s": INTERVAL_S, "hop_delay_s": 0.0, "depth": 1}  # fmt: skip
    predicted = float(utilization(*inputs.values()))
    row = {"quantity": "utilization", "measured": measured} | inputs
    interval = {"predicted": predicted, "low": predicted - 0.06, "high": predicted + 0.05}
    took_s = [each["detect_s"] + each["restart_s"] for each in recoveries]
    replayed = measured * SLOWER + sum(each - DETECT_S - RESTART_S for each in took_s) / window_s
    replay = {"predicted": replayed, "low": measured - 0.03, "high": measured + 0.03}
    replay |= {"recovery_time_s": float(np.mean(took_s))} if took_s else {}
    cost = {"quantity": "checkpoint cost", "model": "measured", "measured": CHECKPOINT_S, "low": 0.65, "high": 0.75}
    models = (REPLAY_MODEL, LAW_MODEL) if rate else (NO_FAULTS_MODEL,)
    if not rate:
        row["recovery_time_s"] = None
    long_run = row | {"quantity": LONG_RUN, "model": LONG_RUN_MODEL, "measured": None, "predicted": predicted}
    simulated = [long_run | {"low": predicted - 0.002, "high": predicted + 0.003}] if rate else []
    rows = [
        *(row | (replay if model == REPLAY_MODEL else interval) | {"model": model} for model in models),
        *simulated,
        cost,
    ]
    return pd.DataFrame(rows, columns=TABLES["predictions"].names).astype({"depth": "Int64"})


def _replayed_recoveries(recoveries: list[dict]) -> pd.DataFrame:
    rows = [
        {"fault": each["fault"], "struck_s": (each["death_ns"] - START_NS) / 1e9,
         "down_s": each["detect_s"] + each["restart_s"], "replayed_down_s": DETECT_S + RESTART_S, "warm_up_s": 0.0,
         "replayed_warm_up_s": 0.0, "lost_s": each["lost_s"], "replayed_lost_s": 0.9 * each["lost_s"],
         "difference_s": each["detect_s"] + each["restart_s"] - DETECT_S - RESTART_S + 0.1 * each["lost_s"]}
        for each in recoveries
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=TABLES["replayed_recoveries"].names)


def _useful_time(ledger: pd.DataFrame, window_s: float) -> pd.DataFrame:
    seconds = np.arange(int(window_s) + 1)
    good = ledger[ledger["class"].isin(["useful", "idle"])]
    starts, ends = ((good[name].to_numpy(dtype=float) - START_NS) / 1e9 for name in ("start_ns", "end_ns"))
    measured = (np.clip(seconds[:, None], starts, ends) - starts).sum(axis=1)
    return pd.DataFrame({"second": seconds, "measured_s": measured, "replayed_s": measured * SLOWER})


def share(ledger: pd.DataFrame) -> dict[str, float]:
    """Seconds per class, by hand, for tests to compare with."""
    return {name: float(ledger["seconds"][ledger["class"] == name].sum()) for name in LedgerClass}
