"""The result tables: one pyarrow schema each, shared by the job that writes them and the checks that read them.

Times end in `_ns` (UTC nanoseconds since the epoch) or `_s` (seconds); rates are per second.
A null is "not measured", never zero.
"""

from enum import StrEnum

import pyarrow as pa

from results.verdict import Verdict

# Counts up whenever the same logs would make other tables: columns, or what a value means.
SCHEMA_VERSION = 6
VERSION_KEY = b"aftershock.schema_version"  # in the metadata of each Parquet file


def _table(*columns: tuple[str, pa.DataType, bool]) -> pa.Schema:
    return pa.schema([pa.field(name, kind, nullable) for name, kind, nullable in columns])


def _must(kind: pa.DataType, *names: str) -> list[tuple[str, pa.DataType, bool]]:
    return [(name, kind, False) for name in names]


def _may(kind: pa.DataType, *names: str) -> list[tuple[str, pa.DataType, bool]]:
    return [(name, kind, True) for name in names]


TEXT, WHOLE, REAL, FLAG = pa.string(), pa.int64(), pa.float64(), pa.bool_()


class FaultOutcome(StrEnum):
    """What became of a planned fault; of one on several hosts, the first of these that holds for any."""

    INJECTED = "injected"
    WITHHELD = "withheld"  # it would have taken more hosts down than `max_down`
    ABSORBED = "absorbed"  # its hosts were in no state to be struck
    MISSING = "missing"  # the injector's journal knows nothing of it


LEDGER_CLASSES = ("useful", "checkpoint", "lost", "detect", "restart", "warm-up", "idle")

TABLES: dict[str, pa.Schema] = {
    "runs": _table(
        *_must(TEXT, "run_id", "experiment", "workload", "engine", "recovery", "trigger", "driver"),
        *_must(WHOLE, "seed", "workers"),
        *_may(WHOLE, "depth"),
        *_must(WHOLE, "window_start_ns", "window_end_ns"),
        *_must(REAL, "window_s", "checkpoint_interval_s", "failure_rate"),
        *_may(REAL, "service_rate", "load_rate", "utilization", "utilization_by_records"),
        *_must(WHOLE, "faults", "records_committed"),
        *_may(TEXT, "protocol"),
        *_may(REAL, "message_overhead", "sustainable_rate", "unsustainable_rate"),
        *_may(TEXT, "search_end"),
        *_may(REAL, "clock_step_s"),  # how far the gateway's wall clock moved against its monotonic one in the window
    ),
    "probes": _table(
        *_must(WHOLE, "probe"),
        *_must(REAL, "rate"),
        *_must(WHOLE, "started_ns", "watched_ns", "ended_ns"),
        *_must(REAL, "due_records", "delivered_records", "read_records", "lag_begin", "lag_end", "lag_median"),
        *_may(REAL, "growth"),
        *_must(TEXT, "verdict", "why"),
    ),
    "faults": _table(
        *_must(WHOLE, "fault"),
        *_must(TEXT, "kind", "targets", "cause"),
        *_must(WHOLE, "planned_ns"),
        *_may(WHOLE, "actual_ns", "proved_ns", "healed_ns", "joined_ns"),
        *_may(REAL, "lateness_s"),
        *_must(TEXT, "outcome"),
        *_may(TEXT, "proof"),
        *_may(WHOLE, "violations", "heal_violations"),
    ),
    "fault_fit": _table(
        *_must(TEXT, "test", "subject"),
        *_must(WHOLE, "samples"),
        *_may(REAL, "statistic", "p_value"),
    ),
    "recoveries": _table(
        *_must(WHOLE, "recovery"),
        *_may(WHOLE, "fault"),
        *_must(WHOLE, "faults", "death_ns"),
        *_may(WHOLE, "notice_ns", "ready_ns", "restored_ns", "normal_ns"),
        # of restart_s, `executor_s` is Spark's own: until it had an executor again; only the testbed tells it
        *_may(REAL, "detect_s", "restart_s", "restore_s", "catch_up_s", "lost_s", "executor_s"),
    ),
    "checkpoints": _table(
        *_must(WHOLE, "batch", "started_ns", "completed_ns"),
        *_must(REAL, "duration_s", "checkpoint_s", "processing_s"),
        *_may(REAL, "wal_s", "commit_log_s", "state_commit_s", "hop_delay_s"),
        *_must(WHOLE, "records"),
        *_may(WHOLE, "stages", "state_rows", "state_bytes"),
        *_must(FLAG, "in_window", "undisturbed"),
    ),
    "partition_checkpoints": _table(
        *_must(TEXT, "partition"),
        *_must(WHOLE, "number", "completed_ns"),
        *_must(REAL, "seconds"),
        *_may(WHOLE, "size_bytes"),
        *_must(FLAG, "forced", "invalid", "in_window"),
    ),
    "ledger": _table(
        *_must(WHOLE, "start_ns", "end_ns"),
        *_must(TEXT, "class"),
        *_must(REAL, "seconds"),
        *_may(WHOLE, "batch", "fault"),
    ),
    "latency": _table(*_must(WHOLE, "second", "records"), *_must(REAL, "p50_s", "p99_s", "p999_s")),
    "throughput": _table(*_must(WHOLE, "second"), *_must(REAL, "due_records", "committed_records", "lag_records")),
    "hosts": _table(*_must(WHOLE, "second"), *_must(TEXT, "host"), *_must(REAL, "cpu_s"), *_must(WHOLE, "rss_bytes")),
    "quality": _table(
        *_must(WHOLE, "window_start_ns", "window_end_ns", "exact", "emitted", "lost", "duplicated", "wrong")
    ),
    "predictions": _table(
        *_must(TEXT, "quantity", "model"),
        *_may(REAL, "measured", "predicted", "low", "high"),
        *_may(REAL, "failure_rate", "checkpoint_cost_s", "recovery_time_s", "interval_s", "hop_delay_s"),
        *_may(WHOLE, "depth"),
        *_may(TEXT, "why"),  # nothing is predicted
    ),
    # of each fault that began an outage, measured or replayed: what it took [s]
    "replayed_recoveries": _table(
        *_must(WHOLE, "fault"),
        *_must(REAL, "struck_s", "down_s", "replayed_down_s", "warm_up_s", "replayed_warm_up_s", "lost_s"),
        *_must(REAL, "replayed_lost_s", "difference_s"),
    ),
    # useful time since the window opened [s]
    "useful_time": _table(*_must(WHOLE, "second"), *_must(REAL, "measured_s", "replayed_s")),
    "verdicts": _table(
        *_must(TEXT, "check", "table", "verdict"),
        *_may(TEXT, "observed", "expected", "detail"),
    ),
}

# The columns in which only some words are allowed.
WORDS: dict[str, dict[str, type[StrEnum]]] = {"faults": {"outcome": FaultOutcome}, "verdicts": {"verdict": Verdict}}

_SERIES = _must(TEXT, "experiment", "experiment_digest", "machine", "metric", "unit")

# Of a recorded comparison (`results.regression`).
REGRESSION_TABLES: dict[str, pa.Schema] = {
    # one row for each metric of each experiment; `effect` and its bounds are relative where `scale` is "ratio"
    "regression": _table(
        *_SERIES,
        *_must(TEXT, "better", "scale", "verdict", "why"),
        *_must(WHOLE, "candidates", "baseline"),
        *_may(REAL, "candidate_median", "baseline_median", "effect", "low", "high", "p_value"),
    ),
    # one row for each change in the history of a metric: the first run of the new level, and both levels
    "change_points": _table(
        *_SERIES,
        *_must(TEXT, "run_id", "verdict"),
        *_must(WHOLE, "started_ns"),
        *_must(REAL, "before", "after", "p_value"),
    ),
}
