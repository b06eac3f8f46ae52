"""How the query of an experiment is configured and submitted on a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from experiments.spec import Experiment, LoadMode
from infra.cluster import Handle
from infra.jars import ensure_jars


def job_config(experiment: Experiment, handle: Handle, *, checkpoint: Path, event_log: Path) -> dict[str, Any]:
    """The query driver's configuration, as `spark_jobs.streaming.job.JobConfig` reads it."""
    return {
        "broker": handle.broker,
        "master": handle.master,
        "workload": experiment.workload.model_dump(mode="json"),
        "engine": experiment.engine.model_dump(mode="json"),
        "workers": experiment.cluster.workers,
        "cores": experiment.cores,
        "checkpoint": str(checkpoint),
        "event_log": str(event_log),
        "calibrate": experiment.load.mode is LoadMode.SATURATING,
    }


def spark_conf(experiment: Experiment, handle: Handle) -> dict[str, str]:
    """Where driver and executors bind, what they may use, and where they find the Kafka connector."""
    connector = ":".join(str(jar) for jar in ensure_jars().connector)
    address = handle.gateway.address
    return {
        "spark.driver.host": address,
        "spark.driver.bindAddress": address,
        "spark.driver.extraClassPath": connector,
        "spark.executor.extraClassPath": connector,
        "spark.executor.cores": str(experiment.cluster.worker_cores),
        "spark.executor.memory": f"{experiment.cluster.worker_memory_mb}m",
    }
