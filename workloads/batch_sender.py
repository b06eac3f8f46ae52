"""Sends events to a topic as Arrow batches, a message for so many of them."""

from __future__ import annotations

from confluent_kafka import Producer

from experiments.workloads import NexmarkSpec
from infra.broker import Broker
from workloads.inputs import TopicStream
from workloads.nexmark.batches import Batches
from workloads.producing import SETTINGS
from workloads.schedule import Schedule


class BatchSender:
    """Sends an input to a topic on a schedule, each message once all of its `records` events are due.

    sent, delivered, failed   of the events, how many were sent, and of these how many the broker has taken and refused
    """

    def __init__(self, broker: Broker, topic: str, spec: NexmarkSpec, schedule: Schedule, records: int) -> None:
        self.topic, self.schedule, self._records = topic, schedule, records
        self._batches = Batches(spec, schedule, records)
        self.sent = self.delivered = self.failed = 0
        self._producer = Producer({**broker.for_librdkafka(), **SETTINGS})

    def follow(self, stream: TopicStream) -> None:
        """Go on with the same input under another schedule, with what the one before made due in the first batch."""
        ended_ns = self.schedule.end_ns
        due = self.sent if ended_ns is None else max(self.sent, self.schedule.due_count(ended_ns))
        self._batches.follow(stream.schedule, due)
        self.schedule = stream.schedule

    def send_some(self, position: int, most: int) -> bool:
        """Send messages whose events are all before `position` and that were not sent yet.

        At most so many events, or a message for each partition if that has more; returns whether there are more.
        """
        length = self._batches.length
        self.send_until(min(position, self.sent + max(most, length)))
        return self.sent + length <= position

    def send_until(self, position: int) -> None:
        """Send every message whose events are all before `position` and that was not sent yet."""
        length = self._batches.length
        while self.sent + length <= position:
            due_ms = self.schedule.due_ms(self.sent + length - 1)
            for partition, value in enumerate(self._batches.messages(self.sent // length)):
                self._produce(value, partition, due_ms)
            self.sent += length
            self._producer.poll(0)
        self._producer.poll(0)

    def finish(self, limit_s: float = 30.0) -> None:
        """Wait at most so long until the broker has answered for every message."""
        self._producer.flush(limit_s)

    def _produce(self, value: bytes, partition: int, due_ms: int) -> None:
        place = {"partition": partition, "timestamp": due_ms}
        while True:
            try:
                self._producer.produce(self.topic, value, on_delivery=self._on_done, **place)
                return
            except BufferError:
                self._producer.poll(0.1)

    def _on_done(self, error: object, _message: object) -> None:
        if error is None:
            self.delivered += self._records
        else:
            self.failed += self._records
