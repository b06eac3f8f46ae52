"""The Kafka broker of a cluster: one KRaft node (broker and controller) on the gateway.

Clients must show the credentials of the run when they connect. The controller stores the data against which clients are
checked, so it has a password of its own, which no client is given."""

from __future__ import annotations

import base64
import itertools
import secrets
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.admin import NewTopic
from kafka.errors import KafkaError as ClientError
from kafka.errors import TopicAlreadyExistsError
from kafka.net.compat import KafkaNetClient

from experiments.errors import EnvironmentFailure
from experiments.waiting import Deadline, wait_for
from infra.broker import MECHANISM, PROTOCOL, USER, Broker, server_login
from infra.launch import BROKER_PORT, CONTROLLER_PORT

HEAP = "320m"
LONGEST_PAUSE_MS = 500  # between two attempts to reach a broker that starts; by default it grows to half a minute
LOOK_S, ERRORS_POLL_S = 2.0, 0.02  # between two looks whether the broker has refused the login; to hear of its errors
SHOWN_LIMIT_S, SHOWN_POLL_S = 30.0, 0.05
SILENCE_LIMIT_S, ANSWER_MS = 30.0, 500
UNKNOWN = -1  # a position in a topic
KEPT_AS_SENT = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
KEPT_AS_SENT |= {"message.timestamp.type": "CreateTime"}


def properties(broker: Broker, data: Path) -> str:
    """server.properties of a single KRaft node that listens on the broker's address only; there are passwords in it."""
    address, controller = broker.address.partition(":")[0], server_login(USER, secrets.token_hex())
    settings = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@{address}:{CONTROLLER_PORT}",
        "listeners": f"CLIENTS://{address}:{BROKER_PORT},CONTROLLER://{address}:{CONTROLLER_PORT}",
        "advertised.listeners": f"CLIENTS://{address}:{BROKER_PORT}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "CLIENTS",
        "listener.security.protocol.map": f"CLIENTS:{PROTOCOL},CONTROLLER:{PROTOCOL}",
        "sasl.enabled.mechanisms": MECHANISM,
        "sasl.mechanism.inter.broker.protocol": MECHANISM,
        "listener.name.clients.plain.sasl.jaas.config": broker.server_login(),
        "sasl.mechanism.controller.protocol": MECHANISM,
        "listener.name.controller.sasl.enabled.mechanisms": MECHANISM,
        "listener.name.controller.plain.sasl.jaas.config": controller,
        "log.dirs": data,
        "auto.create.topics.enable": "false",
        "offsets.topic.replication.factor": 1,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "group.initial.rebalance.delay.ms": 0,
        "num.network.threads": 2,
        "num.io.threads": 4,
        "log.segment.bytes": 256 * 1024 * 1024,
        "log.retention.ms": -1,
    }
    return "".join(f"{name}={value}\n" for name, value in settings.items())


def cluster_id() -> str:
    """A random id as Kafka writes it; one that begins with a hyphen would be read as an option."""
    candidates = (base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=") for _ in itertools.count())
    return next(candidate for candidate in candidates if not candidate.startswith("-"))


def format_options(config: Path) -> list[str]:
    """The arguments with which Kafka's StorageTool makes the storage of that configuration."""
    return ["format", "--cluster-id", cluster_id(), "--config", str(config)]


def java_command(java: Path, jars: list[Path], main: str, *arguments: str) -> list[str]:
    """The command that runs class `main` with these jars."""
    classpath = ":".join(str(jar) for jar in jars)
    options = ["-XX:+UseSerialGC", f"-Xmx{HEAP}", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
    options += ["-Dorg.slf4j.simpleLogger.showDateTime=true"]
    return [str(java), *options, "-cp", classpath, main, *arguments]


def wait_ready(broker: Broker, log: Path, limit_s: float = 60.0) -> None:
    """Return once the broker answers.

    Raises `EnvironmentFailure`: one that names the log if there is no answer within `limit_s` [s], and one with the
    broker's words as soon as it refuses the login.
    """
    if not is_ready(broker.for_librdkafka(), limit_s):
        raise EnvironmentFailure(f"the broker at {broker.address} did not answer in {limit_s:g} s", f"see {log}")


def is_ready(settings: Mapping[str, str], limit_s: float = 1.0) -> bool:
    """Whether the broker answers a client with these settings, under librdkafka's names, within `limit_s` [s].

    Raises `EnvironmentFailure` as soon as the broker refuses the login.
    """
    errors: list[KafkaError] = []
    ours: dict[str, Any] = {"log_level": 0, "reconnect.backoff.max.ms": LONGEST_PAUSE_MS, "error_cb": errors.append}
    admin, deadline = AdminClient({**settings, **ours}), Deadline(limit_s)
    while True:
        try:
            admin.list_topics(timeout=min(LOOK_S, max(deadline.left_s, 0.0)))
            return True
        except KafkaException:
            admin.poll(ERRORS_POLL_S)  # fills `errors`
        for error in filter(_is_refusal, errors):
            cause = f"the broker at {settings['bootstrap.servers']} refuses the login ({error.str()})"
            raise EnvironmentFailure(cause, "correct the user name and the password, or see the broker's log")
        if deadline.passed:
            return False


def _is_refusal(error: KafkaError) -> bool:
    """Whether the broker itself has refused the credentials.

    The client reports a connection that ended amid the login in the same way, but then in words of its own.
    """
    return error.code() == KafkaError._AUTHENTICATION and "Local: " not in error.str()


@contextmanager
def failing_as(cause: str, remedy: str = "look at the broker") -> Iterator[None]:
    """Turn an error of a client of `kafka` into an `EnvironmentFailure` of that cause, with the kind of the error."""
    try:
        yield
    except ClientError as error:
        raise EnvironmentFailure(f"{cause} ({type(error).__name__})", remedy) from None


@contextmanager
def client(kind: Callable[..., Any], broker: Broker, **settings: Any) -> Iterator[Any]:
    """A client of `kafka` of that kind for the length of a `with`, which ends its thread and closes its sockets.

    Raises the error of `kafka` if the broker gives no answer or refuses the login. The constructor of the client then
    fails, and would leave the thread and the sockets of a client that nobody has.
    """
    connections: list[KafkaNetClient] = []

    def connect(**given: Any) -> KafkaNetClient:
        connections.append(KafkaNetClient(**given))
        return connections[-1]

    try:
        with closing(kind(kafka_client=connect, **broker.for_kafka_python(), **settings)) as made:
            yield made
    finally:
        for each in connections:  # if the client has closed them, this does nothing
            each.close()


def records_of(broker: Broker, topic: str, most: int) -> list[tuple[bytes | None, bytes]]:
    """Key and value of the records that a topic holds now, the first `most` in the order of their timestamps.

    A missing topic has no records, and those of a transaction that was aborted are none. Nothing is committed, so other
    readers of the topic are not affected. Raises `EnvironmentFailure` if the broker fails, or sends nothing for half a
    minute.
    """
    settings: dict[str, Any] = {"enable_auto_commit": False, "isolation_level": "read_committed"}
    cause = f"the topic {topic} of the broker at {broker.address} cannot be read"
    with failing_as(cause), client(KafkaConsumer, broker, **settings) as consumer:
        places = [TopicPartition(topic, number) for number in consumer.partitions_for_topic(topic) or ()]
        if not places:
            return []
        consumer.assign(places)
        ends = consumer.end_offsets(places)
        consumer.seek_to_beginning(*places)
        found: list[Any] = []
        unread, deadline = dict.fromkeys(places, most), Deadline(SILENCE_LIMIT_S)
        while unread:
            reached = {place: _position(consumer, place) for place in unread}
            for place, records in consumer.poll(timeout_ms=ANSWER_MS).items():
                found += records
                unread[place] -= len(records)
            for place in list(unread):
                position = _position(consumer, place)
                if position != reached[place]:
                    deadline = Deadline(SILENCE_LIMIT_S)
                if unread[place] <= 0 or position >= ends[place]:
                    consumer.pause(place)
                    del unread[place]
            if len(found) > 2 * most:  # what is later than the first so many is never wanted
                found.sort(key=lambda record: record.timestamp)
                del found[most:]
            if deadline.passed and unread:
                cause = f"the broker at {broker.address} sent nothing of the topic {topic} for {SILENCE_LIMIT_S:g} s"
                raise EnvironmentFailure(cause, "look at the broker, and for a transaction that has not ended")
    found.sort(key=lambda record: record.timestamp)
    return [(record.key, record.value or b"") for record in found[:most]]


def _position(consumer: KafkaConsumer, place: TopicPartition) -> int:
    """Where a consumer reads next, -1 if the broker has not told by now; without a limit, a dead one would never."""
    found: int | None = consumer.position(place, timeout_ms=ANSWER_MS)
    return UNKNOWN if found is None else found


def new_topic(name: str, partitions: int) -> NewTopic:
    """A topic whose messages stay, with the times that their senders gave them, whatever is usual at the broker."""
    return NewTopic(name=name, num_partitions=partitions, replication_factor=1, topic_configs=KEPT_AS_SENT)


def create_topics(broker: Broker, topics: dict[str, int]) -> None:
    """Create topics with their partition counts; those that exist are left as they are.

    Returns when the broker shows all of them with their partitions, which is a moment after it has created them. Raises
    `EnvironmentFailure` if the broker fails or refuses.
    """
    cause = f"the topics {', '.join(sorted(topics))} cannot be created on the broker at {broker.address}"
    with failing_as(cause), client(KafkaAdminClient, broker) as admin:
        for name, partitions in topics.items():
            with suppress(TopicAlreadyExistsError):
                admin.create_topics([new_topic(name, partitions)])
        wait_for(
            lambda: all(topic["partitions"] for topic in admin.describe_topics(list(topics))),
            f"the broker at {broker.address} does not show its new topics",
            "see the broker's log",
            interval_s=SHOWN_POLL_S,
            limit_s=SHOWN_LIMIT_S,
        )
