"""The local driver with everything real: broker, Spark master and workers, a Spark application, and their deaths."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Producer
from kafka import KafkaAdminClient

from experiments.errors import BadInput, EnvironmentFailure
from experiments.fault_kinds import FaultKind, FaultOptions
from experiments.spec import ClusterSpec
from infra.broker import Broker, client_properties
from infra.cluster import Handle, Role
from infra.launch import REPOSITORY
from infra.local import LocalDriver
from infra.processes import MARK, listening, marks, members, stands_still, usage
from infra.services import gateway, kafka, spark, startup
from infra.services.jvm import find_java
from infra.strikes.death import Termination
from tests.integration.conftest import ONE_WORKER, new_run_id
from tests.integration.infra.clusters import times_joined
from tests.integration.infra.strangers import (
    assert_no_argument_tells,
    assert_no_port_is_open_to_all,
    assert_nothing_answers,
    secrets_of,
)
from tests.unit.marked_processes import wait_for
from workloads.schedule import Schedule
from workloads.sending.input_sender import InputSender

EXECUTOR, PYTHON = b"CoarseGrainedExecutorBackend", b"pyspark.worker"  # in the command
PYTHON_TASKS = """
import time
from pyspark.sql import SparkSession
context = SparkSession.builder.appName("python-tasks").getOrCreate().sparkContext
context.parallelize([0], 1).foreach(lambda _: time.sleep(600))
"""
PROVISION = """
import sys
from pathlib import Path
from infra.local import LocalDriver
from tests.integration.conftest import ONE_WORKER
LocalDriver().provision(ONE_WORKER, "test-cut-off", Path(sys.argv[1]))
"""


def worker_mark(cluster: Handle) -> str:
    return f"{cluster.token}/worker-1"


def running_on_the_worker(cluster: Handle, program: bytes) -> list[int]:
    return [pid for pid in members(worker_mark(cluster)) if program in command_of(pid)]


def command_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:  # it has just ended
        return b""


@pytest.fixture
def busy_cluster(driver: LocalDriver, cluster: Handle, tmp_path: Path) -> Iterator[Handle]:
    """The cluster while a Spark application runs a Python task on the worker; healed at the end."""
    program = tmp_path / "python_tasks.py"
    program.write_text(PYTHON_TASKS, encoding="utf-8")
    address = cluster.gateway.address
    conf = {"spark.driver.host": address, "spark.driver.bindAddress": address, "spark.ui.enabled": "false"}
    conf["spark.executor.memory"] = "512m"
    # Those of the last test may be ending.
    wait_for(lambda: not any(running_on_the_worker(cluster, program) for program in (EXECUTOR, PYTHON)))
    driver.spawn(cluster, "gateway", "python-tasks", spark.submit_command(cluster.master, program, conf=conf))
    # pyspark's daemon, and the worker that it forked
    wait_for(lambda: len(running_on_the_worker(cluster, PYTHON)) == 2, limit_s=180)
    yield cluster
    driver.stop(cluster, "gateway", "python-tasks", 5)
    driver.heal(cluster, "worker-1", FaultKind.KILL)


def test_neither_ports_nor_arguments_tell_another_user_anything(busy_cluster: Handle) -> None:
    assert_no_argument_tells(secrets_of(busy_cluster.root))
    assert_no_port_is_open_to_all(busy_cluster.token, at_least=10)
    assert_nothing_answers(busy_cluster.token, at_least=10)  # of the gateway, the worker, an executor, its Python


def test_another_user_cannot_have_a_program_run(cluster: Handle) -> None:
    """Spark's own client, without the secret, asks the master to start a program: it would run as this run's user."""
    command = [str(find_java().launcher), "-cp", f"{spark.home()}/jars/*", "org.apache.spark.deploy.Client"]
    asked = ["launch", cluster.master, "file:///tmp/anything.jar", "Anything"]
    done = subprocess.run([*command, *asked], capture_output=True, text=True)
    assert "successfully submitted" not in done.stdout + done.stderr
    assert done.returncode != 0


def test_another_user_cannot_make_a_topic(cluster: Handle) -> None:
    with pytest.raises(EnvironmentFailure, match="cannot be created"):
        kafka.create_topics(Broker(cluster.broker), {"intruder": 1})
    kafka.create_topics(cluster.kafka, {"ours": 1})
    admin = KafkaAdminClient(**cluster.kafka.for_kafka_python())
    names = admin.list_topics()
    admin.close()
    assert "ours" in names
    assert "intruder" not in names


def test_a_provisioned_cluster_is_up_and_answers(driver: LocalDriver, cluster: Handle) -> None:
    assert set(cluster.hosts) == {"gateway", "worker-1"}
    assert driver.running(cluster, "gateway") >= {"broker", "spark-master"}
    assert driver.running(cluster, "worker-1") == {"spark-worker"}
    assert set(gateway.GATEWAY_PORTS) <= set(listening(cluster.gateway.address))
    assert [host.role for host in cluster.hosts.values()] == [Role.GATEWAY, Role.WORKER]
    assert Handle.load(Path(cluster.root)) == cluster


def test_topics_are_created_once(cluster: Handle) -> None:
    kafka.create_topics(cluster.kafka, {"twice": 3})
    kafka.create_topics(cluster.kafka, {"twice": 5, "new": 2})
    admin = KafkaAdminClient(**cluster.kafka.for_kafka_python())
    found = {topic["name"]: len(topic["partitions"]) for topic in admin.describe_topics(["twice", "new"])}
    admin.close()
    assert found == {"twice": 3, "new": 2}


def test_what_a_topic_holds_is_read_in_the_order_of_its_times(cluster: Handle) -> None:
    kafka.create_topics(cluster.kafka, {"held": 2})
    records = [(b"key" if number % 3 else None, b"%d" % number) for number in range(50)]
    schedule = Schedule(time.time_ns() - 60 * 10**9, 100.0, 2)
    keys, values = ([record[part] for record in records] for part in (0, 1))
    feed = InputSender(cluster.kafka, "held", lambda a, b: values[a:b], schedule, lambda a, b: keys[a:b])
    feed.send_until(len(records))
    feed.finish()
    assert kafka.records_of(cluster.kafka, "held", 1000) == records
    assert kafka.records_of(cluster.kafka, "held", 7) == records[:7], "of all partitions"
    aborted = Producer({**cluster.kafka.for_librdkafka(), "transactional.id": "aborted"})
    aborted.init_transactions()
    aborted.begin_transaction()
    aborted.produce("held", b"never", partition=1)
    aborted.flush()
    aborted.abort_transaction()
    assert kafka.records_of(cluster.kafka, "held", 1000) == records
    assert kafka.records_of(cluster.kafka, "nowhere", 7) == []


def test_a_killed_worker_leaves_no_process_and_no_port_and_comes_back(
    driver: LocalDriver, busy_cluster: Handle
) -> None:
    worker, before = busy_cluster.hosts["worker-1"], members(worker_mark(busy_cluster))
    assert {os.getpgid(pid) for pid in before} > {os.getsid(before[0])}, "pyspark's daemon made a group of its own"
    assert listening(worker.address), "or nothing would end with it"
    joined = times_joined(busy_cluster)
    proof = driver.prepare(busy_cluster, "worker-1", FaultKind.KILL).fire()
    assert proof.done["processes killed"] >= len(before) >= 4, "worker, executor, pyspark's daemon and its worker"
    assert proof.holds
    assert (members(worker_mark(busy_cluster)), listening(worker.address)) == ([], [])
    assert not driver.running(busy_cluster, "worker-1")
    assert driver.running(busy_cluster, "gateway")
    driver.heal(busy_cluster, "worker-1", FaultKind.KILL)
    wait_for(lambda: times_joined(busy_cluster) == joined + 1, limit_s=120)


def test_a_worker_that_is_paused_and_slow_goes_on_and_ends_when_it_is_asked_to(
    driver: LocalDriver, busy_cluster: Handle, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark, joined = worker_mark(busy_cluster), times_joined(busy_cluster)
    before = set(members(mark))
    assert driver.prepare(busy_cluster, "worker-1", FaultKind.PAUSE).fire().holds
    assert all(stands_still(pid) for pid in before)
    paused = usage(list(before)).cpu_s
    time.sleep(2)  # as long as the pause is to last
    assert usage(list(before)).cpu_s == paused
    assert driver.heal(busy_cluster, "worker-1", FaultKind.PAUSE).holds
    slow = driver.prepare(busy_cluster, "worker-1", FaultKind.SLOW, FaultOptions(cpu_share=0.3)).fire()
    assert slow.holds, slow
    assert slow.done["processes slowed"] >= 4, "worker, executor, pyspark's daemon and its worker"
    assert driver.heal(busy_cluster, "worker-1", FaultKind.SLOW).holds
    assert before <= set(members(mark)), "a process died of it"
    assert times_joined(busy_cluster) == joined, "the master did not lose it"
    monkeypatch.setattr(Termination, "grace_s", 60.0)  # two JVMs that have to end beside others
    ended = driver.prepare(busy_cluster, "worker-1", FaultKind.TERMINATE).fire()
    assert (ended.holds, ended.done["processes killed"]) == (True, 0), ended
    assert members(mark) == []
    driver.heal(busy_cluster, "worker-1", FaultKind.TERMINATE)
    wait_for(lambda: times_joined(busy_cluster) == joined + 1, limit_s=120)


def test_a_healed_worker_starts_with_an_empty_disk_and_one_that_is_up_is_left_alone(
    driver: LocalDriver, cluster: Handle
) -> None:
    lives = cluster.directory("worker-1") / "lives"
    before, pids = len(list(lives.iterdir())), members(worker_mark(cluster))
    driver.heal(cluster, "worker-1", FaultKind.KILL)
    assert (len(list(lives.iterdir())), members(worker_mark(cluster))) == (before, pids)
    (lives / str(before) / "left-over").touch()
    driver.prepare(cluster, "worker-1", FaultKind.KILL).fire()
    driver.heal(cluster, "worker-1", FaultKind.KILL)
    assert not (lives / str(before + 1) / "left-over").exists()
    assert len(list(lives.iterdir())) == before + 1


@pytest.mark.parametrize("host", ["gateway", "worker-2", "worker-1/..", ""])
def test_only_workers_of_the_cluster_are_aimed_at(driver: LocalDriver, cluster: Handle, host: str) -> None:
    before = set(members(f"{cluster.token}/gateway"))
    for act in (driver.prepare, driver.heal):
        with pytest.raises(BadInput, match=f"a worker of run {cluster.run_id}: worker-1") as refused:
            act(cluster, host, FaultKind.KILL)
        assert refused.value.value == host
    assert set(members(f"{cluster.token}/gateway")) == before


def test_a_service_is_asked_to_end_and_killed_when_it_does_not(driver: LocalDriver, cluster: Handle) -> None:
    deaf = "trap '' TERM; while :; do sleep 0.2; done"
    driver.spawn(cluster, "gateway", "polite", ["sleep", "60"])
    driver.spawn(cluster, "gateway", "deaf", ["sh", "-c", deaf])
    wait_for(lambda: driver.running(cluster, "gateway") >= {"polite", "deaf"})
    driver.stop(cluster, "gateway", "polite", 5)
    assert "polite" not in driver.running(cluster, "gateway")
    driver.stop(cluster, "gateway", "deaf", 0.3)
    wait_for(lambda: "deaf" not in driver.running(cluster, "gateway"))
    driver.stop(cluster, "gateway", "never-started", 5)
    assert driver.running(cluster, "gateway") >= {"broker", "spark-master"}


def test_two_clusters_share_nothing_and_one_ends_without_the_other(
    driver: LocalDriver, cluster: Handle, tmp_path: Path
) -> None:
    second = driver.provision(ONE_WORKER, new_run_id(), tmp_path)
    try:
        addresses = [{host.address for host in handle.hosts.values()} for handle in (cluster, second)]
        assert addresses[0].isdisjoint(addresses[1])
        assert {a.rpartition(".")[0] for a in addresses[0]}.isdisjoint({a.rpartition(".")[0] for a in addresses[1]})
        before = set(members(f"{cluster.token}/gateway"))
    finally:
        LocalDriver().destroy(Handle.load(tmp_path))  # as another process would, from the handle alone
    assert members(second.token) == []
    assert all(listening(host.address) == [] for host in second.hosts.values())
    driver.destroy(second)
    assert set(members(f"{cluster.token}/gateway")) == before
    assert driver.running(cluster, "worker-1") == {"spark-worker"}


def test_a_provision_that_is_killed_is_cleaned_up_from_its_handle(driver: LocalDriver, tmp_path: Path) -> None:
    provisioner = subprocess.Popen([sys.executable, "-c", PROVISION, str(tmp_path)], cwd=REPOSITORY)
    wait_for((tmp_path / "handle.json").exists, limit_s=300)  # others may provision just now
    left = Handle.load(tmp_path)
    wait_for(lambda: "spark-master" in driver.running(left, "gateway"), limit_s=120)
    provisioner.kill()
    provisioner.wait()
    assert members(left.token)
    driver.destroy(left)
    assert (members(left.token), marks(left.token)) == ([], set())


def test_a_provision_that_fails_leaves_nothing_running(driver: LocalDriver, tmp_path: Path) -> None:
    in_the_way = tmp_path / "hosts" / "worker-1" / "lives"
    in_the_way.parent.mkdir(parents=True)
    in_the_way.touch()
    with pytest.raises(OSError, match="lives"):
        driver.provision(ONE_WORKER, new_run_id(), tmp_path)
    assert (tmp_path / "hosts" / "gateway" / "logs" / "broker.log").exists(), "it had begun"
    assert members(Handle.load(tmp_path).token) == []


def test_destroying_what_was_never_started_is_fine(driver: LocalDriver, cluster: Handle) -> None:
    driver.destroy(replace(cluster, token="t0-0000000000000000"))
    assert driver.running(cluster, "gateway") >= {"broker", "spark-master"}


def test_more_workers_than_fit_are_refused(driver: LocalDriver, tmp_path: Path) -> None:
    spec = ClusterSpec(workers=250, worker_memory_mb=262_144)
    with pytest.raises(BadInput, match=r"cluster\.workers: 250 is not usable; allowed: at most \d+ of 262144 MB"):
        driver.provision(spec, new_run_id(), tmp_path / "root")
    assert not (tmp_path / "root").exists()


def test_too_little_disk_is_told(driver: LocalDriver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(startup, "MINIMUM_DISK_MB", 10**9)
    with pytest.raises(EnvironmentFailure, match=r"\d+ MB of disk are free under .*; a run needs 1000000000 MB"):
        driver.provision(ONE_WORKER, new_run_id(), tmp_path)
    assert not (tmp_path / "handle.json").exists()


def test_a_port_that_is_taken_everywhere_is_named(
    driver: LocalDriver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("0.0.0.0", 0)) as occupant:
        port = occupant.getsockname()[1]  # the real ports cannot be had while clusters of others run
        monkeypatch.setattr(gateway, "GATEWAY_PORTS", (port, *gateway.GATEWAY_PORTS))
        with pytest.raises(EnvironmentFailure, match=f"port {port}.* taken on every one of them") as failure:
            driver.provision(ONE_WORKER, new_run_id(), tmp_path)
    assert failure.value.remedy == "stop the program that listens there (ss -ltnp)"
    assert not (tmp_path / "handle.json").exists()


def test_a_broker_that_is_gone_is_told(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFailure, match=r"the broker at 127\.0\.250\.1:9092 did not answer in 1 s"):
        kafka.wait_ready(Broker("127.0.250.1:9092"), tmp_path / "broker.log", limit_s=1)


def test_a_wrong_password_is_told_at_once(cluster: Handle, tmp_path: Path) -> None:
    login = tmp_path / "kafka.properties"
    login.write_text(client_properties("another password"), encoding="utf-8")
    began_s = time.monotonic()
    with pytest.raises(EnvironmentFailure, match=r"^the broker at .* refuses the login \(.*Authentication failed"):
        kafka.wait_ready(Broker(cluster.broker, str(login)), tmp_path / "broker.log", limit_s=300.0)
    assert time.monotonic() - began_s < 150.0


def test_services_do_not_inherit_the_secrets_of_whoever_starts_them(
    driver: LocalDriver, cluster: Handle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_PASSWORD", "hunter2")
    pid = driver.spawn(cluster, "gateway", "napper", ["sleep", "60"])
    environ = Path(f"/proc/{pid}/environ")
    wait_for(lambda: bool(environ.read_bytes()))  # amid its exec a process shows none
    environment = environ.read_bytes().split(b"\0")
    driver.stop(cluster, "gateway", "napper", 5)
    assert f"{MARK}={cluster.token}/gateway/napper".encode() in environment
    assert not any(entry.startswith(b"DATABASE_PASSWORD") for entry in environment)
