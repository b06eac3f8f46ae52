"""Sends records to a topic, one message for each."""

from __future__ import annotations

import itertools

import numpy as np

from infra.broker import Broker
from workloads.inputs import Input, Keys, TopicStream
from workloads.schedule import Schedule
from workloads.sending.producing import TopicSender

POLL_EVERY = 5000  # records between two looks at the broker's answers


class InputSender(TopicSender):
    """Sends an input to a topic on a schedule, its records dealt to the partitions in turn."""

    def __init__(self, broker: Broker, topic: str, source: Input, schedule: Schedule, keys: Keys | None = None) -> None:
        super().__init__(broker, topic, schedule)
        self.source, self._keys = source, keys

    def follow(self, stream: TopicStream) -> None:
        """Go on with the same input under another schedule."""
        self.source, self.schedule, self._keys = stream.values, stream.schedule, stream.keys

    def send_some(self, position: int, most: int) -> bool:
        """Send records before `position` that were not sent yet, at most `most`; returns whether there are more."""
        self.send_until(min(position, self.sent + most))
        return self.sent < position

    def send_until(self, position: int) -> None:
        """Send every record before `position` that was not sent yet."""
        while self.sent < position:
            stop = min(self.sent + POLL_EVERY, position)
            keys = self._keys(self.sent, stop) if self._keys else itertools.repeat(None)
            due_ms = self.schedule.all_due_ms(np.arange(self.sent, stop)).tolist()
            found = zip(self.source(self.sent, stop), keys, due_ms, strict=False)
            for p, (value, key, at_ms) in enumerate(found, self.sent):
                self._produce(value, key, p % self.schedule.partitions, at_ms)
            self.sent = stop
            self._producer.poll(0)
        self._producer.poll(0)
