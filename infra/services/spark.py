"""Spark standalone from the pyspark package: its path, and the commands of master, worker and programs."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from experiments.errors import EnvironmentFailure
from infra import credentials
from infra.cluster import Handle, Host
from infra.launch import MASTER_PORT

# A worker that finds no master tries again every 5 to 15 s; Spark's own numbers are 6, then ten more every 30 to 90 s.
RETRIES = "-Dspark.worker.initialRegistrationRetries=60 -Dspark.worker.maxRegistrationRetries=120"
COLLECTOR, FIRST_COMPILER = "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"
MOSTLY_STARTING = f"{COLLECTOR} {FIRST_COMPILER}"  # of a JVM that ends before the second compiler would pay
DAEMON_OPTIONS = f"{MOSTLY_STARTING} -Xss512k -Dspark.deploy.maxExecutorRetries=-1 {RETRIES}"
EVENT_LOG = "spark-events"  # the folder of Spark's event logs, in the raw logs of a run
RECOVERY_LIMIT_S = 10  # a master that was started again waits so long for workers and drivers that died meanwhile


def home() -> Path:
    """SPARK_HOME: the installed pyspark package; raises `EnvironmentFailure` without it."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise EnvironmentFailure("the Python package pyspark is missing", "run `make setup`")
    return Path(spec.origin).parent


def recovery_directory(handle: Handle) -> Path:
    """Where the master keeps which workers and applications it has."""
    return handle.directory(handle.gateway.name) / "spark-master"


def daemon_environment(handle: Handle, host: str) -> dict[str, str]:
    """Environment of master, workers and all they start: bound to the host's address, with the run's
    secrets, small heaps.

    A master that is started again asks the workers and drivers of its directory to come back, which they do at once.
    """
    folder = _quoted(str(recovery_directory(handle)))
    recovery = {"Mode": "FILESYSTEM", "Directory": folder, "Timeout": RECOVERY_LIMIT_S}
    return {
        "SPARK_HOME": str(home()),
        "SPARK_CONF_DIR": str(credentials.folder(handle.root)),
        "SPARK_MASTER_OPTS": " ".join(f"-Dspark.deploy.recovery{name}={value}" for name, value in recovery.items()),
        "SPARK_LOCAL_IP": handle.hosts[host].address,
        "SPARK_DAEMON_MEMORY": "160m",
        "SPARK_DAEMON_JAVA_OPTS": DAEMON_OPTIONS,
    }


def _quoted(text: str) -> str:
    """A text as it stands among the options of a JVM that Spark takes apart, where a blank ends an option."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def master_command(gateway: Host) -> list[str]:
    """The command of the Spark master on the gateway; its web page gets any free port."""
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
    master: str, program: Path, *arguments: str, memory: str = "768m", java: str = COLLECTOR, conf: dict[str, str]
) -> list[str]:
    """spark-submit of a Python program in client mode; `java`: options of the driver's JVM."""
    options = ["--master", master, "--driver-memory", memory, "--driver-java-options", java]
    for name, value in conf.items():
        options += ["--conf", f"{name}={value}"]
    return [str(home() / "bin" / "spark-submit"), *options, str(program), *arguments]
