"""The result tables as Airflow's assets: what other DAGs, ours and a user's own, are scheduled on."""

from __future__ import annotations

from airflow.sdk import Asset

GROUP = "aftershock"
# Those of `results.tables.schema.TABLES`, whose module is too heavy for a DAG file to import.
TABLES = (
    *("runs", "probes", "faults", "fault_fit", "recoveries", "checkpoints", "spark_tasks", "ledger"),
    *("latency", "throughput", "hosts", "partition_recoveries", "query_recoveries", "query_latencies"),
    *("partition_checkpoints", "partition_rates", "copies", "output_logs"),
    *("tentative", "quality", "predictions", "replayed_recoveries", "useful_time", "verdicts"),
)
RUNS = "runs"  # in the extra of an event: the ids of the runs that have the table
RESULT_TABLES = {
    name: Asset(name=f"aftershock_{name}", uri=f"x-aftershock://tables/{name}", group=GROUP) for name in TABLES
}
