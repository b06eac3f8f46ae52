"""A standalone cluster that its owner starts with Spark's own programs, with a Kafka broker, on loopback addresses.

Its hosts are struck and healed by the commands of docs/examples/external/standalone.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from kafka import KafkaAdminClient

from experiments.errors import EnvironmentFailure
from experiments.waiting import poll_while, wait_for
from infra.broker import Broker
from infra.launch import BROKER_PORT, MASTER_PORT
from infra.services import gateway, kafka
from infra.services.jars import ensure_jars
from infra.services.jvm import find_java
from infra.services.spark import home

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "external" / "standalone"
LIMIT_S, END_LIMIT_S, PAUSE_S = 180.0, 60.0, 0.2


class StandaloneCluster:
    """The cluster, with its files in `folder`; `description` is what an experiment names as its inventory."""

    def __init__(self, folder: Path, workers: Sequence[str]) -> None:
        self.folder, self.workers, self.network = folder, workers, f"127.1.{os.getpid() % 250}"
        self.description = folder / "commands" / "cluster.json"
        self.center = f"{self.network}.1"
        self.checkpoints = folder / "checkpoints"
        self.started: list[subprocess.Popen[bytes]] = []
        self._begun: list[str] = []  # workers

    def start(self) -> None:
        self.checkpoints.mkdir(parents=True)
        shutil.copytree(EXAMPLE, self.folder / "commands")
        self._write_settings()
        options = ["--host", self.center, "--port", str(MASTER_PORT), "--webui-port", "0"]
        self._begin("master", [str(home() / "bin" / "spark-class"), "org.apache.spark.deploy.master.Master", *options])
        self._start_broker()
        gateway.wait_port(self.center, MASTER_PORT, self.folder / "master.log")
        for worker in self.workers:
            self._begun.append(worker)
            self.command("start", worker)
        kafka.wait_ready(Broker(self.broker), self.folder / "broker.log")
        cause, remedy = f"workers have not joined within {LIMIT_S:g} s", f"read the logs in {self.folder / 'work'}"
        wait_for(lambda: all(map(self.is_alive, self.workers)), cause, remedy, interval_s=PAUSE_S, limit_s=LIMIT_S)

    @property
    def broker(self) -> str:
        return f"{self.center}:{BROKER_PORT}"

    @property
    def hosts(self) -> dict[str, str]:
        return {worker: f"{self.network}.{number}" for number, worker in enumerate(self.workers, 11)}

    def command(self, *arguments: str) -> int:
        host = str(self.folder / "commands" / "host")
        return subprocess.run([host, *arguments], stdout=subprocess.DEVNULL, check=False).returncode

    def is_alive(self, worker: str) -> bool:
        return self.command("alive", worker) == 0

    def topics(self) -> set[str]:
        admin = KafkaAdminClient(bootstrap_servers=self.broker)
        try:
            return {name for name in admin.list_topics() if not name.startswith("__")}
        finally:
            admin.close()

    def end(self) -> None:
        """End all processes; raises `EnvironmentFailure` for workers whose death is not proved in time."""
        for process in self.started:
            process.kill()
            process.wait()
        left = poll_while(self._killed, interval_s=PAUSE_S, limit_s=END_LIMIT_S)
        if left:
            cause = f"the death of {', '.join(left)} is not proved within {END_LIMIT_S:g} s"
            raise EnvironmentFailure(cause, f"end what names {self.network} in its arguments")

    def _killed(self) -> list[str]:
        """Kill each worker that was started; returns those whose death is not proved."""
        for worker in self._begun:
            self.command("kill", worker)
        return [worker for worker in self._begun if self.command("dead", worker) != 0]

    def _begin(self, name: str, command: list[str]) -> None:
        variables = {"PATH": os.environ["PATH"], "JAVA_HOME": str(find_java().home), "SPARK_DAEMON_MEMORY": "160m"}
        with (self.folder / f"{name}.log").open("wb") as log:
            self.started.append(subprocess.Popen(command, env=variables, stdout=log, stderr=log))

    def _start_broker(self) -> None:
        config, java, jars = self.folder / "server.properties", find_java().launcher, ensure_jars().broker
        listeners = {"C": 9093, "PLAINTEXT": BROKER_PORT}
        settings = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@{self.center}:9093",
            "listeners": ",".join(f"{name}://{self.center}:{port}" for name, port in listeners.items()),
            "advertised.listeners": f"PLAINTEXT://{self.broker}",
            "controller.listener.names": "C",
            "listener.security.protocol.map": "C:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "log.dirs": self.folder / "kafka",
            "auto.create.topics.enable": "false",
            "offsets.topic.replication.factor": 1,
        }
        config.write_text("".join(f"{name}={value}\n" for name, value in settings.items()), encoding="utf-8")
        formatted = kafka.java_command(java, jars, "kafka.tools.StorageTool", *kafka.format_options(config))
        subprocess.run(formatted, check=True, capture_output=True)
        self._begin("broker", kafka.java_command(java, jars, "kafka.Kafka", str(config)))

    def _write_settings(self) -> None:
        commands = self.folder / "commands"
        lines = "\n".join(f"{name} {address} rack-{name}" for name, address in self.hosts.items())
        master = f"spark://{self.center}:{MASTER_PORT}"
        settings = {
            "SPARK_HOME": home(),
            "JAVA_HOME": find_java().home,
            "MASTER": master,
            "MEMORY": "640m",
            "CORES": "1",
            "WORK": self.folder / "work",
            "HOSTS": lines,
        }
        text = "".join(f"{name}='{value}'\n" for name, value in settings.items())
        (commands / "settings.sh").write_text(f"{text}export SPARK_DAEMON_MEMORY=160m\n", encoding="utf-8")
        document = json.loads((commands / "cluster.json").read_text(encoding="utf-8"))
        document |= {"master": master, "address": f"{self.network}.9", "brokers": self.broker}
        document["checkpoints"] = str(self.checkpoints)
        (commands / "cluster.json").write_text(json.dumps(document), encoding="utf-8")


@contextmanager
def standalone_cluster(folder: Path, workers: Sequence[str]) -> Iterator[StandaloneCluster]:
    """A cluster with workers of these names, which ends with the context; `folder` is made for it."""
    cluster = StandaloneCluster(folder, workers)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.end()
