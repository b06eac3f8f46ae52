"""Kafka at both ends: events from the topic `input`, results to `output`, in the form of every other engine unless
both are Arrow batches."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import cast

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from experiments.errors import AftershockError, EnvironmentFailure
from experiments.waiting import Deadline
from testbed.core.dataflow.layout import PartitionLayout
from testbed.operators import Source
from testbed.queries import as_messages
from testbed.runtime.connectors.answers import answer_of
from testbed.runtime.connectors.kafka_clients import POLL_S, READING, WRITING, reach
from testbed.runtime.connectors.shared_input import SharedInput
from testbed.runtime.connectors.sinks import Numbered, Outlet, Superseded
from testbed.runtime.connectors.sources import Feed, Read
from testbed.runtime.job import Job

MOST_TOGETHER = 16_384  # results that are made messages at one go
REOPEN_S, PATIENCE_S = 0.5, 120.0
ANSWER_S = 15.0  # for a step of a transaction
OPENING_S = 1.0  # for `init_transactions`, which is called again: an outlet that is abandoned should end soon
LONGEST_TRANSACTION_S = 600.0  # what waited for a slow store is one; brokers allow 15 minutes
HOPELESS = (KafkaError.MSG_SIZE_TOO_LARGE,)
FENCED = (KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED)


class KafkaEvents(Feed):
    """Events of one kind in a partition of the topic, which all sources of a slot read together. The position is the
    offset; where somewhat further on is asked for, what lies before is passed over."""

    def __init__(self, shared: SharedInput, layout: PartitionLayout) -> None:
        self._input, self._partition, self._kind = shared, layout.index, layout.operator
        self._schema = cast(Source, layout.element).output
        self._end = shared.end(layout.index)
        shared.join(self, layout.index)

    def read(self, position: int, until: int | None = None) -> Read | None:
        if position == self._end:
            return Read(None, position, True)
        found = self._input.take(self, self._partition, position)
        if found is None:
            return None
        stop = min(each for each in (found.stop, until, self._end) if each is not None)
        rows = found.events(self._kind, self._schema, position, stop)
        times_ns = found.reached_ns(position + 1), found.reached_ns(stop)
        return Read(rows, stop, stop == self._end, times_ns)

    def close(self) -> None:
        self._input.leave(self, self._partition)


class KafkaResults(Outlet):
    """Results of one sink partition, as messages of one partition of the topic.

    Published is in transactions, each with the last number in it as the offset of a consumer group that only stands for
    this sink: so that a successor knows what is published. Its first act fences its predecessor. After a failure it
    publishes nothing more: what was queued behind would be taken for all that was to come before it.

    If the broker does not answer that first act in time, librdkafka goes on with it in the background, as long as the
    producer exists. It fences whoever has the sink when the broker is back. So the outlet opens no other producer
    meanwhile, and when the outlet ends, so does the producer.

    There is one exception. If the call itself does not return (`answer_of`), its thread keeps the producer until it
    does. The outlet opens another one, and the first can still fence it, or the successor of the outlet.

    A plain sink writes without transactions. What the broker has not taken after `PATIENCE_S` has failed. An outlet
    that is abandoned waits no longer: the sinks of a slot wait in one thread, and so would its successor.
    """

    def __init__(self, job: Job, layout: PartitionLayout) -> None:
        self._job, self._partition, self._topic = job, layout.index, job.output.topic
        self._name = f"{job.run_id}-{layout.name}"
        self._producer: Producer | None = None
        self._opening: Producer | None = None  # which the broker has yet to answer
        # Makes an error each time: one that is kept would keep the frames that it has passed, with their producers.
        self._ended: Callable[[], AftershockError] | None = None
        self._out = 0

    def publish(self, outputs: Numbered) -> int:
        deadline = Deadline(PATIENCE_S)
        while self._ended is None:
            begun_s = time.monotonic()
            failure = self._attempt(outputs)
            if failure is None:
                return self._out
            if time.monotonic() - begun_s >= LONGEST_TRANSACTION_S:
                # The broker has ended it, and reports the same error as when another producer has the sink.
                why = f"a transaction took longer than {LONGEST_TRANSACTION_S:g} s: {failure}"
                cause = f"the topic {self._topic}: {why}"
                self._ended = partial(EnvironmentFailure, cause, "look at the broker, or take checkpoints more often")
            elif failure.code() in FENCED:  # opening it again would fence the slot that has the sink now
                self._ended = partial(Superseded, f"{self._name}: {failure}")
            elif failure.code() in HOPELESS or deadline.passed:
                self._ended = partial(self._failure, failure)
            else:
                time.sleep(REOPEN_S)
        self.close()
        raise self._ended()

    def abandon(self) -> None:
        self._ended = partial(Superseded, f"{self._name}: its slot goes on without it")

    def close(self) -> None:
        # A producer of `write` knows this outlet, so neither would be freed.
        self._producer = self._opening = None

    def _stop_if_ended(self) -> None:
        if self._ended is not None:
            raise self._ended()

    def _attempt(self, outputs: Numbered) -> KafkaError | None:
        """The error, if it failed. Then the producer is closed; the next `_open` shows how its transaction ended.

        Only one whose opening has not been answered is kept: its error says that the call may be repeated.
        """
        try:
            producer = self._producer or self._open()
            self._stop_if_ended()
            if left := {number: batches for number, batches in outputs.items() if number > self._out}:
                self._transact(producer, left)
        except KafkaException as error:
            refusal: KafkaError = error.args[0]
            self._producer = None
            if not refusal.retriable():
                self._opening = None
            return refusal
        return None

    def write(self, batches: Sequence[pa.RecordBatch]) -> None:
        if self._producer is None:
            place = {
                **reach(self._job.output.broker),
                "enable.idempotence": True,
                "delivery.report.only.error": True,
                "message.timeout.ms": round(PATIENCE_S * 1000),
            }
            self._producer = Producer({**place, **WRITING, "on_delivery": self._on_refused})
        try:
            self._send(self._producer, batches, PATIENCE_S)
        except KafkaException as error:
            raise self._failure(error.args[0]) from error
        while self._producer.flush(POLL_S):
            self._stop_if_ended()
        self._stop_if_ended()

    def _on_refused(self, error: KafkaError, _message: Message) -> None:
        self._ended = self._ended or partial(self._failure, error)

    def _failure(self, cause: KafkaError) -> EnvironmentFailure:
        return EnvironmentFailure(f"the topic {self._topic}: {cause}", "look at the broker")

    def _open(self) -> Producer:
        place = reach(self._job.output.broker)
        if self._opening is None:
            own = {"transactional.id": self._name, "transaction.timeout.ms": round(LONGEST_TRANSACTION_S * 1000)}
            self._opening = Producer({**place, **WRITING, **own})
        answer_of(partial(self._opening.init_transactions, OPENING_S), OPENING_S)
        producer, self._opening = self._opening, None
        consumer = Consumer({**place, **READING, "group.id": self._name, "isolation.level": "read_committed"})
        (found,) = consumer.committed([TopicPartition(self._topic, self._partition)], ANSWER_S)
        if found.error is not None:
            raise KafkaException(found.error)
        self._out, self._group = max(found.offset, 0), consumer.consumer_group_metadata()
        consumer.close()
        self._producer = producer
        return producer

    def _transact(self, producer: Producer, outputs: Numbered) -> None:
        number = max(outputs)
        producer.begin_transaction()
        try:
            for batches in outputs.values():
                self._send(producer, batches, ANSWER_S)
            self._flush(producer)
        except KafkaException:
            _step(producer.abort_transaction)  # says so if another has the sink: a record's error does not
            raise
        place = TopicPartition(self._topic, self._partition, number)
        _step(producer.send_offsets_to_transaction, [place], self._group)
        _step(producer.commit_transaction)
        self._out = number

    def _flush(self, producer: Producer) -> None:
        """Wait until the broker has all that was sent, as long as it takes more. If not, the next step fails."""
        before, left = math.inf, producer.flush(ANSWER_S)
        while 0 < left < before:
            self._stop_if_ended()
            before, left = left, producer.flush(ANSWER_S)

    def _send(self, producer: Producer, batches: Sequence[pa.RecordBatch], limit_s: float) -> None:
        for some in together(batches):
            found = as_messages(self._job.workload, some, self._job.parallelism, self._job.output.batch_records)
            for key, value in found:
                self._produce(producer, key, value, limit_s)

    def _produce(self, producer: Producer, key: str | None, value: str | bytes, limit_s: float) -> None:
        """Raises `KafkaException` if there is no room for so long [s]: then the broker takes nothing."""
        deadline = None
        while True:
            try:
                producer.produce(self._topic, value, key, partition=self._partition)
                return
            except BufferError:
                self._stop_if_ended()
                deadline = deadline or Deadline(limit_s)
                if deadline.passed:
                    why = f"no message was taken for {limit_s:g} s"
                    raise KafkaException(KafkaError(KafkaError._TIMED_OUT, why)) from None
                producer.poll(POLL_S)


def _step(call: Callable[..., object], *arguments: object) -> None:
    """A step of a transaction; raises `KafkaException` if it fails, or has no answer in time."""
    answer_of(partial(call, *arguments, ANSWER_S), ANSWER_S)


def together(batches: Sequence[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same records in fewer batches: with one record a message, a batch for each would be the most of the cost."""
    some, rows = list[pa.RecordBatch](), 0
    for batch in batches:
        some.append(batch)
        rows += batch.num_rows
        if rows >= MOST_TOGETHER:
            yield pa.concat_batches(some)
            some, rows = [], 0
    if some:
        yield pa.concat_batches(some)
