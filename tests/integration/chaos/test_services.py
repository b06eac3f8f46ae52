"""Broker, Spark master and a supervised program of a real cluster: killed, proved dead, and brought back."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from experiments.fault_kinds import GATEWAY, FaultKind
from infra.cluster import Handle
from infra.local import LocalDriver
from infra.services import gateway, kafka, startup
from infra.strikes.strike import Proof
from journal.reader import raw_entries
from tests.unit.marked_processes import wait_for

pytestmark = pytest.mark.extended

RECOVERED = "Recovery complete"


def log(cluster: Handle, service: str) -> str:
    return (cluster.directory(GATEWAY) / "logs" / f"{service}.log").read_text(errors="replace")


def kill(driver: LocalDriver, cluster: Handle, kind: FaultKind) -> Proof:
    strike = driver.prepare(cluster, GATEWAY, kind)
    assert strike.refresh()
    return strike.fire()


def bring_back(driver: LocalDriver, cluster: Handle, kind: FaultKind) -> None:
    arrived = startup.arrival(cluster, GATEWAY, kind)
    proof = driver.heal(cluster, GATEWAY, kind)
    assert (proof.done, proof.holds) == ({"services started": 1}, True)
    wait_for(arrived, limit_s=120)
    again = driver.heal(cluster, GATEWAY, kind)
    assert (again.done, again.holds) == ({"services started": 0}, True), "one that is well is left alone"


def test_a_killed_broker_comes_back_with_its_data(driver: LocalDriver, cluster: Handle) -> None:
    kafka.create_topics(cluster.kafka, {"kept": 1})
    producer = KafkaProducer(**cluster.kafka.for_kafka_python())
    producer.send("kept", b"before").get(30)
    producer.close()
    proof = kill(driver, cluster, FaultKind.BROKER_KILL)
    assert (proof.done, proof.left) == ({"processes killed": 1}, {"survivors": 0, "open ports": 0})
    assert "broker" not in driver.running(cluster, GATEWAY)
    assert gateway.serves(cluster, FaultKind.MASTER_KILL), "the other services of the gateway live on"
    bring_back(driver, cluster, FaultKind.BROKER_KILL)
    consumer = KafkaConsumer(**cluster.kafka.for_kafka_python(), auto_offset_reset="earliest")
    consumer.assign([TopicPartition("kept", 0)])
    assert next(iter(consumer)).value == b"before"
    consumer.close()


def test_a_killed_master_knows_its_workers_when_it_is_back(driver: LocalDriver, cluster: Handle) -> None:
    proof = kill(driver, cluster, FaultKind.MASTER_KILL)
    assert (proof.done, proof.left) == ({"processes killed": 1}, {"survivors": 0, "open ports": 0})
    assert driver.running(cluster, "worker-1") == {"spark-worker"}
    bring_back(driver, cluster, FaultKind.MASTER_KILL)
    wait_for(lambda: RECOVERED in log(cluster, "spark-master"), limit_s=120)
    assert "Worker has been re-registered" in log(cluster, "spark-master")


def test_a_killed_program_stays_down_until_it_is_healed_and_its_supervisor_lives(
    driver: LocalDriver, cluster: Handle, tmp_path: Path
) -> None:
    journal = tmp_path / "supervisor.jsonl"
    supervised = [sys.executable, "-m", "infra.services.supervisor", str(journal), "sleep", "600"]
    driver.spawn(cluster, GATEWAY, "query", supervised)
    for life in range(1, 5):  # more of them, and shorter, than a supervisor bears with when no fault ends them
        wait_for(lambda life=life: [e["event"] for e in raw_entries(journal)].count("program-started") == life)
        proof = kill(driver, cluster, FaultKind.DRIVER_KILL)
        assert (proof.done, proof.holds) == ({"processes killed": 1}, True)
        wait_for(lambda life=life: [e["event"] for e in raw_entries(journal)].count("program-ended") == life)
        assert "query" in driver.running(cluster, GATEWAY)
        assert list(raw_entries(journal))[-1]["event"] == "program-ended"
        bring_back_program = driver.heal(cluster, GATEWAY, FaultKind.DRIVER_KILL)
        assert (bring_back_program.done, bring_back_program.holds) == ({"services started": 1}, True)
    driver.stop(cluster, GATEWAY, "query", 5)
    assert "query" not in driver.running(cluster, GATEWAY)
