"""Runs the batch jobs of `spark_jobs/tables` with spark-submit, on all cores of this machine."""

from __future__ import annotations

import os
import subprocess
import sys

from aftershock.bench import complaint
from experiments.errors import EnvironmentFailure
from infra import spark
from infra.cluster import Handle
from infra.jars import ensure_jars
from infra.jvm import find_java
from infra.services import DAEMON, PYTHONPATH, REPOSITORY, for_the_controller
from results.store import Run

LIMIT_S = 900
# Such a job mostly starts: what the second compiler makes of it only pays from some three million records on.
JAVA = f"{spark.COLLECTOR} {spark.FIRST_COMPILER}"


def run_tables_job(name: str, run: Run, *arguments: str, owner: Handle | None) -> None:
    """Run a job on the run's directory, its output in raw/logs; raises `EnvironmentFailure` when it fails.

    The job carries the mark of `owner`, the run's cluster: destroying that ends a job whose caller has died, too. A run
    that is over has none.
    """
    connector = ":".join(str(jar) for jar in ensure_jars().connector)
    program = REPOSITORY / "spark_jobs" / "tables" / f"{name}.py"
    conf = {
        "spark.authenticate": "true",  # of a program that is its own cluster, Spark makes the secret itself
        "spark.python.daemon.module": DAEMON,
        "spark.ui.enabled": "false",
        "spark.driver.extraClassPath": connector,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "4",
    }
    command = spark.submit_command("local[*]", program, str(run.root), *arguments, memory="1536m", java=JAVA, conf=conf)
    log = run.raw / "logs" / f"{name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    environment = {
        **os.environ,
        "SPARK_HOME": str(spark.home()),
        "JAVA_HOME": str(find_java().home),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": PYTHONPATH,
    }
    if owner:
        environment |= for_the_controller(owner.token, owner.root, name)
    try:
        with log.open("wb") as output:
            subprocess.run(command, stdout=output, stderr=output, timeout=LIMIT_S, env=environment, check=True)
    except subprocess.TimeoutExpired:
        raise EnvironmentFailure(f"the job {name} took more than {LIMIT_S} s", f"see {log.name} of the run") from None
    except subprocess.CalledProcessError:
        why = complaint(run.raw, f"logs/{log.name}")
        raise EnvironmentFailure(f"the job {name} failed ({why})", f"see {log.name} of the run") from None
