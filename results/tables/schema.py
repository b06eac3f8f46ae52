"""The result tables: one pyarrow schema each, shared by the job that writes them and the checks that read them.

Times end in `_ns` (UTC nanoseconds since the epoch) or `_s` (seconds); rates are per second.
A null is "not measured", never zero. Each column has its unit and its meaning here; docs/reference/tables.md is made
of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa

from results.verdict import Verdict

# Counts up whenever the same logs would make other tables: columns, or what a value means.
SCHEMA_VERSION = 6
VERSION_KEY = b"aftershock.schema_version"  # in the metadata of each Parquet file

TEXT, WHOLE, REAL, FLAG = pa.string(), pa.int64(), pa.float64(), pa.bool_()


@dataclass(frozen=True)
class Column:
    """One column; `unit` is empty for counts, shares and what is no number."""

    name: str
    kind: pa.DataType
    nullable: bool
    description: str
    unit: str

    @property
    def label(self) -> str:
        """For the head of a table: the name without its unit, which stands beside it."""
        words = self.name.removesuffix("_ns").removesuffix("_s").replace("_", " ")
        return words[0].upper() + words[1:]


@dataclass(frozen=True)
class Table:
    """One table: what a row is, and its columns in order."""

    row: str
    columns: tuple[Column, ...]

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([pa.field(each.name, each.kind, each.nullable) for each in self.columns])


def _must(kind: pa.DataType, name: str, description: str, unit: str = "") -> Column:
    return Column(name, kind, False, description, unit or _unit_of(name))


def _may(kind: pa.DataType, name: str, description: str, unit: str = "") -> Column:
    return Column(name, kind, True, description, unit or _unit_of(name))


def _unit_of(name: str) -> str:
    """What the end of a name says of its unit."""
    ends = {"_ns": "ns UTC", "_s": "s", "_bytes": "bytes"}
    return next((unit for end, unit in ends.items() if name.endswith(end)), "")


class FaultOutcome(StrEnum):
    """What became of a planned fault; of one on several hosts, the first of these that holds for any."""

    INJECTED = "injected"
    WITHHELD = "withheld"  # it would have taken more hosts down than `max_down`
    ABSORBED = "absorbed"  # its hosts were in no state to be struck
    MISSING = "missing"  # the injector's journal knows nothing of it


LEDGER_CLASSES = ("useful", "checkpoint", "lost", "detect", "restart", "warm-up", "idle")

RUN_TABLES: dict[str, Table] = {
    "runs": Table(
        "the run",
        (
            _must(TEXT, "run_id", "name of the run"),
            _must(TEXT, "experiment", "name of the experiment"),
            _must(TEXT, "workload", "workload, with its query if it has several"),
            _must(TEXT, "engine", "`engine.name`"),
            _must(TEXT, "recovery", "`engine.recovery`"),
            _must(TEXT, "trigger", "`engine.trigger`"),
            _must(TEXT, "driver", "`cluster.driver`"),
            _must(WHOLE, "seed", "seed of the experiment"),
            _must(WHOLE, "workers", "number of workers"),
            _may(WHOLE, "depth", "stateful operators in a chain; null for an own job"),
            _must(WHOLE, "window_start_ns", "start of the measurement window"),
            _must(WHOLE, "window_end_ns", "end of the measurement window"),
            _must(REAL, "window_s", "length of the window"),
            _must(REAL, "checkpoint_interval_s", "`engine.checkpoint_interval_s`"),
            _must(REAL, "failure_rate", "fault events that the fault spec expects in the cluster", "1/s"),
            _may(REAL, "service_rate", "median rate of undisturbed batches", "records/s"),
            _may(REAL, "load_rate", "rate of the load generator", "records/s"),
            _may(REAL, "utilization", "(useful + idle) / window, by the ledger"),
            _may(REAL, "utilization_by_records", "the same by committed records; saturating load only"),
            _must(WHOLE, "faults", "number of planned faults"),
            _must(WHOLE, "records_committed", "records committed in the window", "records"),
            _may(TEXT, "protocol", "protocol of the testbed"),
            _may(
                REAL,
                "message_overhead",
                "bytes of messages over their bytes without the protocol's part, before any fault; testbed only",
            ),
            _may(REAL, "sustainable_rate", "highest rate that the search found sustained", "records/s"),
            _may(REAL, "unsustainable_rate", "lowest rate that the search found not sustained", "records/s"),
            _may(TEXT, "search_end", "why the search ended: `closed`, `probes`, `generator` or `commits`"),
            _may(
                REAL, "clock_step_s", "how far the gateway's wall clock moved against its monotonic clock in the window"
            ),
        ),
    ),
    "probes": Table(
        "a probe of the search for the sustainable rate",
        (
            _must(WHOLE, "probe", "number of the probe, from 0"),
            _must(REAL, "rate", "rate that was tried", "records/s"),
            _must(WHOLE, "started_ns", "from when the rate applied"),
            _must(WHOLE, "watched_ns", "from when lag was watched"),
            _must(WHOLE, "ended_ns", "end of the probe"),
            _must(REAL, "due_records", "records that fell due while lag was watched", "records"),
            _must(REAL, "delivered_records", "records that the broker received meanwhile", "records"),
            _must(REAL, "read_records", "records that the query read meanwhile", "records"),
            _must(REAL, "lag_begin", "lag at the first watched sample", "records"),
            _must(REAL, "lag_end", "lag at the last sample", "records"),
            _must(REAL, "lag_median", "median lag", "records"),
            _may(REAL, "growth", "median slope of lag; null with too few samples", "records/s"),
            _must(TEXT, "verdict", "`sustained`, `not-sustained`, `void` or `unseen`"),
            _must(TEXT, "why", "what decided the verdict"),
        ),
    ),
    "faults": Table(
        "a planned fault",
        (
            _must(WHOLE, "fault", "number of the fault in the plan, from 0"),
            _must(TEXT, "kind", "fault kind"),
            _must(TEXT, "targets", "hosts, separated by commas"),
            _must(TEXT, "cause", "the clock that drew it, or the label of a listed fault"),
            _must(WHOLE, "planned_ns", "planned time"),
            _may(WHOLE, "actual_ns", "time of the first strike"),
            _may(WHOLE, "proved_ns", "time at which the last strike was proved"),
            _may(
                WHOLE,
                "healed_ns",
                "time at which the last host was healed, or at which a stronger fault replaced this one",
            ),
            _may(WHOLE, "joined_ns", "time at which the last host was part of the cluster again"),
            _may(REAL, "lateness_s", "actual minus planned time of the strike that was furthest off"),
            _must(TEXT, "outcome", "`injected`, `withheld`, `absorbed` or `missing`"),
            _may(TEXT, "proof", "what the strikes did, and what they left"),
            _may(WHOLE, "violations", "contradictions to the proof of the strikes; must be 0"),
            _may(WHOLE, "heal_violations", "contradictions to the proof of the heals; must be 0"),
        ),
    ),
    "fault_fit": Table(
        "a comparison of the plan with its laws, or of the strikes with the plan",
        (
            _must(TEXT, "test", "`gaps`, `count`, `dispersion`, `lateness`, `missing` or `composition`"),
            _must(TEXT, "subject", "the fault process or the plan that is compared"),
            _must(WHOLE, "samples", "number of ticks, clocks or strikes"),
            _may(
                REAL,
                "statistic",
                "what the test compares: a distance, a count, a dispersion, a lateness in s",
            ),
            _may(REAL, "p_value", "probability of a statistic as bad by chance; null if chance has no law"),
        ),
    ),
    "recoveries": Table(
        "a recovery: an outage, with those that began before it ended",
        (
            _must(WHOLE, "recovery", "number of the recovery, from 0"),
            _may(WHOLE, "fault", "the fault that began it; null if none is known"),
            _must(WHOLE, "faults", "faults that struck during it"),
            _must(WHOLE, "death_ns", "the first fault"),
            _may(WHOLE, "notice_ns", "the driver noticed"),
            _may(WHOLE, "ready_ns", "the query works at its usual pace again"),
            _may(WHOLE, "restored_ns", "the progress before the fault is reached"),
            _may(WHOLE, "normal_ns", "lag is back in its normal band"),
            _may(REAL, "detect_s", "from the fault to the notice"),
            _may(REAL, "restart_s", "from the notice to ready, warm-up included"),
            _may(REAL, "restore_s", "from ready to restored"),
            _may(REAL, "catch_up_s", "from restored to normal lag"),
            _may(REAL, "lost_s", "work that the faults undid"),
            _may(REAL, "executor_s", "part of the restart that Spark needed to start executors; testbed only"),
        ),
    ),
    "checkpoints": Table(
        "a committed micro-batch; on the testbed what lies between two committed lines",
        (
            _must(WHOLE, "batch", "number of the batch"),
            _must(WHOLE, "started_ns", "start of the batch"),
            _must(WHOLE, "completed_ns", "commit of the batch"),
            _must(REAL, "duration_s", "from start to commit"),
            _must(REAL, "checkpoint_s", "part of it that the checkpoint took"),
            _must(REAL, "processing_s", "the rest of it"),
            _may(REAL, "wal_s", "writing the offset log"),
            _may(REAL, "commit_log_s", "writing the commit log"),
            _may(REAL, "state_commit_s", "committing state"),
            _may(REAL, "hop_delay_s", "mean delay from the end of a stage to the start of the next"),
            _must(WHOLE, "records", "input records of the batch", "records"),
            _may(WHOLE, "stages", "stages of the batch"),
            _may(WHOLE, "state_rows", "rows of state"),
            _may(WHOLE, "state_bytes", "size of the state"),
            _must(FLAG, "in_window", "the batch lies within the window"),
            _must(FLAG, "undisturbed", "it has input and no outage touched it"),
        ),
    ),
    "partition_checkpoints": Table(
        "a checkpoint of a partition of the testbed, or a finished round",
        (
            _must(TEXT, "partition", "the partition; `round` for a round"),
            _must(WHOLE, "number", "number of the checkpoint or round"),
            _must(WHOLE, "completed_ns", "when it was stored"),
            _must(REAL, "seconds", "how long it took", "s"),
            _may(WHOLE, "size_bytes", "its size; null for a round"),
            _must(FLAG, "forced", "the protocol forced it"),
            _must(FLAG, "invalid", "the next recovery went to a line before it"),
            _must(FLAG, "in_window", "it was stored within the window"),
        ),
    ),
    "ledger": Table(
        "a stretch of the window that belongs to one class; the rows are without gaps and overlaps",
        (
            _must(WHOLE, "start_ns", "start"),
            _must(WHOLE, "end_ns", "end"),
            _must(TEXT, "class", "`useful`, `checkpoint`, `lost`, `detect`, `restart`, `warm-up` or `idle`"),
            _must(REAL, "seconds", "length", "s"),
            _may(WHOLE, "batch", "the micro-batch, if it belongs to one"),
            _may(WHOLE, "fault", "the fault that it is due to, if any"),
        ),
    ),
    "latency": Table(
        "a second of the window in which records were committed",
        (
            _must(WHOLE, "second", "second of the window, from 0"),
            _must(WHOLE, "records", "input records of that second", "records"),
            _must(REAL, "p50_s", "median latency"),
            _must(REAL, "p99_s", "99th percentile of latency"),
            _must(REAL, "p999_s", "99.9th percentile of latency"),
        ),
    ),
    "throughput": Table(
        "a second of the window",
        (
            _must(WHOLE, "second", "second of the window, from 0"),
            _must(REAL, "due_records", "records that fell due", "records"),
            _must(REAL, "committed_records", "records committed", "records"),
            _must(REAL, "lag_records", "records due but not committed at the end of the second", "records"),
        ),
    ),
    "hosts": Table(
        "a sample of a host",
        (
            _must(WHOLE, "second", "second of the window, from 0"),
            _must(TEXT, "host", "the host"),
            _must(REAL, "cpu_s", "CPU time since the previous sample over the time between the two", "cores"),
            _must(WHOLE, "rss_bytes", "resident memory"),
        ),
    ),
    "quality": Table(
        "a final window of the query; for results of single records, a second",
        (
            _must(WHOLE, "window_start_ns", "start of the query's window"),
            _must(WHOLE, "window_end_ns", "end of the query's window"),
            _must(WHOLE, "exact", "results of the oracle", "results"),
            _must(WHOLE, "emitted", "results that the query wrote, copies included", "results"),
            _must(WHOLE, "lost", "results of the oracle that are missing", "results"),
            _must(WHOLE, "duplicated", "copies beyond the first", "results"),
            _must(WHOLE, "wrong", "results with another value, or that should not exist", "results"),
        ),
    ),
    "predictions": Table(
        "a prediction",
        (
            _must(TEXT, "quantity", "what is predicted"),
            _must(TEXT, "model", "by what"),
            _may(REAL, "measured", "measured value, in the unit of the quantity"),
            _may(REAL, "predicted", "predicted value"),
            _may(REAL, "low", "lower end of the predicted interval"),
            _may(REAL, "high", "upper end of the predicted interval"),
            _may(REAL, "failure_rate", "input of the model: failures", "1/s"),
            _may(REAL, "checkpoint_cost_s", "input of the model: c"),
            _may(REAL, "recovery_time_s", "input of the model: R"),
            _may(REAL, "interval_s", "input of the model: T"),
            _may(REAL, "hop_delay_s", "input of the model: delta"),
            _may(WHOLE, "depth", "input of the model: n"),
            _may(TEXT, "why", "why nothing is predicted"),
        ),
    ),
    "replayed_recoveries": Table(
        "a fault that began an outage, measured or replayed",
        (
            _must(WHOLE, "fault", "the fault"),
            _must(REAL, "struck_s", "when it struck, from the start of the window"),
            _must(REAL, "down_s", "detection and restart, measured"),
            _must(REAL, "replayed_down_s", "detection and restart, replayed"),
            _must(REAL, "warm_up_s", "warm-up, measured"),
            _must(REAL, "replayed_warm_up_s", "warm-up, replayed"),
            _must(REAL, "lost_s", "lost work, measured"),
            _must(REAL, "replayed_lost_s", "lost work, replayed"),
            _must(REAL, "difference_s", "measured minus replayed, all three together"),
        ),
    ),
    "useful_time": Table(
        "a moment of the window",
        (
            _must(WHOLE, "second", "seconds since the window opened", "s"),
            _must(REAL, "measured_s", "useful and idle time until then, by the ledger"),
            _must(REAL, "replayed_s", "the same, by the replay"),
        ),
    ),
    "verdicts": Table(
        "a check",
        (
            _must(TEXT, "check", "name of the check"),
            _must(TEXT, "table", "table that it looks at"),
            _must(TEXT, "verdict", "`pass`, `fail` or `unknown`"),
            _may(TEXT, "observed", "what was found"),
            _may(TEXT, "expected", "what is demanded"),
            _may(TEXT, "detail", "why it failed or is unknown"),
        ),
    ),
}

TABLES: dict[str, pa.Schema] = {name: table.schema for name, table in RUN_TABLES.items()}

# The columns in which only some words are allowed.
WORDS: dict[str, dict[str, type[StrEnum]]] = {"faults": {"outcome": FaultOutcome}, "verdicts": {"verdict": Verdict}}

_SERIES = (
    _must(TEXT, "experiment", "name of the experiment"),
    _must(TEXT, "experiment_digest", "digest of what makes runs of an experiment comparable"),
    _must(TEXT, "machine", "class of the machine"),
    _must(TEXT, "metric", "name of the metric"),
    _must(TEXT, "unit", "unit of the metric"),
)

# Of a recorded comparison (`results.regression`).
COMPARISON_TABLES: dict[str, Table] = {
    "regression": Table(
        "a metric of an experiment",
        (
            *_SERIES,
            _must(TEXT, "better", "`higher` or `lower`"),
            _must(TEXT, "scale", "how values are compared: `ratio`, `difference` or `count`"),
            _must(TEXT, "verdict", "`worse`, `better`, `same` or `unknown`"),
            _must(TEXT, "why", "the reason in a sentence"),
            _must(WHOLE, "candidates", "candidate runs with the metric", "runs"),
            _must(WHOLE, "baseline", "baseline runs with the metric", "runs"),
            _may(REAL, "candidate_median", "median of the candidates, in the unit of the metric"),
            _may(REAL, "baseline_median", "median of the baseline, in the unit of the metric"),
            _may(REAL, "effect", "change of the median; relative on scale `ratio`"),
            _may(REAL, "low", "lower end of its interval"),
            _may(REAL, "high", "upper end of its interval"),
            _may(REAL, "p_value", "probability of such a change by chance"),
        ),
    ),
    "change_points": Table(
        "a change in the history of a metric",
        (
            *_SERIES,
            _must(TEXT, "run_id", "the first run of the new level"),
            _must(TEXT, "verdict", "`worse` or `better`"),
            _must(WHOLE, "started_ns", "start of that run"),
            _must(REAL, "before", "level before, in the unit of the metric"),
            _must(REAL, "after", "level after, in the unit of the metric"),
            _must(REAL, "p_value", "probability of such a change by chance"),
        ),
    ),
}

REGRESSION_TABLES: dict[str, pa.Schema] = {name: table.schema for name, table in COMPARISON_TABLES.items()}
