"""Reads a partition of the input in a thread that is somewhat ahead of its consumer."""

from __future__ import annotations

import queue
import threading
from typing import cast

from confluent_kafka import Consumer, KafkaError, TopicPartition

from experiments.errors import EnvironmentFailure
from infra.broker import Broker
from testbed.runtime.connectors.batch_polls import BatchPoll
from testbed.runtime.connectors.kafka_clients import POLL_S, READING, reach
from testbed.runtime.connectors.topic_polls import JsonPoll, Place, Poll, Received

MOST_EVENTS, MOST_WAITING = 8192, 4  # of a poll, unless one message has more; polls
UNREACHABLE = (KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT)


def failed_to_read(error: KafkaError, topic: str, partition: int, offset: int) -> EnvironmentFailure:
    """Why a partition can't be read from this Kafka offset on."""
    if error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
        lost = f"the topic {topic} no longer has what partition {partition} had from offset {offset} on"
        return EnvironmentFailure(lost, "start again, and let the topic keep its messages for longer")
    return EnvironmentFailure(f"the topic {topic}: {error}", "look at the broker")


class TopicReader(threading.Thread):
    """Reads a partition from an offset on, to before `end`; few polls wait to be taken.

    Offsets count events, of which a message may have several: `records`, or one of JSON if that is None.
    """

    def __init__(
        self, broker: Broker | None, place: Place, offset: int, end: int | None, records: int | None = None
    ) -> None:
        super().__init__(name=f"input-{place.partition}", daemon=True)
        self._consumer = Consumer({**reach(broker), "group.id": "aftershock-dataflow", **READING})
        self._events, self._records = records or 1, records
        self._consumer.assign([TopicPartition(place.topic, place.partition, offset // self._events)])
        self._ready: queue.Queue[Poll | EnvironmentFailure] = queue.Queue(MOST_WAITING)
        self._place, self._end, self._closing = place, end, threading.Event()
        self._following = offset // self._events * self._events
        self._failure: EnvironmentFailure | None = None
        self.start()

    def take(self) -> Poll | None:
        """What follows; None if there is nothing yet. Raises `EnvironmentFailure` if there can't be any."""
        if self._failure is None:
            try:
                found = self._ready.get_nowait()
            except queue.Empty:
                return None
            if isinstance(found, Poll):
                return found
            self._failure = found
        raise self._failure

    def close(self) -> None:
        """Read no further."""
        self._closing.set()

    def run(self) -> None:
        """Read until it is closed; after a failure there is nothing more to read."""
        try:
            while not self._closing.is_set() and (self._end is None or self._following < self._end):
                self._read_on()
        except EnvironmentFailure as failure:
            self._put(failure)
        except Exception as error:  # if nobody heard of it, the source would wait for ever
            self._put(self._place.unusable(self._offset, f"can't be read: {type(error).__name__}: {error}"))
        finally:
            self._consumer.close()

    def _read_on(self) -> None:
        found = self._consumer.consume(max(1, MOST_EVENTS // self._events), POLL_S)
        errors = [error for each in found if (error := each.error()) is not None]
        messages = cast(list[Received], [each for each in found if each.error() is None])
        if self._end is not None:
            messages = messages[: -((self._following - self._end) // self._events)]
        if messages:
            poll = self._poll(messages)
            self._following = poll.stop
            self._put(poll)
        self._check(errors)

    @property
    def _offset(self) -> int:
        """The Kafka offset of the message that is to be read next."""
        return self._following // self._events

    def _poll(self, messages: list[Received]) -> Poll:
        if self._records is None:
            return JsonPoll(self._place, self._following, messages)
        return BatchPoll(self._place, self._following, messages, self._records)

    def _check(self, errors: list[KafkaError]) -> None:
        for error in errors:
            if not error.retriable() and error.code() not in UNREACHABLE:
                raise failed_to_read(error, self._place.topic, self._place.partition, self._offset)

    def _put(self, what: Poll | EnvironmentFailure) -> None:
        while not self._closing.is_set():
            try:
                self._ready.put(what, timeout=POLL_S)
                return
            except queue.Full:
                continue
