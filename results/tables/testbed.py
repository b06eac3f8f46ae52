"""Tables of a run that only the protocol testbed fills: its partitions, its queries, and its tentative output."""

from __future__ import annotations

from enum import StrEnum

from results.tables.columns import FLAG, REAL, SHARE, SIGNED, TEXT, WHOLE, Table, may, must


class RecoveredHow(StrEnum):
    """How a partition of the testbed came back."""

    RESTORED = "restored"  # its slot was lost, and it rolled back to a checkpoint
    PROMOTED = "promoted"  # its slot was lost, and its copy took its place
    ROLLED_BACK = "rolled-back"  # it was there, and went back with the lost ones
    LOST = "lost"  # it did not


TESTBED_TABLES: dict[str, Table] = {
    "partition_recoveries": Table(
        "a partition of the testbed in a recovery",
        (
            may(WHOLE, "fault", "the fault that caused the loss; null if none is known", bounds=SIGNED),
            may(WHOLE, "epoch", "number of the recovery; null if no recovery included the partition"),
            must(TEXT, "partition", "the partition"),
            must(
                TEXT,
                "how",
                "`restored`: its slot was lost, and it rolled back to a checkpoint; `promoted`: its slot was lost, and"
                " its copy took its place; `rolled-back`: it was not lost, but rolled back together with lost ones;"
                " `lost`: it did not come back",
            ),
            must(WHOLE, "death_ns", "time of the fault; if none is known, of the notice"),
            must(WHOLE, "notice_ns", "time at which the coordinator noticed that the slot was lost"),
            may(WHOLE, "ready_ns", "time at which it went on: from its checkpoint, or its copy in its place"),
            may(WHOLE, "reached_ns", "time at which it had reached the progress of its last report before the loss"),
            may(REAL, "checkpoint_age_s", "age of its checkpoint when it was lost, or rolled back without being lost"),
            may(REAL, "rate", "records that it processed per second before the loss", "records/s"),
            may(WHOLE, "replayed_records", "records that it processed from ready to reached", "records"),
            may(
                WHOLE,
                "replayed_bytes",
                "size of the replayed records; 0 for a source, which reads them from its storage",
            ),
            may(WHOLE, "loaded_bytes", "size of the stored objects that it read"),
            may(REAL, "load_s", "time for reading these objects and rebuilding its state"),
        ),
    ),
    "query_recoveries": Table(
        "a query of the testbed in a burst of losses, under recovery `query-centric` or `blocking`",
        (
            may(
                WHOLE,
                "fault",
                "the fault that caused the loss of its first partition; null if none is known",
                bounds=SIGNED,
            ),
            must(TEXT, "query", "name of the query's output partition"),
            must(REAL, "priority", "priority of the query"),
            must(WHOLE, "death_ns", "time at which its first partition died"),
            may(
                WHOLE,
                "planned_ns",
                "time at which the coordinator told the last of its lost partitions to roll back; null: never",
            ),
            may(
                WHOLE,
                "available_ns",
                "time at which all of its lost partitions had reached their progress before the loss; null if that was"
                " not observed",
            ),
            may(
                WHOLE,
                "predicted_ns",
                "time of `planned_ns` by the model, with slots that join as they did in the run; null: never, or"
                " unknown",
            ),
            may(
                WHOLE,
                "normal_ns",
                "time from which the query has caught up with its input: its relative latency is below 1.2, on average"
                " over 3 s; null: never, or not measured",
            ),
        ),
    ),
    "query_latencies": Table(
        "a slide of a query of workload `hashtags`",
        (
            must(TEXT, "query", "name of the query's sink"),
            must(WHOLE, "due_ns", "mean time at which the input of the slide was due"),
            must(WHOLE, "arrived_ns", "mean time at which the results of the slide arrived at the sink"),
            must(REAL, "latency_s", "time from `due_ns` to `arrived_ns`"),
            may(
                REAL,
                "relative_latency",
                "latency / mean latency of the query before the first loss; null if there is no such mean",
            ),
        ),
    ),
    "partition_checkpoints": Table(
        "a checkpoint of a partition of the testbed, or a finished round",
        (
            must(TEXT, "partition", "the partition; `round` for a round"),
            must(WHOLE, "number", "number of the checkpoint or round"),
            must(WHOLE, "completed_ns", "time at which it was stored"),
            must(REAL, "seconds", "how long it took", "s"),
            may(WHOLE, "size_bytes", "size of the checkpoint; null for a round"),
            must(FLAG, "forced", "whether the protocol forced it"),
            must(FLAG, "invalid", "whether its partition then rolled back to a recovery line before it"),
            must(FLAG, "in_window", "whether it was stored within the window"),
        ),
    ),
    "partition_rates": Table(
        "a partition of the testbed",
        (
            must(TEXT, "partition", "the partition"),
            must(
                REAL,
                "rate",
                "records that it emitted (a sink: read) per second of the window; neither an outage nor an equal time"
                " after it counts",
                "records/s",
            ),
        ),
    ),
    "copies": Table(
        "an active copy of a partition of the testbed, once a second, under recovery `partially-active`",
        (
            must(WHOLE, "at_ns", "time of the report"),
            must(TEXT, "partition", "the partition"),
            must(TEXT, "host", "host of the copy"),
            must(REAL, "seconds", "time since the previous report", "s"),
            must(REAL, "cpu_s", "CPU time of the copy since the previous report", label="CPU"),
            must(WHOLE, "records", "records that it processed in that time; for a source, that it emitted", "records"),
            may(
                REAL,
                "primary_cpu_s",
                "CPU time of the primary in that time, without checkpoints; null if the primary moved",
                label="CPU of the primary",
            ),
            may(
                WHOLE,
                "primary_records",
                "records that the primary processed in that time",
                label="Records of the primary",
            ),
            must(
                WHOLE,
                "input_bytes",
                "size of the messages that the copy received; 0 for a copy of a source, which receives none",
            ),
            must(WHOLE, "retained_bytes", "size of the output that the copy keeps in memory"),
        ),
    ),
    "output_logs": Table(
        "a report on the output log of a partition of the testbed, twice a second, under protocol `output-log`",
        (
            must(WHOLE, "at_ns", "time of the report"),
            must(TEXT, "partition", "the partition"),
            must(WHOLE, "records", "records that the partition has read since the beginning", "records"),
            must(WHOLE, "open_windows", "number of open windows", "windows"),
            must(WHOLE, "opens", "windows that have opened since the partition's last restore", "windows"),
            must(
                WHOLE,
                "checks",
                "G-checks since the last restore: how often an open window was saved again",
                "windows",
            ),
            must(WHOLE, "results", "rows that the partition has emitted since the beginning", "rows"),
            must(WHOLE, "extent", "entries of the log that a recovery would read", "entries"),
            must(WHOLE, "replay", "records that a recovery would replay", "records"),
            must(
                WHOLE,
                "bytes",
                "size of what was added to the log since the last restore",
                "bytes",
                "Size of the log",
            ),
            must(REAL, "check_s", "time spent on saving windows since the slot took the partition"),
        ),
    ),
    "tentative": Table(
        "a window of the query with tentative results; if each result comes from a single record, a second",
        (
            must(WHOLE, "window_start_ns", "start of the query's window"),
            must(WHOLE, "window_end_ns", "end of the query's window"),
            must(WHOLE, "exact", "results of the oracle", "results"),
            must(WHOLE, "emitted", "distinct tentative results", "results"),
            must(WHOLE, "both", "results of the oracle that are among the tentative ones", "results"),
            may(REAL, "accuracy", "both / exact", bounds=SHARE),
            must(
                TEXT,
                "absent",
                "partitions that were absent when the first tentative result was emitted",
                label="Absent",
            ),
            must(
                FLAG,
                "throughout",
                "whether the same partitions were absent from the start of the window until its results were emitted",
            ),
            may(REAL, "output_fidelity", "prediction for the absent partitions", bounds=SHARE),
            may(REAL, "internal_completeness", "prediction for the absent partitions", bounds=SHARE),
            must(WHOLE, "first_ns", "time at which the first tentative result was emitted", label="First"),
            may(
                WHOLE,
                "corrected_ns",
                "time from which all exact results were in the output; null if some are missing",
            ),
            must(WHOLE, "leaked", "tentative results that are in the exact output, but not in the oracle", "results"),
        ),
    ),
}
