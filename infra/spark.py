"""Spark standalone from the pyspark package: where it is, and the commands of master, worker and programs."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from infra.cluster import Host

MASTER_PORT = 7077
DAEMON_OPTIONS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xss512k -Dspark.deploy.maxExecutorRetries=-1"


def home() -> Path:
    """SPARK_HOME: the installed pyspark package."""
    spec = importlib.util.find_spec("pyspark")
    return Path(spec.origin).parent


def daemon_environment(address: str) -> dict[str, str]:
    """Environment of master, workers and all they start: bound to the host's address, small heaps."""
    return {
        "SPARK_HOME": str(home()),
        "SPARK_LOCAL_IP": address,
        "SPARK_DAEMON_MEMORY": "160m",
        "SPARK_DAEMON_JAVA_OPTS": DAEMON_OPTIONS,
    }


def master_command(gateway: Host) -> list[str]:
    program = str(home() / "bin" / "spark-class")
    options = ["--host", gateway.address, "--port", str(MASTER_PORT), "--webui-port", "0"]
    return [program, "org.apache.spark.deploy.master.Master", *options]


def worker_command(worker: Host, master: str, work: Path) -> list[str]:
    """A worker with all its files, and those of its executors, below the folder `work`."""
    program = ["env", f"SPARK_LOCAL_DIRS={work}", str(home() / "bin" / "spark-class")]
    options = ["--host", worker.address, "--webui-port", "0", "--cores", str(worker.cores)]
    options += ["--memory", f"{worker.memory_mb}M", "--work-dir", str(work)]
    return [*program, "org.apache.spark.deploy.worker.Worker", *options, master]


def submit_command(
    master: str, program: Path, *arguments: str, memory: str = "768m", conf: dict[str, str]
) -> list[str]:
    """spark-submit of a Python program in client mode."""
    options = ["--master", master, "--driver-memory", memory, "--driver-java-options", "-XX:+UseSerialGC"]
    for name, value in conf.items():
        options += ["--conf", f"{name}={value}"]
    return [str(home() / "bin" / "spark-submit"), *options, str(program), *arguments]
