"""A run on a standalone cluster that somebody else has started: Spark's own master and workers, and a Kafka broker.

Its commands are those of docs/examples/external/standalone. After the run the cluster is as it was.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaAdminClient

from experiments import spec
from infra.broker import Broker
from infra.launch import BROKER_PORT, MASTER_PORT
from infra.services import gateway, kafka
from infra.services.jars import ensure_jars
from infra.services.jvm import find_java
from infra.services.spark import home
from journal.reader import raw_entries
from results.runs import store
from tests.whole_runs import carry_out

pytestmark = pytest.mark.extended

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "external" / "standalone"
WORKERS = ("w-1", "w-2")
LIMIT_S = 180.0
EXPERIMENT = """
name: borrowed
cluster: {driver: external, inventory: INVENTORY, workers: 2, worker_memory_mb: 512}
workload: {window_s: 4, slide_s: 2, corpus_mb: 1}
engine: {checkpoint_interval_s: 3, partitions: 2}
load: {mode: rate, rate: 200}
window_s: 60
faults:
  events:
    - {at: 5, kind: kill, targets: [worker-1], heal_after: 3}
    - {at: 20, kind: kill, targets: [worker-2], heal_after: 4}
"""


class ByHand:
    """A cluster on loopback addresses of its own, started as its owner would."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.network = folder, f"127.1.{os.getpid() % 250}"
        self.center = f"{self.network}.1"
        self.checkpoints = folder / "checkpoints"
        self.started: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        self.checkpoints.mkdir(parents=True)
        shutil.copytree(EXAMPLE, self.folder / "commands")
        self._write_settings()
        options = ["--host", self.center, "--port", str(MASTER_PORT), "--webui-port", "0"]
        self._begin("master", [str(home() / "bin" / "spark-class"), "org.apache.spark.deploy.master.Master", *options])
        self._start_broker()
        gateway.wait_port(self.center, MASTER_PORT, self.folder / "master.log")
        for worker in WORKERS:
            self.command("start", worker)
        kafka.wait_ready(Broker(self.broker), self.folder / "broker.log")
        deadline = time.monotonic() + LIMIT_S
        while not all(self.is_alive(worker) for worker in WORKERS):
            assert time.monotonic() < deadline, "the workers do not join"
            time.sleep(0.2)

    @property
    def broker(self) -> str:
        return f"{self.center}:{BROKER_PORT}"

    @property
    def hosts(self) -> dict[str, str]:
        return {worker: f"{self.network}.{number}" for number, worker in enumerate(WORKERS, 11)}

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
        for worker in WORKERS:
            self.command("kill", worker)
        for process in self.started:
            process.kill()
            process.wait()

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


@pytest.fixture
def there(home: Path, tmp_path: Path) -> Iterator[ByHand]:
    cluster = ByHand(tmp_path / "there")
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.end()


def test_a_run_on_somebody_elses_cluster_strikes_it_and_leaves_it_as_it_was(there: ByHand, tmp_path: Path) -> None:
    path = tmp_path / "experiment.yaml"
    path.write_text(EXPERIMENT.replace("INVENTORY", str(there.folder / "commands" / "cluster.json")), encoding="utf-8")
    run = carry_out(spec.load(str(path)))
    assert run.status().state == "done"
    struck = [entry for entry in raw_entries(run.raw / "injector.jsonl") if entry["event"] == "injected"]
    assert [(entry["host"], entry["done"], entry["left"]) for entry in struck] == [
        (host, {"hosts struck": 1}, {"hosts without proof": 0}) for host in ("worker-1", "worker-2")
    ]
    faults = run.table("faults")
    assert faults["violations"].sum() == faults["heal_violations"].sum() == 0
    assert faults[["healed_ns", "joined_ns", "executors_ns"]].notna().all(axis=None)
    verdicts = {row["check"]: row["verdict"] for row in run.table("verdicts").to_dict("records")}
    for check in (
        "faults.proved",
        "faults.healed",
        "faults.as_planned",
        "quality.nothing_lost",
        "quality.nothing_wrong",
    ):
        assert verdicts.get(check) == "pass", (check, verdicts)
    domains = store.read_json(run.experiment_path)["faults"]["hosts"]
    assert domains == {"worker-1": ["rack-w-1"], "worker-2": ["rack-w-2"]}
    lines = (run.raw / "logs" / "gateway" / "commands.log").read_text(encoding="utf-8").splitlines()
    assert sum("strike (kill)" in line and "ms late" in line for line in lines) == 2
    assert all(there.is_alive(worker) for worker in WORKERS)
    assert there.topics() == set()
    assert list(there.checkpoints.iterdir()) == []
