"""The tables of a run: one pyarrow schema each, shared by the job that writes them and the checks that read them.

Times end in `_ns` (UTC nanoseconds since the epoch) or `_s` (seconds); rates are per second.
A null is "not measured", never zero. Each column has its unit, its label and its meaning here: pages and reports head
their tables with them, and docs/reference/tables.md is made of them.
"""

from __future__ import annotations

from enum import StrEnum

import pyarrow as pa

from results.tables.columns import FLAG, REAL, SHARE, SIGNED, TEXT, WHOLE, Table, may, must
from results.tables.testbed import TESTBED_TABLES, RecoveredHow
from results.verdict import Verdict

# Counts up whenever the same logs would make other tables: columns, or what a value means.
SCHEMA_VERSION = 14
VERSION_KEY = b"aftershock.schema_version"  # in the metadata of each Parquet file


class FaultOutcome(StrEnum):
    """What became of a planned fault; of one on several hosts, the first of these that holds for any."""

    INJECTED = "injected"
    WITHHELD = "withheld"  # it would have taken more hosts down than `max_down`
    ABSORBED = "absorbed"  # its hosts were in no state to be struck
    MISSING = "missing"  # the injector's journal knows nothing of it


class LedgerClass(StrEnum):
    """What a part of the measurement window went to."""

    USEFUL = "useful"  # work that was kept
    CHECKPOINT = "checkpoint"  # writing checkpoints
    LOST = "lost"  # work that a fault undid
    DETECT = "detect"  # from the fault until it was noticed
    RESTART = "restart"  # from the notice until work went on
    WARM_UP = "warm-up"  # extra time of the first batch
    IDLE = "idle"  # waiting for input


# The share of these in the window is utilization.
KEPT_CLASSES = (LedgerClass.USEFUL, LedgerClass.IDLE)

RUN_TABLES: dict[str, Table] = {
    "runs": Table(
        "the run",
        (
            must(TEXT, "run_id", "name of the run", label="Run"),
            must(TEXT, "experiment", "name of the experiment"),
            must(TEXT, "workload", "workload, and the query if the workload has several"),
            must(TEXT, "engine", "`engine.name`"),
            must(TEXT, "recovery", "`engine.recovery`, or the recovery that the run fell back to"),
            must(TEXT, "trigger", "`engine.trigger`"),
            must(TEXT, "driver", "`cluster.driver`", label="Cluster"),
            must(WHOLE, "seed", "seed of the experiment", bounds=SIGNED),
            must(WHOLE, "workers", "number of workers"),
            may(WHOLE, "depth", "number of stateful operators in a chain; null for an own job"),
            must(WHOLE, "window_start_ns", "start of the measurement window"),
            must(WHOLE, "window_end_ns", "end of the measurement window"),
            must(REAL, "window_s", "length of the window"),
            must(REAL, "checkpoint_interval_s", "`engine.checkpoint_interval_s`"),
            must(
                REAL,
                "failure_rate",
                "expected rate of fault events in the cluster, by the fault spec",
                "1/s",
                label="Planned failure rate",
            ),
            may(REAL, "service_rate", "median processing rate of undisturbed batches", "records/s"),
            may(REAL, "load_rate", "rate of the load generator", "records/s", label="Load"),
            may(REAL, "utilization", "(useful + idle) / window, by the ledger", bounds=SHARE),
            may(
                REAL,
                "utilization_by_records",
                "utilization, estimated from committed records; saturating load only",
                unit="",
                label="Utilization by records",
            ),
            must(WHOLE, "faults", "number of planned faults"),
            must(
                WHOLE,
                "records_committed",
                "committed records of the batches in the window; a batch that is partly outside counts with its share",
                "records",
            ),
            may(TEXT, "protocol", "protocol of the testbed"),
            may(
                TEXT,
                "fell_back",
                "what the run did instead of what was asked, and why; `recovery` and `protocol` then say what it used",
                label="Fell back",
            ),
            may(
                REAL,
                "message_overhead",
                "bytes of all messages / the same without the bytes that the protocol adds, before any fault; testbed"
                " only",
                label="Bytes sent / bytes of data",
            ),
            may(
                REAL,
                "copies_cpu_share",
                "CPU time of active copies / CPU time that all other partitions, primaries included, spent on"
                " processing; testbed only",
                label="CPU of copies / of processing",
            ),
            may(
                REAL,
                "checkpoint_cpu_share",
                "CPU time of taking and writing checkpoints / CPU time of processing; testbed only",
                label="CPU of checkpoints / of processing",
            ),
            may(
                REAL,
                "tentative_accuracy",
                "share of the exact results that are among the tentative ones, over all windows of table `tentative`",
                bounds=SHARE,
            ),
            may(
                REAL,
                "tentative_fidelity",
                "output fidelity predicted for these windows: their mean, weighted by the number of exact results",
                bounds=SHARE,
            ),
            may(REAL, "sustainable_rate", "highest rate that was sustained in the search", "records/s"),
            may(
                REAL,
                "unsustainable_rate",
                "lowest rate that was not sustained in the search",
                "records/s",
                label="Lowest rate not sustained",
            ),
            may(
                TEXT,
                "search_end",
                "why the search ended: `closed`, `probes`, `generator` or `commits`",
                label="What ended the search",
            ),
            may(
                REAL, "clock_step_s", "how far the gateway's wall clock moved against its monotonic clock in the window"
            ),
        ),
    ),
    "probes": Table(
        "a probe of the search for the sustainable rate",
        (
            must(WHOLE, "probe", "number of the probe, from 0"),
            must(REAL, "rate", "rate that was tried", "records/s"),
            must(WHOLE, "started_ns", "time from which the generator sent at this rate"),
            must(WHOLE, "watched_ns", "time from which lag was watched"),
            must(WHOLE, "ended_ns", "end of the probe"),
            must(REAL, "due_records", "records that became due while lag was watched", "records"),
            must(REAL, "delivered_records", "records that the broker received while lag was watched", "records"),
            must(REAL, "read_records", "records that the query read while lag was watched", "records"),
            must(REAL, "lag_begin", "lag at the first watched sample", "records", bounds=SIGNED),
            must(REAL, "lag_end", "lag at the last sample", "records", bounds=SIGNED),
            must(REAL, "lag_median", "median lag", "records", bounds=SIGNED),
            may(REAL, "growth", "median slope of lag; null if there are too few samples", "records/s", bounds=SIGNED),
            must(TEXT, "verdict", "`sustained`, `not-sustained`, `void` or `unseen`"),
            must(TEXT, "why", "reason for the verdict"),
        ),
    ),
    "faults": Table(
        "a planned fault",
        (
            must(WHOLE, "fault", "number of the fault in the plan, from 0", bounds=SIGNED),
            must(TEXT, "kind", "fault kind"),
            must(TEXT, "targets", "hosts, separated by commas"),
            must(TEXT, "cause", "the clock whose tick caused it, or the label of a listed fault"),
            must(WHOLE, "planned_ns", "planned time"),
            may(WHOLE, "actual_ns", "time of the first strike"),
            may(WHOLE, "proved_ns", "time at which the last strike was proved"),
            may(
                WHOLE,
                "healed_ns",
                "time at which the last host was healed, or at which a stronger fault replaced this one",
            ),
            may(WHOLE, "joined_ns", "time at which the last host was part of the cluster again"),
            may(WHOLE, "executors_ns", "time at which the last lost host had a Spark executor again"),
            may(
                REAL,
                "lateness_s",
                "actual minus planned time, of the strike that differed most from its planned time",
                bounds=SIGNED,
            ),
            must(TEXT, "outcome", "`injected`, `withheld`, `absorbed` or `missing`"),
            may(TEXT, "proof", "what the injector observed that shows what the strikes did"),
            may(WHOLE, "violations", "observations that contradict the proof of the strikes; must be 0"),
            may(WHOLE, "heal_violations", "observations that contradict the proof of the heals; must be 0"),
        ),
    ),
    "fault_fit": Table(
        "a comparison of the plan with its laws, or of the strikes with the plan",
        (
            must(TEXT, "test", "`gaps`, `count`, `dispersion`, `lateness`, `missing` or `composition`"),
            must(TEXT, "subject", "the fault process or the plan that is compared"),
            must(WHOLE, "samples", "number of ticks, clocks or strikes"),
            may(
                REAL,
                "statistic",
                "what the test compares: a distance, a count, a dispersion, a lateness in s",
            ),
            may(
                REAL,
                "p_value",
                "probability that chance alone gives a statistic as bad; null for a test without such a probability",
            ),
        ),
    ),
    "recoveries": Table(
        "a recovery: an outage, together with the outages that began before it ended",
        (
            must(WHOLE, "recovery", "number of the recovery, from 0"),
            may(WHOLE, "fault", "the fault that caused it; null if none is known", bounds=SIGNED),
            must(WHOLE, "faults", "number of faults that struck during it"),
            must(
                WHOLE,
                "death_ns",
                "start of the outage: the first fault, or the last commit after it if the query worked on; the notice"
                " if no fault is known",
            ),
            may(WHOLE, "notice_ns", "time at which the driver noticed the outage"),
            may(WHOLE, "ready_ns", "time from which the query works at its usual pace again"),
            may(WHOLE, "restored_ns", "time at which the query has reached its progress before the fault"),
            may(WHOLE, "normal_ns", "time at which lag is back in its normal range"),
            may(REAL, "detect_s", "from the fault to the notice"),
            may(REAL, "restart_s", "from the notice to ready, warm-up included"),
            may(REAL, "restore_s", "from ready to restored"),
            may(REAL, "catch_up_s", "from restored to normal lag"),
            may(REAL, "lost_s", "time of the work that the faults undid"),
            may(REAL, "executor_s", "part of the restart that Spark needed to start executors; testbed only"),
        ),
    ),
    "checkpoints": Table(
        "a committed micro-batch; on the testbed, the time between two committed recovery lines",
        (
            must(WHOLE, "batch", "number of the batch", bounds=SIGNED),
            must(WHOLE, "started_ns", "start of the batch"),
            must(WHOLE, "completed_ns", "commit of the batch"),
            must(REAL, "duration_s", "from start to commit"),
            must(REAL, "checkpoint_s", "the part of this duration that the checkpoint took"),
            must(REAL, "processing_s", "the rest of this duration"),
            may(REAL, "wal_s", "time for writing the offset log", label="Offset log"),
            may(REAL, "commit_log_s", "time for writing the commit log"),
            may(REAL, "state_commit_s", "time for committing state"),
            may(REAL, "hop_delay_s", "mean delay from the end of a stage to the start of the next"),
            must(WHOLE, "records", "input records of the batch", "records"),
            may(WHOLE, "stages", "number of stages of the batch"),
            may(WHOLE, "state_rows", "number of rows of state"),
            may(WHOLE, "state_bytes", "size of the state"),
            must(FLAG, "in_window", "the batch lies within the window"),
            must(
                FLAG,
                "undisturbed",
                "the batch has input and all hosts, no outage overlaps it, and it is not the first one after an outage"
                " or a host's return",
            ),
        ),
    ),
    "spark_tasks": Table(
        "a task that Spark ran for a batch, with `engine.recovery` `task`",
        (
            must(WHOLE, "batch", "number of the batch", bounds=SIGNED),
            must(WHOLE, "stage", "number of the stage in its batch, from 0"),
            must(WHOLE, "task", "number of the task in its stage, from 0"),
            must(TEXT, "host", "the host that it ran on"),
            must(TEXT, "executor", "Spark's name for the executor; a host that returns gets a new executor"),
            must(WHOLE, "launched_ns", "when it was launched"),
            must(WHOLE, "ended_ns", "when it ended, or when its loss was noticed"),
            must(FLAG, "succeeded", "whether the task finished"),
        ),
    ),
    "ledger": Table(
        "a stretch of the window that belongs to one class; the stretches have no gaps and no overlaps",
        (
            must(WHOLE, "start_ns", "start"),
            must(WHOLE, "end_ns", "end"),
            must(TEXT, "class", "`useful`, `checkpoint`, `lost`, `detect`, `restart`, `warm-up` or `idle`"),
            must(REAL, "seconds", "length", "s"),
            may(WHOLE, "batch", "the micro-batch, if it belongs to one", bounds=SIGNED),
            may(WHOLE, "fault", "the fault that caused it, if any", bounds=SIGNED),
        ),
    ),
    "latency": Table(
        "a second of the window in which results of records were out",
        (
            must(WHOLE, "second", "second of the window, from 0", bounds=SIGNED),
            must(WHOLE, "records", "input records whose results were out in that second", "records"),
            must(REAL, "p50_s", "median latency"),
            must(REAL, "p99_s", "99th percentile of latency"),
            must(REAL, "p999_s", "99.9th percentile of latency", label="P99.9"),
        ),
    ),
    "throughput": Table(
        "a second of the window",
        (
            must(WHOLE, "second", "second of the window, from 0", bounds=SIGNED),
            must(REAL, "due_records", "records that became due", "records"),
            must(REAL, "committed_records", "records committed", "records"),
            must(
                REAL, "lag_records", "records due but not committed at the end of the second", "records", bounds=SIGNED
            ),
        ),
    ),
    "hosts": Table(
        "a sample of a host",
        (
            must(WHOLE, "second", "second of the window, from 0", bounds=SIGNED),
            must(TEXT, "host", "the host"),
            may(
                REAL,
                "cpu_s",
                "CPU time since the previous sample / time since then; null for the first sample, and if a process has"
                " ended since the previous sample",
                "cores",
                label="CPU",
            ),
            must(WHOLE, "rss_bytes", "resident memory", label="Resident memory"),
        ),
    ),
    **TESTBED_TABLES,
    "quality": Table(
        "a window of the query that is final; if each result comes from a single record, a second",
        (
            must(WHOLE, "window_start_ns", "start of the query's window"),
            must(WHOLE, "window_end_ns", "end of the query's window"),
            must(WHOLE, "exact", "results of the oracle", "results"),
            must(WHOLE, "emitted", "results that the query wrote, copies included", "results"),
            must(WHOLE, "lost", "results of the oracle that are missing", "results"),
            must(WHOLE, "duplicated", "repeated results: copies beyond the first", "results"),
            must(
                WHOLE,
                "wrong",
                "results that differ in value from the oracle's, or that the oracle does not have",
                "results",
            ),
        ),
    ),
    "predictions": Table(
        "a prediction",
        (
            must(TEXT, "quantity", "what is predicted"),
            must(TEXT, "model", "the model that predicts it"),
            may(REAL, "measured", "measured value, in the unit of the quantity", bounds=SIGNED),
            may(REAL, "predicted", "predicted value", bounds=SIGNED),
            may(REAL, "low", "lower end of the predicted interval", bounds=SIGNED),
            may(REAL, "high", "upper end of the predicted interval", bounds=SIGNED),
            may(REAL, "failure_rate", "input of the model: failure rate", "1/s"),
            may(REAL, "checkpoint_cost_s", "input of the model: c, time that a checkpoint takes"),
            may(REAL, "recovery_time_s", "input of the model: R, detection and restart"),
            may(REAL, "interval_s", "input of the model: T, time from one checkpoint's end to the next"),
            may(REAL, "hop_delay_s", "input of the model: delta, delay of a checkpoint's token between operators"),
            may(WHOLE, "depth", "input of the model: n, operators on the longest path"),
            may(TEXT, "why", "reason why nothing is predicted"),
        ),
    ),
    "replayed_recoveries": Table(
        "a fault that caused an outage, in the measurement or in the replay",
        (
            must(WHOLE, "fault", "the fault", bounds=SIGNED),
            must(REAL, "struck_s", "time from the start of the window to the strike"),
            must(REAL, "down_s", "detection and restart, measured"),
            must(REAL, "replayed_down_s", "detection and restart, replayed"),
            must(REAL, "warm_up_s", "warm-up, measured"),
            must(REAL, "replayed_warm_up_s", "warm-up, replayed"),
            must(REAL, "lost_s", "lost work, measured"),
            must(REAL, "replayed_lost_s", "lost work, replayed"),
            must(
                REAL,
                "difference_s",
                "measured minus replayed, for the sum of down, warm-up and lost time",
                bounds=SIGNED,
            ),
        ),
    ),
    "useful_time": Table(
        "a moment of the window",
        (
            must(WHOLE, "second", "seconds since the window opened", "s", bounds=SIGNED),
            must(REAL, "measured_s", "useful and idle time up to this moment, by the ledger"),
            must(REAL, "replayed_s", "useful and idle time up to this moment, by the replay"),
        ),
    ),
    "verdicts": Table(
        "a check",
        (
            must(TEXT, "check", "name of the check"),
            must(TEXT, "table", "table that the check judges"),
            must(TEXT, "verdict", "`pass`, `fail` or `unknown`"),
            may(TEXT, "observed", "what was found"),
            may(TEXT, "expected", "what the check demands"),
            may(TEXT, "detail", "why the check failed or its verdict is unknown"),
        ),
    ),
}

TABLES: dict[str, pa.Schema] = {name: table.schema for name, table in RUN_TABLES.items()}

# The columns in which only some words are allowed.
WORDS: dict[str, dict[str, type[StrEnum]]] = {
    "faults": {"outcome": FaultOutcome},
    "partition_recoveries": {"how": RecoveredHow},
    "verdicts": {"verdict": Verdict},
}
