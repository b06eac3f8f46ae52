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
            may(WHOLE, "fault", "the fault that the loss is due to; null if none is known", bounds=SIGNED),
            may(WHOLE, "epoch", "number of the recovery; null if none had it"),
            must(TEXT, "partition", "the partition"),
            must(
                TEXT,
                "how",
                "`restored` after its slot was lost, or its copy `promoted`; `rolled-back` with lost ones; or `lost`",
            ),
            must(WHOLE, "death_ns", "the fault; without one, the notice"),
            must(WHOLE, "notice_ns", "the coordinator noticed that the slot was lost"),
            may(WHOLE, "ready_ns", "it went on from its checkpoint, or as its copy"),
            may(WHOLE, "reached_ns", "it was as far as its last report before"),
            may(REAL, "checkpoint_age_s", "from when the checkpoint was taken to the death"),
            may(REAL, "rate", "records that it processed per second before", "records/s"),
            may(WHOLE, "replayed_records", "records that it processed from ready to reached", "records"),
            may(WHOLE, "replayed_bytes", "their size; 0 for a source, which reads them from its storage"),
            may(WHOLE, "loaded_bytes", "size of the objects that it read"),
            may(REAL, "load_s", "reading them and rebuilding its state"),
        ),
    ),
    "query_recoveries": Table(
        "a query of the testbed in a burst of losses, under recovery `query-centric` or `blocking`",
        (
            may(WHOLE, "fault", "the fault that took its first partition; null if none is known", bounds=SIGNED),
            must(TEXT, "query", "the query, by its output partition"),
            must(REAL, "priority", "its priority"),
            must(WHOLE, "death_ns", "its first partition died"),
            may(WHOLE, "planned_ns", "the coordinator told the last of its lost partitions to roll back; null: never"),
            may(WHOLE, "available_ns", "all of them were as far as they had been; null if that was not seen"),
            may(
                WHOLE, "predicted_ns", "the model has it planned, given which slots came when; null: never, or unknown"
            ),
            may(
                WHOLE,
                "normal_ns",
                "its results came first on time again: from then on relative latency is below 1.2, on average over 3 s;"
                " null: never, or not measured",
            ),
        ),
    ),
    "query_latencies": Table(
        "a slide of a query of workload `hashtags`",
        (
            must(TEXT, "query", "the query, by its sink"),
            must(WHOLE, "due_ns", "the input of the slide was due, on average"),
            must(WHOLE, "arrived_ns", "its results came to the sink, on average"),
            must(REAL, "latency_s", "from due to arrived"),
            may(REAL, "relative_latency", "over the mean latency of the query before the first loss; null without any"),
        ),
    ),
    "partition_checkpoints": Table(
        "a checkpoint of a partition of the testbed, or a finished round",
        (
            must(TEXT, "partition", "the partition; `round` for a round"),
            must(WHOLE, "number", "number of the checkpoint or round"),
            must(WHOLE, "completed_ns", "when it was stored"),
            must(REAL, "seconds", "how long it took", "s"),
            may(WHOLE, "size_bytes", "its size; null for a round"),
            must(FLAG, "forced", "the protocol forced it"),
            must(FLAG, "invalid", "the next recovery went to a line before it"),
            must(FLAG, "in_window", "it was stored within the window"),
        ),
    ),
    "partition_rates": Table(
        "a partition of the testbed",
        (
            must(TEXT, "partition", "the partition"),
            must(
                REAL,
                "rate",
                "records that it emitted per second of the window, a sink: read; without outages, and as long after",
                "records/s",
            ),
        ),
    ),
    "copies": Table(
        "an active copy of a partition of the testbed, once a second, under recovery `partially-active`",
        (
            must(WHOLE, "at_ns", "when it was reported"),
            must(TEXT, "partition", "the partition"),
            must(TEXT, "host", "the host of the copy"),
            must(REAL, "seconds", "time since the report before", "s"),
            must(REAL, "cpu_s", "CPU time of the copy since the report before", label="CPU"),
            must(WHOLE, "records", "records that it processed in that time; a source: that it emitted", "records"),
            may(
                REAL,
                "primary_cpu_s",
                "CPU time of the primary in that time, without checkpoints; null if it moved",
                label="CPU of the primary",
            ),
            may(
                WHOLE,
                "primary_records",
                "records that the primary processed in that time",
                label="Records of the primary",
            ),
            must(WHOLE, "input_bytes", "size of the messages that came for the copy; none come for that of a source"),
            must(WHOLE, "retained_bytes", "size of the output that it keeps in memory"),
        ),
    ),
    "output_logs": Table(
        "a report on the output log of a partition of the testbed, twice a second, under protocol `output-log`",
        (
            must(WHOLE, "at_ns", "when it was reported"),
            must(TEXT, "partition", "the partition"),
            must(WHOLE, "records", "records that it has read since the beginning", "records"),
            must(WHOLE, "open_windows", "windows that are open", "windows"),
            must(WHOLE, "opens", "windows that opened since its last restore", "windows"),
            must(WHOLE, "checks", "G-checks since its last restore: open windows saved again", "windows"),
            must(WHOLE, "results", "rows that it has emitted since the beginning", "rows"),
            must(WHOLE, "extent", "entries of the log that a recovery would read", "entries"),
            must(WHOLE, "replay", "records that a recovery would replay", "records"),
            must(WHOLE, "bytes", "size of what went into the log since its last restore", "bytes", "Size of the log"),
            must(REAL, "check_s", "time for saving windows, since the slot has the partition"),
        ),
    ),
    "tentative": Table(
        "a window with results for which some input was missing; for results of single records, a second",
        (
            must(WHOLE, "window_start_ns", "start of the query's window"),
            must(WHOLE, "window_end_ns", "end of the query's window"),
            must(WHOLE, "exact", "results of the oracle", "results"),
            must(WHOLE, "emitted", "tentative results; each counts once", "results"),
            must(WHOLE, "both", "results of the oracle that are among the tentative ones", "results"),
            may(REAL, "accuracy", "both / exact", bounds=SHARE),
            must(TEXT, "absent", "partitions that were absent when the first of these came out", label="Absent"),
            must(FLAG, "throughout", "whether the same were absent from the window's start until its results came out"),
            may(REAL, "output_fidelity", "predicted for what was absent", bounds=SHARE),
            may(REAL, "internal_completeness", "predicted for what was absent", bounds=SHARE),
            must(WHOLE, "first_ns", "time at which the first tentative result was out", label="First"),
            may(WHOLE, "corrected_ns", "time from which all exact results were out; null if some are missing"),
            must(WHOLE, "leaked", "tentative results in the exact output that the oracle does not have", "results"),
        ),
    ),
}
