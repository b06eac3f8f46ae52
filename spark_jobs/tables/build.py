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
from spark_jobs.tables.dataflow.logs import TestbedLogs
from spark_jobs.tables.latency import latency
from spark_jobs.tables.ledger import steady
from spark_jobs.tables.logs import Logs
from spark_jobs.tables.quality import closed, committed_until_ms, quality
from spark_jobs.tables.recoveries import recoveries
from spark_jobs.tables.run_files import RunFiles

LOGS = {EngineName.STRUCTURED_STREAMING: Logs, EngineName.DATAFLOW: TestbedLogs}

# Each is filled by one engine, and stays empty in runs of the other.
ENGINE_TABLES = (
    "spark_tasks",
    "partition_checkpoints",
    "partition_recoveries",
    "query_recoveries",
    "query_latencies",
    "partition_rates",
    "copies",
    "output_logs",
    "tentative",
)


def logs_of(spark: SparkSession, result: Path) -> Logs:
    """The logs of a run, as its engine left them."""
    files = RunFiles(spark, result)
    return LOGS[files.experiment.engine.name](files)


def build(logs: Logs) -> None:
    """Write every table that the raw logs allow."""
    files, engine_tables = logs.files, logs.engine_tables
    lag = logs.lag if files.schedule and not logs.saturating else None
    followed = recoveries(logs.outages, logs.follow, logs.batches, logs.undisturbed, lag)
    _write(logs, "faults", logs.faults)
    _write(logs, "fault_fit", rows.fault_fit(files.experiment, files.plan, files.journal("injector", INJECTOR)))
    _write(logs, "recoveries", [recovery.row(number) for number, recovery in enumerate(followed)])
    _write(logs, "checkpoints", rows.checkpoints(logs.batches, files.window, steady(logs.batches, logs.outages)))
    _write(logs, "ledger", rows.ledger(logs.segments))
    _write(logs, "throughput", rows.throughput(logs.commits, files.schedule, files.window))
    _write(logs, "hosts", rows.hosts(files.journal("hosts", HOSTS), files.window))
    _write(logs, "probes", rows.probes(files.journal("search", SEARCH)))
    for table in ENGINE_TABLES:
        _write(logs, table, engine_tables.get(table, list)())
    _write(logs, "runs", [_run_row(logs)])
    _save(latency(logs.seen(), files.window), logs, "latency")
    if files.experiment.workload.has_oracle:
        _judge(logs)


def _run_row(logs: Logs) -> Row:
    files = logs.files
    return rows.run(
        files.run.run_id,
        files.experiment,
        files.plan,
        logs.segments,
        logs.batches,
        service_rate=logs.pace.rate * 1e9 if logs.pace and logs.pace.rate else None,
        load_rate=files.schedule.rate if files.schedule else None,
        bracket=rows.bracket(files.journal("search", SEARCH)),
        fell_back="; ".join(dict.fromkeys(each.why for each in files.fallbacks)) or None,
        moved_s=rows.clock_step_s(files.journal("machine", MACHINE), files.window),
        **logs.engine_measures,
    )


def _judge(logs: Logs) -> None:
    """Compare the output with what it should be, as far as it is final."""
    files = logs.files
    workload, watermark_ms = files.experiment.workload, logs.watermark_ms
    ends = committed_offsets(files.raw, files.experiment.engine.name)
    if watermark_ms is None:
        of_input = {topic: of for topic, of in ends.items() if topic in workload.input_topics}
        watermark_ms = committed_until_ms(files.input, of_input)
    final = closed(workload, watermark_ms, ends)
    judged = quality(files.parquet("sink"), files.parquet("oracle"), final, by_second=workload.by_record)
    _save(judged, logs, "quality")


def _write(logs: Logs, table: str, found: list[Row]) -> None:
    """Write a table whose rows are in this process anyway.

    It is written without Spark: a Spark job for each such table would take longer than all the rest.
    """
    logs.files.run.write_table(table, RUN_TABLES[table].of(found))


def _save(frame: DataFrame, logs: Logs, table: str) -> None:
    schema = from_arrow_schema(TABLES[table])
    typed = frame.select(*(F.col(field.name).cast(field.dataType) for field in schema))
    logs.files.run.write_table(table, typed.toArrow())
