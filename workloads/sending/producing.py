"""Kafka producers: the settings of their clients, and what all senders share."""

from __future__ import annotations

from typing import Any

from confluent_kafka import Producer

from experiments.errors import EnvironmentFailure
from infra.broker import Broker
from workloads.schedule import Schedule

SETTINGS: dict[str, Any] = {
    "linger.ms": 20,
    "batch.num.messages": 50_000,
    "queue.buffering.max.messages": 2_000_000,
    "acks": "all",
    "delivery.report.only.error": True,  # a call of Python for each message that arrived would cost as much as sending
    # When the broker dies and comes back, each partition must go on as if nothing had been: nothing twice, nothing
    # swapped.
    "enable.idempotence": True,
    "reconnect.backoff.max.ms": 500,
}


class TopicSender:
    """Sends messages with `records` records each to a topic, and counts the records.

    sent, failed   of the records, how many were sent, and of these how many the broker has refused
    """

    def __init__(self, broker: Broker, topic: str, schedule: Schedule, records: int = 1) -> None:
        self.topic, self.schedule, self._records = topic, schedule, records
        self.sent = self.failed = 0
        self._producer = Producer({**broker.for_librdkafka(), **SETTINGS})

    @property
    def delivered(self) -> int:
        """Of the records sent, how many the broker has taken: neither refused nor waiting for its answer."""
        return self.sent - self.failed - len(self._producer) * self._records

    def finish(self, limit_s: float = 30.0) -> None:
        """Wait at most `limit_s` seconds until the broker has answered for every message sent.

        Records without an answer count neither as delivered nor as failed.
        """
        self._producer.flush(limit_s)

    def require(self, records: int, limit_s: float = 120.0) -> None:
        """Wait until the broker has taken `records` records in all, at most `limit_s` seconds.

        Raises `EnvironmentFailure` if it has not. Whoever reads the topic up to a known end must call this: otherwise
        it could wait for records that never come.
        """
        self.finish(limit_s)
        if self.delivered != records:
            cause = f"the broker took {self.delivered} of {records} records for the topic {self.topic}"
            raise EnvironmentFailure(f"{cause}, and refused {self.failed}", "look at its log")

    def _produce(self, value: bytes, key: bytes | None, partition: int, due_ms: int) -> None:
        """Hand a message to the client, once that has room for it; `due_ms` is its timestamp."""
        while True:
            try:
                self._producer.produce(
                    self.topic, value, key, partition=partition, on_delivery=self._on_refusal, timestamp=due_ms
                )
                return
            except BufferError:
                self._producer.poll(0.1)

    def _on_refusal(self, _error: object, _message: object) -> None:
        self.failed += self._records
