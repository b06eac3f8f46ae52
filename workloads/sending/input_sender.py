"""Sends records to a topic, one message for each.

Few records take as long to make as many, some milliseconds. So some are made ahead, that are due within `AHEAD_S`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from infra.broker import Broker
from workloads.inputs import Input, Keys, TopicStream
from workloads.schedule import Schedule
from workloads.sending.producing import TopicSender

POLL_EVERY = 5000  # records between two looks at the broker's answers
AHEAD_S = 0.2


class InputSender(TopicSender):
    """Sends an input to a topic on a schedule, its records dealt to the partitions in turn."""

    def __init__(self, broker: Broker, topic: str, source: Input, schedule: Schedule, keys: Keys | None = None) -> None:
        super().__init__(broker, topic, schedule)
        self._begin(source, schedule, keys)

    def follow(self, stream: TopicStream) -> None:
        """Go on with the same input under another schedule."""
        self._begin(stream.values, stream.schedule, stream.keys)

    def _begin(self, source: Input, schedule: Schedule, keys: Keys | None) -> None:
        """Send the records of this source from the next one on; what was made ahead of another is dropped."""
        self.source, self.schedule, self._keys = source, schedule, keys
        self._made: Iterator[tuple[int, tuple[bytes, bytes | None, int]]] = iter(())
        self._made_until = self.sent

    def send_some(self, position: int, most: int) -> bool:
        """Send records before `position` that were not sent yet, at most `most`; returns whether there are more."""
        self.send_until(min(position, self.sent + most))
        return self.sent < position

    def send_until(self, position: int) -> None:
        """Send every record before `position` that was not sent yet."""
        while self.sent < position:
            if self.sent == self._made_until:
                self._make(position)
            stop = min(self._made_until, position)
            for p, (value, key, at_ms) in itertools.islice(self._made, stop - self.sent):
                self._produce(value, key, p % self.schedule.partitions, at_ms)
            self.sent = stop
            self._producer.poll(0)
        self._producer.poll(0)

    def _make(self, position: int) -> None:
        """Make at most `POLL_EVERY` records from the next one on: those before `position`, and those due soon."""
        soon = self.sent + int(self.schedule.rate * AHEAD_S)
        stop = min(max(position, soon), self.sent + POLL_EVERY)
        keys = self._keys(self.sent, stop) if self._keys else itertools.repeat(None)
        due_ms = self.schedule.all_due_ms(np.arange(self.sent, stop)).tolist()
        self._made = enumerate(zip(self.source(self.sent, stop), keys, due_ms, strict=False), self.sent)
        self._made_until = stop
