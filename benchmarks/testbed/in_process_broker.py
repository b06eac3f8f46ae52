"""The broker that librdkafka has for tests, in the process of a benchmark."""

from __future__ import annotations

from confluent_kafka import Producer

from infra.broker import Broker

ANSWER_S = 10.0


class InProcessBroker:
    """Lives as long as this object. It knows no idempotent producers of several partitions.

    reach   how clients reach it
    """

    def __init__(self) -> None:
        self._host = Producer({"test.mock.num.brokers": 1, "log_level": 0})
        found = self._host.list_topics(timeout=ANSWER_S).brokers.values()
        self.reach = Broker(",".join(f"{each.host}:{each.port}" for each in found))
