"""Finished runs with the few tables that a matrix of protections reads, made up so that every mean is round."""

from __future__ import annotations

from typing import Any

import pandas as pd

from experiments import spec
from results.runs import store
from results.tables.columns import TEXT
from results.tables.schema import SCHEMA_VERSION, TABLES
from tests.unit.results.synthetic import START_NS, write_table

FACTS = {field.name: None if field.type == TEXT else 0 for field in TABLES["runs"]}
QUERY, TASK = {"recovery": "query"}, {"recovery": "task"}
KILLS = {"processes": [{"kind": "kill", "rate": 0.01, "heal_after": 2}]}
MACHINE = "a machine, 2 cores"


def write_run(
    run_id: str,
    *,
    engine: dict[str, Any],
    useful_s: float,
    checkpoint_s: float,
    costs_s: tuple[float, ...] = (),
    service_rate: float = 1000.0,
    unbooked_s: float = 0.0,
    idle_s: float = 0.0,
    wrong: int | None = 0,
    p99_s: float | None = None,
    facts: dict[str, Any] | None = None,
    fields: dict[str, Any] | None = None,
    **status: Any,
) -> store.Run:
    """A run whose faults cost what is given, `unbooked_s` besides for no fault; `wrong` is None without an oracle."""
    document = {"engine": engine, "faults": KILLS if costs_s else {}} | (fields or {})
    experiment = spec.validate(spec.Experiment.model_validate(document).model_dump(mode="json"))
    run = store.Run(run_id, store.home() / "runs" / run_id)
    run.tables.mkdir(parents=True)
    store.write_json(run.experiment_path, experiment.model_dump(mode="json"))
    known = {"run_id": run_id, "experiment": experiment.name, "state": "done", "started_ns": START_NS, "exit_code": 0}
    store.write_json(run.root / "status.json", known | {"machine": MACHINE, "schema_version": SCHEMA_VERSION} | status)
    segments = [("useful", useful_s, None), ("checkpoint", checkpoint_s, None), ("idle", idle_s, None)]
    segments += [("restart", cost_s, number) for number, cost_s in enumerate(costs_s)] + [("lost", unbooked_s, None)]
    window_s = sum(seconds for _, seconds, _ in segments)
    write_table(run, "runs", pd.DataFrame([_facts(run_id, experiment, window_s, service_rate) | (facts or {})]))
    write_table(run, "ledger", _ledger(segments))
    write_table(run, "faults", _faults(len(costs_s)))
    if wrong is not None:
        write_table(run, "quality", _quality(wrong))
    if p99_s is not None:
        row = {"second": 0, "records": 10, "p50_s": p99_s, "p99_s": p99_s, "p999_s": p99_s}
        write_table(run, "latency", pd.DataFrame([row]))
    return run


def write_protections(runs: int = 3, **options: Any) -> None:
    """Two protections of a workload in some runs each, `fast-0`, `safe-0` and so on."""
    for number in range(runs):
        write_fast_and_safe(number, (10.0,), (4.0,), **options)


def write_fast_and_safe(
    number: int, fast_costs_s: tuple[float, ...], safe_costs_s: tuple[float, ...], **options: Any
) -> None:
    """A run of each: one is faster, the other loses less with each fault."""
    write_run(f"fast-{number}", engine=QUERY, useful_s=90.0, checkpoint_s=10.0, costs_s=fast_costs_s, **options)
    write_run(f"safe-{number}", engine=TASK, useful_s=80.0, checkpoint_s=20.0, costs_s=safe_costs_s, **options)


def _facts(run_id: str, experiment: spec.Experiment, window_s: float, service_rate: float) -> dict[str, Any]:
    engine = experiment.engine
    named = {"run_id": run_id, "experiment": experiment.name, "engine": engine.name.value, "driver": "local"}
    asked = {"recovery": engine.recovery_run.value, "trigger": engine.trigger.value, "workload": "wordcount"}
    window = {"window_start_ns": START_NS, "window_end_ns": START_NS + round(window_s * 1e9), "window_s": window_s}
    absent = dict.fromkeys(("utilization", "sustainable_rate", "tentative_accuracy"))
    of_the_testbed = {"protocol": engine.protocol_run.value} if not engine.works_in_batches else {}
    return FACTS | absent | named | asked | window | of_the_testbed | {"service_rate": service_rate}


def _ledger(segments: list[tuple[str, float, int | None]]) -> pd.DataFrame:
    rows, at_s = [], 0.0
    for name, seconds, fault in segments:
        moments = [START_NS + round(1e9 * each) for each in (at_s, at_s + seconds)]
        rows.append([*moments, name, seconds, None, fault])
        at_s += seconds
    return pd.DataFrame(rows, columns=TABLES["ledger"].names).astype({"batch": "Int64", "fault": "Int64"})


def _faults(count: int) -> pd.DataFrame:
    """This number of faults that took effect, and one that did not."""
    struck = {"kind": "kill", "targets": "worker-1", "cause": "a clock", "planned_ns": START_NS}
    rows = [struck | {"fault": number, "actual_ns": START_NS, "outcome": "injected"} for number in range(count)]
    rows += [struck | {"fault": count, "actual_ns": None, "outcome": "absorbed"}] if count else []
    frame = pd.DataFrame(rows, columns=TABLES["faults"].names)
    whole = ["actual_ns", "proved_ns", "healed_ns", "joined_ns", "executors_ns", "violations", "heal_violations"]
    return frame.astype(dict.fromkeys(whole, "Int64"))


def _quality(wrong: int) -> pd.DataFrame:
    row = {"window_start_ns": START_NS, "window_end_ns": START_NS, "exact": 100, "emitted": 100}
    return pd.DataFrame([row | {"lost": 0, "duplicated": 0, "wrong": wrong}])[TABLES["quality"].names]
