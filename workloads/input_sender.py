"""Sends records to a topic, a message for each of them."""

from __future__ import annotations

import itertools

from confluent_kafka import Producer

from infra.broker import Broker
from workloads.inputs import Input, Keys, TopicStream
from workloads.producing import SETTINGS
from workloads.schedule import Schedule

POLL_EVERY = 5000  # records between two looks at the broker's answers


class InputSender:
    """Sends an input to a topic on a schedule, its records dealt to the partitions in turn."""

    def __init__(self, broker: Broker, topic: str, source: Input, schedule: Schedule, keys: Keys | None = None) -> None:
        self.topic, self.source, self.schedule, self._keys = topic, source, schedule, keys
        self.sent = self.delivered = self.failed = 0
        self._producer = Producer({**broker.for_librdkafka(), **SETTINGS})

    def follow(self, stream: TopicStream) -> None:
        """Go on with the same input under another schedule."""
        self.source, self.schedule, self._keys = stream.values, stream.schedule, stream.keys

    def send_some(self, position: int, most: int) -> bool:
        """Send records before `position` that were not sent yet, at most so many; returns whether there are more."""
        self.send_until(min(position, self.sent + most))
        return self.sent < position

    def send_until(self, position: int) -> None:
        """Send every record before `position` that was not sent yet."""
        while self.sent < position:
            stop = min(self.sent + POLL_EVERY, position)
            keys = self._keys(self.sent, stop) if self._keys else itertools.repeat(None)
            for p, (value, key) in enumerate(zip(self.source(self.sent, stop), keys, strict=False), self.sent):
                self._produce(value, key, p % self.schedule.partitions, self.schedule.due_ms(p))
            self.sent = stop
            self._producer.poll(0)
        self._producer.poll(0)

    def _produce(self, text: bytes, key: bytes | None, partition: int, due_ms: int) -> None:
        place = {"partition": partition, "timestamp": due_ms}
        while True:
            try:
                self._producer.produce(self.topic, text, key, on_delivery=self._done, **place)
                return
            except BufferError:
                self._producer.poll(0.1)

    def finish(self, limit_s: float = 30.0) -> None:
        """Wait at most `limit_s` seconds until the broker has answered for every record sent.

        Records without an answer count neither as delivered nor as failed.
        """
        self._producer.flush(limit_s)

    def _done(self, error: object, _message: object) -> None:
        if error is None:
            self.delivered += 1
        else:
            self.failed += 1
