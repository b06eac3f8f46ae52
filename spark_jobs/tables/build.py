"""Builds the result tables of a run from its raw logs."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from experiments.engines import EngineName
from journal.events.injector import INJECTOR
from journal.events.search import SEARCH
from journal.events.services import HOSTS, MACHINE
from results.tables.columns import Row
from results.tables.schema import RUN_TABLES, TABLES
from spark_jobs.tables import rows
from spark_jobs.tables.archive import committed_offsets
from spark_jobs.tables.latency import latency
from spark_jobs.tables.ledger import steady
from spark_jobs.tables.logs import Logs
from spark_jobs.tables.quality import closed, committed_until_ms, quality
from spark_jobs.tables.recoveries import recoveries
from spark_jobs.tables.tentative import totals
from spark_jobs.tables.testbed_logs import TestbedLogs

LOGS = {EngineName.STRUCTURED_STREAMING: Logs, EngineName.DATAFLOW: TestbedLogs}


def logs_of(spark: SparkSession, result: Path) -> Logs:
    """The raw logs of a run, as its engine left them."""
    return LOGS[Logs(spark, result).experiment.engine.name](spark, result)


def build(logs: Logs) -> None:
    """Write every table that the raw logs allow."""
    lag = logs.lag if logs.schedule and not logs.saturating else None
    followed = recoveries(logs.outages, logs.follow, logs.batches, logs.undisturbed, lag)
    _write(logs, "faults", logs.faults)
    _write(logs, "fault_fit", rows.fault_fit(logs.experiment, logs.plan, logs.journal("injector", INJECTOR)))
    _write(logs, "recoveries", [recovery.row(number) for number, recovery in enumerate(followed)])
    _write(logs, "partition_recoveries", [each.row() for each in logs.partition_recoveries])
    _write(logs, "query_recoveries", logs.query_recoveries)
    _write(logs, "copies", logs.copies)
    _write(logs, "output_logs", logs.output_logs)
    _write(logs, "checkpoints", rows.checkpoints(logs.batches, logs.window, steady(logs.batches, logs.outages)))
    _write(logs, "partition_checkpoints", logs.partition_checkpoints)
    _write(logs, "ledger", rows.ledger(logs.segments))
    _write(logs, "throughput", rows.throughput(logs.batches, logs.schedule, logs.window))
    _write(logs, "hosts", rows.hosts(logs.journal("hosts", HOSTS), logs.window))
    _write(logs, "probes", rows.probes(logs.journal("search", SEARCH)))
    _write(logs, "tentative", logs.tentative)
    _write(logs, "runs", [_run_row(logs)])
    _save(latency(logs.seen(), logs.window), logs, "latency")
    if logs.experiment.workload.has_oracle:
        _judge(logs)


def _run_row(logs: Logs) -> Row:
    return rows.run(
        logs.run.run_id,
        logs.experiment,
        logs.plan,
        logs.segments,
        logs.batches,
        service_rate=logs.pace.rate * 1e9 if logs.pace and logs.pace.rate else None,
        load_rate=logs.schedule.rate if logs.schedule else None,
        message_overhead=logs.message_overhead,
        bracket=rows.bracket(logs.journal("search", SEARCH)),
        moved_s=rows.clock_step_s(logs.journal("machine", MACHINE), logs.window),
        **vars(logs.cpu_shares),
        **totals(logs.tentative),
    )


def _judge(logs: Logs) -> None:
    """Compare the output with what it should be, as far as it is final."""
    workload, watermark_ms = logs.experiment.workload, logs.watermark_ms
    if watermark_ms is None:
        watermark_ms = committed_until_ms(logs.input)
    final = closed(workload, watermark_ms, committed_offsets(logs.raw, logs.experiment.engine.name))
    judged = quality(logs.parquet("sink"), logs.parquet("oracle"), final, by_second=workload.by_record)
    _save(judged, logs, "quality")


def _write(logs: Logs, table: str, found: list[Row]) -> None:
    """Of rows that are here anyway: a Spark job for each such table would take longer than all the rest."""
    logs.run.write_table(table, RUN_TABLES[table].of(found))


def _save(frame: DataFrame, logs: Logs, table: str) -> None:
    schema = from_arrow_schema(TABLES[table])
    typed = frame.select(*(F.col(field.name).cast(field.dataType) for field in schema))
    logs.run.write_table(table, typed.toArrow())
