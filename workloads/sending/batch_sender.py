"""Sends events to a topic as Arrow batches, a fixed number of events in each message."""

from __future__ import annotations

from experiments.workloads.catalogue import NexmarkSpec
from infra.broker import Broker
from workloads.inputs import TopicStream
from workloads.nexmark.batches import Batches
from workloads.schedule import Schedule
from workloads.sending.producing import TopicSender


class BatchSender(TopicSender):
    """Sends an input to a topic on a schedule, each message once all of its `records` events are due."""

    def __init__(self, broker: Broker, topic: str, spec: NexmarkSpec, schedule: Schedule, records: int) -> None:
        super().__init__(broker, topic, schedule, records)
        self._batches = Batches(spec, schedule, records)

    def follow(self, stream: TopicStream) -> None:
        """Go on with the same input under another schedule, with what the one before made due in the first batch."""
        ended_ns = self.schedule.end_ns
        due = self.sent if ended_ns is None else max(self.sent, self.schedule.due_count(ended_ns))
        self._batches.follow(stream.schedule, due)
        self.schedule = stream.schedule

    def send_some(self, position: int, most: int) -> bool:
        """Send messages whose events are all before `position` and that were not sent yet.

        At most `most` events, or one message for each partition if that is more; returns whether there are more.
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
                self._produce(value, None, partition, due_ms)
            self.sent += length
            self._producer.poll(0)
        self._producer.poll(0)
