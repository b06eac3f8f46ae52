"""Kafka at both ends: events from the topic `input`, results to `output`, in the form of every other engine."""

from __future__ import annotations

import io
import queue
import threading
import time
from collections.abc import Sequence
from typing import Protocol, cast

import numpy as np
import pyarrow as pa
import pyarrow.json as pj
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from experiments.errors import AftershockError, BadInput, EnvironmentFailure
from experiments.waiting import Deadline
from infra.broker import Broker
from testbed.core.layout import PartitionLayout
from testbed.operators import Source
from testbed.queries import as_messages
from testbed.runtime.job import Job, JobInput
from testbed.runtime.sinks import Numbered, Outlet, Superseded
from testbed.runtime.sources import Feed, Read
from workloads.json_records import opening
from workloads.schedule import NS_PER_MS

MOST_MESSAGES, MOST_WAITING = 8192, 4
POLL_S, REOPEN_S, PATIENCE_S = 0.1, 0.5, 120.0
ANSWER_S = 15.0  # for a step of a transaction: one whose broker was away may never be answered (librdkafka #5511)
READING = {"enable.auto.commit": False, "auto.offset.reset": "error", "queued.max.messages.kbytes": 16_384}
READING |= {"reconnect.backoff.max.ms": 500, "fetch.wait.max.ms": 50}
WRITING = {"linger.ms": 5, "batch.num.messages": 50_000, "acks": "all", "reconnect.backoff.max.ms": 500}
LONGEST_TRANSACTION_S = 600.0  # what waited for a slow store is one; brokers allow 15 minutes
HOPELESS = (KafkaError.MSG_SIZE_TOO_LARGE,)
FENCED = (KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED)


class Received(Protocol):
    """A message that was read without an error: librdkafka's type allows for messages that lack all of this."""

    def offset(self) -> int:
        """Its place in the partition of the topic."""

    def timestamp(self) -> tuple[int, int]:
        """The kind of its time, and the time [ms]."""

    def value(self) -> bytes:
        """What it says."""


class KafkaEvents(Feed):
    """Events of one kind in a partition of the topic; the position is the offset. A thread reads ahead, but not far.

    Where somewhat further on is asked for, what lies before is passed over.
    """

    def __init__(self, job: Job, layout: PartitionLayout) -> None:
        self._input, self._partition, self._partitions = job.input, layout.index, job.parallelism
        self._schema, self._opening = (
            cast(Source, layout.element).output,
            opening(layout.operator.removesuffix("s")).encode(),
        )
        events = job.input.events
        self._end = None if events is None else (events - layout.index + job.parallelism - 1) // job.parallelism
        self._following, self._left = -1, list[Received]()
        self._reader: _Reader | None = None

    def read(self, position: int, until: int | None = None) -> Read | None:
        if position == self._end:
            return Read(None, position, True)
        if self._reader is None or not self._following <= position <= self._following + MOST_MESSAGES:
            self.close()
            self._reader = _Reader(self._input, self._partition, position, self._end)
            self._following = position
        found = self._left or self._reader.take()
        if found is None:
            return None
        here = [each for each in found if until is None or each.offset() < until]
        self._left = found[len(here) :]
        if here:
            self._following = here[-1].offset() + 1
        elif until is not None:
            self._following = until
        if self._following <= position:
            return None
        messages = [each for each in here if each.offset() >= position]
        return Read(self._batch(messages), self._following, self._following == self._end)

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader, self._left = None, []

    def _batch(self, messages: list[Received]) -> pa.RecordBatch | None:
        wanted = [each for each in messages if each.value().startswith(self._opening)]
        if not wanted:
            return None
        given = [field for field in self._schema if field.name not in ("position", "at_ns")]
        options = pj.ParseOptions(explicit_schema=pa.schema(given), unexpected_field_behavior="ignore")
        text = io.BytesIO(b"\n".join(each.value() for each in wanted))
        read = pj.read_json(text, pj.ReadOptions(use_threads=False, block_size=1 << 24), options).combine_chunks()
        offsets = np.array([each.offset() for each in wanted])
        due_ms = np.array([each.timestamp()[1] for each in wanted])
        own = {"position": offsets * self._partitions + self._partition, "at_ns": due_ms * NS_PER_MS}
        arrays = [
            pa.array(own[name]) if name in own else read.column(name).combine_chunks() for name in self._schema.names
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


def failed_to_read(error: KafkaError, topic: str, partition: int, offset: int) -> EnvironmentFailure:
    """Why a partition can't be read from this offset on."""
    if error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
        lost = f"the topic {topic} no longer has what partition {partition} had from offset {offset} on"
        return EnvironmentFailure(lost, "start anew, and let the topic keep its messages for longer")
    return EnvironmentFailure(f"the topic {topic}: {error}", "look at the broker")


class _Reader(threading.Thread):
    """Reads a partition from an offset on, to before `end`; few batches wait to be taken."""

    def __init__(self, topic: JobInput, partition: int, offset: int, end: int | None) -> None:
        super().__init__(name=f"input-{partition}", daemon=True)
        self._consumer = Consumer({**_reach(topic.broker), "group.id": "aftershock-dataflow", **READING})
        self._consumer.assign([TopicPartition(topic.topic, partition, offset)])
        self._ready: queue.Queue[list[Received] | EnvironmentFailure] = queue.Queue(MOST_WAITING)
        self._topic, self._end, self._closing = topic.topic, end, threading.Event()
        self._from = partition, offset
        self.start()

    def take(self) -> list[Received] | None:
        """Messages in order; None if there are none yet. Raises `EnvironmentFailure` if there can't be any."""
        try:
            found = self._ready.get_nowait()
        except queue.Empty:
            return None
        if isinstance(found, EnvironmentFailure):
            raise found
        return found

    def close(self) -> None:
        self._closing.set()

    def run(self) -> None:
        while not self._closing.is_set():
            found = self._consumer.consume(MOST_MESSAGES, POLL_S)
            errors = [error for each in found if (error := each.error()) is not None]
            messages = cast(list[Received], [each for each in found if each.error() is None])
            if self._end is not None:
                messages = [each for each in messages if each.offset() < self._end]
            if messages:
                self._put(messages)
            for error in errors:
                if not error.retriable() and error.code() not in (KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT):
                    self._put(failed_to_read(error, self._topic, *self._from))
        self._consumer.close()

    def _put(self, what: list[Received] | EnvironmentFailure) -> None:
        while not self._closing.is_set():
            try:
                self._ready.put(what, timeout=POLL_S)
                return
            except queue.Full:
                continue


class KafkaResults(Outlet):
    """Results of one sink partition, as messages of one partition of the topic.

    Published is in transactions, each with the last number in it as the offset of a consumer group that only stands
    for this sink: so that whoever comes next knows what is out. Its first act shuts out whoever was before it. After a
    failure it publishes nothing more: what was queued behind would be taken for all that was to come before it.
    """

    def __init__(self, job: Job, layout: PartitionLayout) -> None:
        self._job, self._partition, self._topic = job, layout.index, job.output.topic
        self._name = f"{job.run_id}-{layout.name}"
        self._producer: Producer | None = None
        self._refused: KafkaError | None = None
        self._ended: AftershockError | None = None
        self._out = 0

    def publish(self, outputs: Numbered) -> int:
        deadline = Deadline(PATIENCE_S)
        while self._ended is None:
            begun_s = time.monotonic()
            failure = self._attempt(outputs)
            if failure is None:
                return self._out
            if (
                time.monotonic() - begun_s >= LONGEST_TRANSACTION_S
            ):  # brokers end it, and say what they say when another has the sink
                cause = (
                    f"the topic {self._topic}: a transaction took longer than {LONGEST_TRANSACTION_S:g} s: {failure}"
                )
                self._ended = EnvironmentFailure(cause, "look at the broker, or take checkpoints more often")
            elif failure.code() in FENCED:  # opening anew would shut out the one that has the sink now
                self._ended = Superseded(f"{self._name}: {failure}")
            elif failure.code() in HOPELESS or deadline.passed:
                self._ended = self._failure(failure)
            else:
                time.sleep(REOPEN_S)
        raise self._ended

    def abandon(self) -> None:
        self._ended = Superseded(f"{self._name}: its slot goes on without it")

    def _attempt(self, outputs: Numbered) -> KafkaError | None:
        """What failed; then the producer is gone, and what became of its transaction is found out by opening anew."""
        try:
            producer = self._producer or self._open()
            if left := {number: batches for number, batches in outputs.items() if number > self._out}:
                self._transact(producer, left)
        except KafkaException as error:
            self._producer = None
            refusal: KafkaError = error.args[0]
            return refusal
        return None

    def write(self, batches: Sequence[pa.RecordBatch]) -> None:
        if self._producer is None:
            place = {
                **_reach(self._job.output.broker),
                "enable.idempotence": True,
                "delivery.report.only.error": True,
            }
            self._producer = Producer({**place, **WRITING, "on_delivery": self._on_refused})
        try:
            self._send(self._producer, batches)
        except KafkaException as error:
            raise self._failure(error.args[0]) from error
        self._producer.flush()
        if self._refused is not None:
            raise self._failure(self._refused)

    def _on_refused(self, error: KafkaError, _message: Message) -> None:
        self._refused = error

    def _failure(self, cause: KafkaError) -> EnvironmentFailure:
        return EnvironmentFailure(f"the topic {self._topic}: {cause}", "look at the broker")

    def _open(self) -> Producer:
        place = _reach(self._job.output.broker)
        own = {"transactional.id": self._name, "transaction.timeout.ms": round(LONGEST_TRANSACTION_S * 1000)}
        producer = Producer({**place, **WRITING, **own})
        producer.init_transactions(ANSWER_S)
        consumer = Consumer({**place, **READING, "group.id": self._name, "isolation.level": "read_committed"})
        (found,) = consumer.committed([TopicPartition(self._topic, self._partition)], ANSWER_S)
        self._out, self._group = max(found.offset, 0), consumer.consumer_group_metadata()
        consumer.close()
        self._producer = producer
        return producer

    def _transact(self, producer: Producer, outputs: Numbered) -> None:
        number = max(outputs)
        producer.begin_transaction()
        try:
            for batches in outputs.values():
                self._send(producer, batches)
        except KafkaException:
            producer.abort_transaction(ANSWER_S)  # says so if another has the sink: a record's error does not
            raise
        place = TopicPartition(self._topic, self._partition, number)
        producer.send_offsets_to_transaction([place], self._group, ANSWER_S)
        producer.commit_transaction(ANSWER_S)
        self._out = number

    def _send(self, producer: Producer, batches: Sequence[pa.RecordBatch]) -> None:
        for batch in batches:
            for key, value in as_messages(self._job.workload, batch, self._job.parallelism):
                self._produce(producer, key, value)

    def _produce(self, producer: Producer, key: str, value: str) -> None:
        while True:
            try:
                producer.produce(self._topic, value, key, partition=self._partition)
                return
            except BufferError:
                producer.poll(POLL_S)


def _reach(broker: Broker | None) -> dict[str, str]:
    """What librdkafka needs to reach the broker of a job; raises `BadInput` for a job without one."""
    if broker is None:
        raise BadInput("broker", None, "a broker, where events or results are those of a topic")
    return broker.for_librdkafka()
