"""Sends events to a topic as Arrow batches, a message for so many of them."""

from __future__ import annotations

from confluent_kafka import Producer

from experiments.workloads import NexmarkSpec
from infra.broker import Broker
from workloads.generator import SETTINGS
from workloads.nexmark.batches import batches
from workloads.schedule import Schedule


class BatchSender:
    """Sends an input to a topic on a schedule, each message once all of its `records` events are due.

    delivered, failed   of the messages sent, how many the broker has taken and how many it has refused
    """

    def __init__(self, broker: Broker, topic: str, spec: NexmarkSpec, schedule: Schedule, records: int) -> None:
        self.topic, self.schedule = topic, schedule
        self._made, self._length = batches(spec, schedule, records), records * schedule.partitions
        self._following = self.delivered = self.failed = 0
        self._producer = Producer({**broker.for_librdkafka(), **SETTINGS})

    def send_until(self, position: int) -> None:
        """Send every message whose events are all before `position` and that was not sent yet."""
        while (self._following + 1) * self._length <= position:
            due_ms = self.schedule.due_ms((self._following + 1) * self._length - 1)
            for partition, value in enumerate(self._made(self._following)):
                self._produce(value, partition, due_ms)
            self._following += 1
            self._producer.poll(0)

    def finish(self, limit_s: float = 30.0) -> None:
        """Wait at most so long until the broker has answered for every message."""
        self._producer.flush(limit_s)

    @property
    def sent(self) -> int:
        """How many events were sent."""
        return self._following * self._length

    def _produce(self, value: bytes, partition: int, due_ms: int) -> None:
        while True:
            try:
                self._producer.produce(
                    self.topic, value, partition=partition, timestamp=due_ms, on_delivery=self._on_done
                )
                return
            except BufferError:
                self._producer.poll(0.1)

    def _on_done(self, error: object, _message: object) -> None:
        if error is None:
            self.delivered += 1
        else:
            self.failed += 1
