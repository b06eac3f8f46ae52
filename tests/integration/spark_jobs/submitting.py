"""Start the testbed's driver program on a cluster's gateway."""

from __future__ import annotations

import json
from pathlib import Path

from infra.cluster import Driver, Handle
from infra.launch import REPOSITORY
from infra.services import spark
from testbed.runtime.job import Job

PROGRAM = "dataflow"  # the service's name


def submit(driver: Driver, cluster: Handle, job: Job, root: Path) -> Path:
    """Start the driver program; returns its journal."""
    driver.spawn(cluster, "gateway", PROGRAM, command_of(cluster, job, root))
    return root / "journal.jsonl"


def command_of(cluster: Handle, job: Job, root: Path) -> list[str]:
    """Write the job down; returns the command of its driver program, which writes `journal.jsonl` there."""
    root.mkdir(exist_ok=True)
    (root / "job.json").write_text(json.dumps(job.to_json()), encoding="utf-8")
    address = cluster.gateway.address
    conf = {"spark.driver.host": address, "spark.driver.bindAddress": address, "spark.executor.memory": "512m"}
    words = str(root / "job.json"), str(root / "journal.jsonl")
    program = REPOSITORY / "spark_jobs" / "testbed" / "driver.py"
    return spark.submit_command(cluster.master, program, *words, conf=conf)
