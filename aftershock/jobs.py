"""Runs the batch jobs of `spark_jobs/tables` with spark-submit, on all cores of this machine."""

from __future__ import annotations

import os
import subprocess
import sys

from experiments.errors import EnvironmentFailure
from infra import spark
from infra.jars import ensure_jars
from infra.jvm import find_java
from infra.local import REPOSITORY
from results.store import Run

LIMIT_S = 900


def run_tables_job(name: str, run: Run, *arguments: str) -> None:
    """Run a job on the run's directory, its output in raw/logs; raises `EnvironmentFailure` when it fails."""
    connector = ":".join(str(jar) for jar in ensure_jars().connector)
    program = REPOSITORY / "spark_jobs" / "tables" / f"{name}.py"
    conf = {
        "spark.ui.enabled": "false",
        "spark.driver.extraClassPath": connector,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "4",
    }
    command = spark.submit_command("local[*]", program, str(run.root), *arguments, memory="1536m", conf=conf)
    log_path = run.raw / "logs" / f"{name}.log"
    log_path.parent.mkdir(parents=True, exist_ok=True)
    environment = {
        **os.environ,
        "SPARK_HOME": str(spark.home()),
        "JAVA_HOME": str(find_java().home),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(REPOSITORY),
    }
    with log_path.open("wb") as log:
        done = subprocess.run(command, stdout=log, stderr=log, timeout=LIMIT_S, env=environment, check=False)
    if done.returncode:
        lines = [
            line for line in log_path.read_text(errors="replace").splitlines() if "Error" in line or "Exception" in line
        ]
        raise EnvironmentFailure(
            f"the job {name} failed ({(lines or ['no output'])[-1][:300]})", f"see {log_path.name} of the run"
        )
