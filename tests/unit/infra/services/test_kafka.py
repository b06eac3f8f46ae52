"""The broker's settings and id, as Kafka reads them (no broker is started)."""

import base64
import socket
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from kafka.errors import KafkaTimeoutError

from experiments.errors import EnvironmentFailure
from infra.broker import Broker, client_properties
from infra.launch import REPOSITORY
from infra.services import kafka
from infra.services.kafka import cluster_id, create_topics, is_ready, properties, records_of
from tests.unit.infra.services.refusing_broker import refusing_broker
from tests.unit.loopback import own_address

ASKS_IN_VAIN = """
import os, sys, threading
from contextlib import suppress
from kafka import KafkaAdminClient, KafkaConsumer
from kafka.errors import KafkaTimeoutError
from infra.broker import Broker
from infra.services.kafka import client, is_ready
from tests.unit.marked_processes import wait_for

def librdkafka(address):
    return is_ready({"bootstrap.servers": address}, limit_s=0.3)

def kafka_python(kind, address):
    with suppress(KafkaTimeoutError), client(kind, Broker(address), bootstrap_timeout_ms=300):
        return True

def held():
    return set(threading.enumerate()), set(os.listdir("/proc/self/fd")), set(os.listdir("/proc/self/task"))

before = held()
answered = eval(sys.argv[1])
wait_for(lambda: all(now <= earlier for now, earlier in zip(held(), before, strict=True)))
print("an answer" if answered else "no answer")
"""


def test_a_cluster_id_is_a_uuid_that_no_option_parser_trips_over():
    ids = {cluster_id() for _ in range(5000)}
    assert len(ids) == 5000
    assert not any(found.startswith("-") for found in ids), "one random uuid in 64 would"
    assert {len(base64.urlsafe_b64decode(f"{found}==")) for found in ids} == {16}


def test_the_broker_listens_on_the_address_of_its_host_only(tmp_path: Path):
    credentials = tmp_path / "kafka.properties"
    credentials.write_text(client_properties("well kept"))
    written = properties(Broker("127.0.9.1:9092", str(credentials)), Path("/data"))
    settings = dict(line.split("=", 1) for line in written.splitlines())
    assert settings["listeners"] == "CLIENTS://127.0.9.1:9092,CONTROLLER://127.0.9.1:9093"
    assert settings["advertised.listeners"] == "CLIENTS://127.0.9.1:9092"
    assert settings["listener.security.protocol.map"] == "CLIENTS:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT"
    assert settings["log.dirs"] == "/data"
    assert settings["auto.create.topics.enable"] == "false"


def test_a_broker_that_answers_is_ready():
    """One within this process: `test.mock.num.brokers` of librdkafka."""
    serving = Producer({"test.mock.num.brokers": 1})
    (address,) = serving.list_topics(timeout=60).brokers.values()
    assert is_ready({"bootstrap.servers": f"{address.host}:{address.port}"}, limit_s=60.0)


@pytest.mark.parametrize("asked", ["librdkafka(", "kafka_python(KafkaAdminClient, ", "kafka_python(KafkaConsumer, "])
def test_who_asks_a_broker_that_does_not_answer_leaves_nothing_behind(asked: str):
    """It may be asked many times, by an injector that runs for days: no thread, and no socket.

    A process of its own, since other tests hold threads and sockets here. The constructors of kafka-python fail, so
    nobody has their clients to close them.
    """
    with socket.create_server((own_address(19), 0)) as silent:
        address = "{}:{}".format(*silent.getsockname())
        command = [sys.executable, "-c", ASKS_IN_VAIN, f"{asked}{address!r})"]
        done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=120)
    assert done.stdout == "no answer\n", done.stderr


def test_a_login_that_the_broker_refuses_is_told_at_once_and_in_its_words(tmp_path: Path):
    login = tmp_path / "kafka.properties"
    login.write_text(client_properties("hunter2"))
    began_s = time.monotonic()
    with (
        refusing_broker(own_address(20), "nobody of this name") as address,
        pytest.raises(EnvironmentFailure, match=rf"^the broker at {address} refuses the login .*nobody of") as told,
    ):
        is_ready(Broker(address, str(login)).for_librdkafka(), limit_s=600.0)
    assert time.monotonic() - began_s < 300.0
    assert "hunter2" not in str(told.value)


def test_a_broker_that_dies_amid_a_login_has_refused_nothing(tmp_path: Path):
    login = tmp_path / "kafka.properties"
    login.write_text(client_properties("hunter2"))
    with refusing_broker(own_address(20), None) as address:
        assert not is_ready(Broker(address, str(login)).for_librdkafka(), limit_s=2.5)


def test_what_fails_at_a_broker_that_has_died_is_told_with_its_kind(monkeypatch: pytest.MonkeyPatch):
    def died(**_: object) -> None:
        raise KafkaTimeoutError

    broker = Broker("127.0.0.1:9092")
    monkeypatch.setattr(kafka, "KafkaConsumer", died)
    monkeypatch.setattr(kafka, "KafkaAdminClient", died)
    with pytest.raises(EnvironmentFailure, match=r"^the topic orders of .*:9092 cannot be read \(KafkaTimeoutError\)"):
        records_of(broker, "orders", 9)
    with pytest.raises(EnvironmentFailure, match=r"^the topics a, b cannot be created on .* \(KafkaTimeoutError\); "):
        create_topics(broker, {"b": 1, "a": 1})


class SilentConsumer:
    """A consumer whose broker has died since it told where the topic ends."""

    def position(self, place: object, timeout_ms: int | None = None) -> None:
        assert timeout_ms is not None, "it would wait for ever"

    def partitions_for_topic(self, topic: str) -> set[int]:
        return {0, 1}

    def end_offsets(self, places: list[Any]) -> dict[Any, int]:
        return dict.fromkeys(places, 5)

    def poll(self, timeout_ms: int) -> dict[Any, Any]:
        return {}

    def assign(self, places: list[Any]) -> None:
        """It has them."""

    def seek_to_beginning(self, *places: Any) -> None:
        """It would ask the broker."""


def test_a_broker_that_dies_while_a_topic_is_read_is_not_awaited_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka, "client", lambda *_, **__: nullcontext(SilentConsumer()))
    monkeypatch.setattr(kafka, "SILENCE_LIMIT_S", 0.05)
    with pytest.raises(EnvironmentFailure, match=r"sent nothing of the topic orders for 0\.05 s; "):
        records_of(Broker("127.0.9.1:9092"), "orders", 9)
