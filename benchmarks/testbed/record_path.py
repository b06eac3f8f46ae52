"""Where the time of one record goes between two topics, stage by stage, in one process and without a real broker.

`.venv/bin/python -m benchmarks.testbed.record_path [--queries q1 q12] [--protocols none ...] [--records 1 1024]
[--events N] [--batch N]` prints a line for each query, number of records a message and protocol [µs of CPU time for a
record that the query reads]. The broker is the one that librdkafka has for tests; one source and all partitions behind
it are real, and what they send goes through bytes, as between two slots. Stages:

    poll        messages as objects, by the consumer's call
    decode      their events by column (of a message with a batch this is part of poll)
    operator    what sources and operators do with batches
    split       which rows go to which channel
    protocol    hooks of the protocol, and logging
    partition   the rest of the state machine: frames, their numbers, credit, watermarks
    frame       frames to bytes and back
    encode      results as messages
    produce     messages to the producer, by its call
    commit      the rest of a transaction

Only CPU time of this thread counts: what librdkafka's own threads do, and brokers and networks, is not in it. Only one
of the two source partitions has input, so event time stands still, and no window ends. The load is that before the
first line.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, NamedTuple, cast
from unittest.mock import patch

import pyarrow as pa
from confluent_kafka import Consumer, Producer, TopicPartition

from benchmarks.arguments import at_least_one
from benchmarks.machine_load import load_of_others
from benchmarks.one_line_errors import one_line_errors
from benchmarks.testbed.in_process_broker import InProcessBroker
from benchmarks.testbed.throughput import OF_ANY_STATE
from experiments.errors import BadInput, EnvironmentFailure
from experiments.waiting import Deadline
from experiments.workloads.catalogue import NexmarkQuery, NexmarkSpec
from testbed.core.checkpoints import initial_line
from testbed.core.control import Go, Restore
from testbed.core.dataflow.layout import lay_out
from testbed.core.dataflow.partitioning import rows_by_channel
from testbed.core.effects import Grant, Send, Write
from testbed.core.frames import FrameReader, encode
from testbed.core.partition import sending
from testbed.core.partition.partition import Partition, PartitionLimits
from testbed.core.partition.snapshots import Snapshots
from testbed.operators import Delivery, Operator, Source
from testbed.protocols import Protocol, by_name
from testbed.queries import QUERIES, as_messages, dataflow, event_kinds
from testbed.runtime.connectors.batch_polls import BatchPoll
from testbed.runtime.connectors.kafka_clients import READING, WRITING
from testbed.runtime.connectors.topic_polls import JsonPoll, Place, Poll, Received
from testbed.runtime.connectors.topics import together
from workloads.inputs import records
from workloads.nexmark.batches import Batches
from workloads.nexmark.stream import CYCLE
from workloads.schedule import Schedule

STAGES = ("poll", "decode", "operator", "split", "protocol", "partition", "frame", "encode", "produce", "commit")
HOOKS = ("before_send", "on_message", "on_marker", "on_control")
INPUT, OUTPUT, EPOCH, PARALLELISM = "input", "output", 1, 2
A_POLL, LOOK_S, PATIENCE_S = 8192, 0.5, 20.0


class Clock:
    """CPU time of this thread by stage [s]; within a stage another one may begin, which then has the time."""

    def __init__(self) -> None:
        self.spent_s = defaultdict[str, float](float)
        self._stages, self._since_s = ["outside"], time.thread_time()

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Within, time is that of this stage."""
        self._turn()
        self._stages.append(name)
        try:
            yield
        finally:
            self._turn()
            self._stages.pop()

    def timed(self, name: str, act: Callable[..., Any]) -> Callable[..., Any]:
        """The same, in that stage."""

        @wraps(act)
        def within(*arguments: Any, **named: Any) -> Any:
            with self.stage(name):
                return act(*arguments, **named)

        return within

    def _turn(self) -> None:
        now_s = time.thread_time()
        self.spent_s[self._stages[-1]] += now_s - self._since_s
        self._since_s = now_s


class Ends:
    """The two topics, at the broker that librdkafka has for tests."""

    def __init__(self, clock: Clock) -> None:
        self._broker = InProcessBroker()
        self._reach = {**self._broker.reach.for_librdkafka(), "log_level": 0}
        self._clock = clock

    def fill(self, spec: NexmarkSpec, events: int, batch: int | None) -> None:
        """Put the first events into the one partition of the input, as JSON or as Arrow batches of `batch` events."""
        producer, schedule = Producer({**self._reach, **WRITING}), Schedule(10**9, 1000.0)
        values = records(spec, schedule)(0, events)
        if batch is not None:
            made = Batches(spec, schedule, batch)
            values = [made.messages(number)[0] for number in range(events // batch)]
        for position, value in enumerate(values):
            producer.produce(INPUT, value, partition=0, timestamp=schedule.due_ms(position))
        producer.flush()

    def polls(self, spec: NexmarkSpec, events: int, batch: int | None) -> Iterator[Poll]:
        """What was put there, poll by poll; raises `EnvironmentFailure` if not all of it comes."""
        consumer = Consumer({**self._reach, "group.id": "path", **READING, "auto.offset.reset": "earliest"})
        consumer.assign([TopicPartition(INPUT, 0, 0)])
        patience = Deadline(PATIENCE_S)
        place, at = Place(INPUT, 0, 1, event_kinds(spec, PARALLELISM)), 0
        while at < events:
            with self._clock.stage("poll"):
                found = consumer.consume(max(1, A_POLL // (batch or 1)), LOOK_S)
                poll: Poll | None = None
                if found:
                    messages = cast(list[Received], found)
                    poll = JsonPoll(place, at, messages) if batch is None else BatchPoll(place, at, messages, batch)
            if poll is not None:
                at = poll.stop
                yield poll
                patience = Deadline(PATIENCE_S)
            elif patience.passed:
                raise EnvironmentFailure(f"the test broker brought {at:,} of {events:,} events", "use fewer --events")
        consumer.close()

    def transaction(self, spec: NexmarkSpec, batches: list[pa.RecordBatch], batch_records: int | None) -> None:
        """Results to the output, exactly once, in the form of the input."""
        producer = Producer({**self._reach, **WRITING, "transactional.id": "path"})
        producer.init_transactions(PATIENCE_S)
        producer.begin_transaction()
        for batch in together(batches):
            with self._clock.stage("encode"):
                messages = list(as_messages(spec, batch, PARALLELISM, batch_records))
            with self._clock.stage("produce"):
                for key, value in messages:
                    producer.produce(OUTPUT, value, key, partition=0)
        with self._clock.stage("commit"):
            producer.commit_transaction(PATIENCE_S)


class Flow:
    """A dataflow in this thread, of whose input only partition 0 has anything; sinks keep what they are given."""

    def __init__(self, spec: NexmarkSpec, protocol: str, most: int, clock: Clock) -> None:
        self.written = list[pa.RecordBatch]()
        self._clock, self._layout = clock, lay_out(dataflow(spec, PARALLELISM, Delivery.PLAIN))
        schemas = [channel.schema for channel in self._layout.channels]
        self._reader, self._grants, hooks = FrameReader(schemas), Counter[int](), by_name(protocol)
        timed = {name: clock.timed("protocol", getattr(hooks, name)) for name in HOOKS}
        known = cast(type[Protocol], type(hooks.__name__, (hooks,), timed))
        line, limits = initial_line(self._layout), PartitionLimits(records_per_message=most)
        parts = len(self._layout.partitions)
        self._partitions = [Partition(each, parts, schemas, known, limits) for each in self._layout.partitions]
        self._awake = deque[Partition]()
        for partition, start in zip(self._partitions, line, strict=True):
            partition.restore(Restore(EPOCH, start, ()), {})
            partition.on_order(Go(EPOCH))
            self._time_operator(partition)
            partition.take_effects()

    def take_in(self, poll: Poll) -> int:
        """Let a poll go through all of it; returns how many events the query has read."""
        count = 0
        for source in (each for each in self._partitions if isinstance(each.layout.element, Source)):
            if source.layout.index == 0:
                with self._clock.stage("decode"):
                    element = cast(Source, source.layout.element)
                    batch = poll.events(source.layout.operator, element.output, poll.start, poll.stop)
                with self._clock.stage("partition"):
                    times_ns = poll.reached_ns(poll.start + 1), poll.reached_ns(poll.stop)
                    source.on_input(batch, poll.stop, times_ns=times_ns)
                    self._carry_out(source)
                    self._settle()
                count += batch.num_rows if batch is not None else 0
        return count

    def _time_operator(self, partition: Partition) -> None:
        operator = partition.processing.element
        if isinstance(operator, Operator):
            for name in ("process", "advance"):
                object.__setattr__(operator, name, self._clock.timed("operator", getattr(operator, name)))

    def _settle(self) -> None:
        while self._awake:
            partition = self._awake.popleft()
            while (channel := partition.next_channel()) is not None:
                partition.step(channel)
                self._carry_out(partition)
            grants, self._grants = self._grants, Counter()
            for number, messages in grants.items():
                sender = self._partitions[self._layout.channels[number].sender]
                sender.on_credit(Grant(number, EPOCH, messages))
                self._carry_out(sender)

    def _carry_out(self, partition: Partition) -> None:
        for effect in partition.take_effects():
            if isinstance(effect, Send):
                with self._clock.stage("frame"):
                    frames = self._reader.feed(encode(effect.frame))
                for frame in frames:
                    receiver = self._partitions[self._layout.channels[frame.channel].receiver]
                    receiver.on_frame(frame)
                    self._awake.append(receiver)
            elif isinstance(effect, Grant):
                self._grants[effect.channel] += effect.messages
            elif isinstance(effect, Write):
                self.written.append(effect.batch)


class Path(NamedTuple):
    """What one way of the records took: events that the query read, its results, and µs for an event by stage."""

    events: int
    results: int
    us: dict[str, float]


def measured(query: str, protocol: str, most: int, events: int, batch: int | None = None) -> Path:
    """Let the first events of a stream go all the way, twice: the first time takes longer.

    `batch`: events in one message of the input, and most results in one of the output, as Arrow batches; None: each is
    a message, as JSON. Raises `BadInput` unless the events fill their messages, and the query reads some of them.
    """
    if events % (batch or 1):
        raise BadInput("--events", events, f"a multiple of --batch, {batch:,}")
    return [_one_way(query, protocol, most, events, batch) for _ in range(2)][-1]


def _one_way(query: str, protocol: str, most: int, events: int, batch: int | None) -> Path:
    gc.collect()
    gc.freeze()  # a collection of all that was imported would be counted where it happens to come
    clock, spec = Clock(), NexmarkSpec(query=NexmarkQuery(query), window_s=1.0, slide_s=1.0)
    ends = Ends(clock)
    ends.fill(spec, events, batch)
    split, log = clock.timed("split", rows_by_channel), clock.timed("protocol", Snapshots.log)
    with patch.object(sending, "rows_by_channel", split), patch.object(Snapshots, "log", log):
        flow = Flow(spec, protocol, most, clock)
        read = sum(flow.take_in(poll) for poll in ends.polls(spec, events, batch))
    if not read:
        raise BadInput("--events", events, f"at least {CYCLE:,}: query {query} reads none of these")
    ends.transaction(spec, flow.written, batch)
    results = sum(batch.num_rows for batch in flow.written)
    return Path(read, results, {stage: clock.spent_s[stage] / read * 1e6 for stage in STAGES})


@one_line_errors()
def main() -> None:
    """Print a line for each query, number of records a message, and protocol."""
    given, load = _arguments(), load_of_others()
    print("query protocol               records  events results" + "".join(f"{each:>10}" for each in (*STAGES, "all")))
    for query, most, protocol in itertools.product(given.queries, given.records, given.protocols):
        events, results, us = measured(query, protocol, most, given.events, given.batch)
        figures = "".join(f"{us_each:10.2f}" for us_each in (*us.values(), sum(us.values())))
        print(f"{query:5} {protocol:22} {most:7} {events:7} {results:7}{figures}", flush=True)
    print(f"load {load:.0f}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", nargs="+", choices=[each.value for each in QUERIES], default=["q1", "q12"])
    parser.add_argument("--protocols", nargs="+", choices=OF_ANY_STATE, default=["none", "uncoordinated"])
    parser.add_argument("--records", nargs="+", type=at_least_one, default=[1, 1024], help="records a message")
    parser.add_argument(
        "--events", type=at_least_one, default=8192, help="of the input; the test broker holds some 20,000"
    )
    parser.add_argument(
        "--batch",
        type=at_least_one,
        help="events in one message of the input, and most results in one of the output: Arrow batches",
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
