"""Both ends of the testbed at a real broker: a sink that is overtaken, and a broker that goes away for a while."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from experiments.errors import EnvironmentFailure
from experiments.fault_kinds import FaultKind
from experiments.workloads.catalogue import NexmarkQuery, NexmarkSpec
from infra.cluster import Handle
from infra.local import LocalDriver
from infra.services import kafka
from testbed.operators import Delivery, Sink, Source
from testbed.queries import as_messages, from_batch
from testbed.runtime.connectors import answers, topics
from testbed.runtime.connectors.sinks import Superseded
from testbed.runtime.connectors.sources import Feed, stream_of
from testbed.runtime.connectors.topics import KafkaResults
from testbed.runtime.job import InputKind, Job, JobInput, OutputKind, OutputSpec
from testbed.runtime.slot.inputs import feeds
from tests.integration.testbed.exact_results import messages_out
from tests.unit.marked_processes import wait_for
from workloads.inputs import records
from workloads.nexmark.stream import events_of
from workloads.schedule import Schedule

pytestmark = pytest.mark.extended

ROWS, EVENTS, SCHEDULE = 50, 2000, Schedule(0, 10_000.0)
READ_LIMIT_S = 60.0
BEGIN, WRITE, OFFSETS, COMMIT = "begin_transaction", "produce", "send_offsets_to_transaction", "commit_transaction"
HEARD_S = 30.0
LEFT, OPENINGS = 8, 5  # sinks that were left; so many times the one that stays is to call `init_transactions`


class Interrupted:
    """A producer to which something happens once, before a step, when the broker has all that it was given."""

    def __init__(self, producer: Producer, step: str, happening: Callable[[], Any]) -> None:
        self._producer, self._step, self._happening = producer, step, happening

    def __getattr__(self, name: str) -> Any:
        if name == self._step:
            self._step = ""
            self._producer.flush()
            self._happening()
        return getattr(self._producer, name)


def interrupt(sink: KafkaResults, step: str, happening: Callable[[], Any]) -> None:
    sink._producer = Interrupted(sink._producer, step, happening)


def job_at(broker: Handle, name: str, parallelism: int) -> Job:
    """From and to topics of its own, which are there."""
    names = {f"input-{name}": parallelism, f"output-{name}": parallelism}
    kafka.create_topics(broker.kafka, names)
    return Job(
        run_id=name,
        workload=NexmarkSpec(query=NexmarkQuery.Q1),
        protocol="coordinated",
        slots=1,
        parallelism=parallelism,
        input=JobInput(InputKind.KAFKA, None, broker=broker.kafka, topic=f"input-{name}"),
        output=OutputSpec(OutputKind.KAFKA, Delivery.EXACTLY_ONCE, broker=broker.kafka, topic=f"output-{name}"),
        store=str(Path(broker.root) / "store"),
    )


def sinks(job: Job) -> Iterator[KafkaResults]:
    return (KafkaResults(job, each) for each in job.layout().partitions if isinstance(each.element, Sink))


def output(number: int, writer: str) -> pa.RecordBatch:
    """What a sink publishes for a checkpoint: no two of different number or writer have a row in common."""
    given = {name: [number] * ROWS for name in ("at_ns", "auction", "bidder", "euros_milli")}
    return pa.RecordBatch.from_pydict({"position": range(ROWS), **given, "extra": [writer] * ROWS})


def values(job: Job, *batches: pa.RecordBatch) -> Counter[bytes]:
    return Counter(value.encode() for each in batches for _, value in as_messages(job.workload, each, job.parallelism))


@pytest.mark.parametrize("step", [BEGIN, WRITE, OFFSETS, COMMIT])
def test_a_sink_that_is_overtaken_amid_a_transaction_gets_nothing_out_any_more(broker: Handle, step: str) -> None:
    job = job_at(broker, f"overtaken-{step}", parallelism=1)
    (old,), (new,) = sinks(job), sinks(job)
    old.publish({1: [output(1, "old")]})
    interrupt(old, step, lambda: new.publish({2: [output(2, "new")]}))
    for number in (2, 3):  # as they were queued in its slot: none of them may shut out the new one
        with pytest.raises(Superseded):
            old.publish({number: [output(number, "old")]})
    new.publish({2: [output(2, "again")]})
    new.publish({3: [output(3, "new")]})
    out = values(job, output(1, "old"), output(2, "new"), output(3, "new"))
    assert messages_out(job) == out
    cut_off = values(job, output(2, "old")) if step in (OFFSETS, COMMIT) else Counter()
    assert messages_out(job, "read_uncommitted") == out + cut_off, "the broker had what the old one wrote"


def test_a_sink_of_batches_publishes_the_same_results_in_fewer_messages(broker: Handle) -> None:
    as_json = job_at(broker, "batches", parallelism=1)
    job = replace(as_json, output=replace(as_json.output, batch_records=ROWS // 2 + 1))
    (old,), (new,) = sinks(job), sinks(job)
    assert old.publish({1: [output(1, "old")], 2: [output(2, "old")]}) == 2
    assert new.publish({2: [output(2, "again")], 3: [output(3, "new")]}) == 3
    found = [from_batch(each) for each in messages_out(job).elements()]
    assert values(job, *found) == values(job, output(1, "old"), output(2, "old"), output(3, "new"))
    assert sorted(each.num_rows for each in found) == [24, 24, 24, 26, 26, 26]


@pytest.mark.parametrize("sent", [0, 1])
def test_a_sink_that_hears_amid_its_records_that_it_was_overtaken_leaves_the_new_one_alone(
    broker: Handle, sent: int
) -> None:
    """Then librdkafka says of the next record that the transaction failed, but not of what."""
    job = job_at(broker, f"heard-{sent}", parallelism=1)
    (old,), (new,) = sinks(job), sinks(job)
    old.publish({1: [output(1, "old")]})
    producer = old._producer

    def send() -> None:
        producer.produce(job.output.topic, b"never committed", partition=0)

    def keep_sending(deadline_s: float) -> None:
        while time.monotonic() < deadline_s:
            send()
            time.sleep(0.01)

    def hear() -> None:
        for _ in range(sent):
            send()
        producer.flush()
        new.publish({2: [output(2, "new")]})
        with pytest.raises(KafkaException) as heard:
            keep_sending(time.monotonic() + HEARD_S)
        assert heard.value.args[0].code() in (KafkaError._FATAL, KafkaError._STATE)

    interrupt(old, WRITE, hear)
    with pytest.raises(Superseded):
        old.publish({2: [output(2, "old")]})
    new.publish({3: [output(3, "new")]})
    assert messages_out(job) == values(job, output(1, "old"), output(2, "new"), output(3, "new"))


def test_a_transaction_that_was_too_long_for_the_broker_ends_the_sink_with_that_reason(
    broker: Handle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker says of it what it says when another slot has the sink: then it would be tried for ever."""
    monkeypatch.setattr(topics, "LONGEST_TRANSACTION_S", 10.0)
    (sink,) = sinks(job := job_at(broker, "too-long", parallelism=1))
    sink.publish({1: [output(1, "sink")]})
    interrupt(sink, OFFSETS, lambda: wait_for_the_end_of_a_transaction(job))
    with pytest.raises(EnvironmentFailure, match="output-too-long: a transaction took longer than 10 s"):
        sink.publish({2: [output(2, "sink")]})
    assert messages_out(job) == values(job, output(1, "sink"))


def wait_for_the_end_of_a_transaction(job: Job) -> None:
    """Until what is decided reaches to the end of the output."""
    place, ends = {**job.output.broker.for_librdkafka(), "group.id": "ends"}, list[int]()
    consumers = [Consumer({**place, "isolation.level": f"read_{which}"}) for which in ("committed", "uncommitted")]
    deadline_s = time.monotonic() + READ_LIMIT_S
    while len(set(ends)) != 1:
        assert time.monotonic() < deadline_s
        time.sleep(0.1)
        found = (each.get_watermark_offsets(TopicPartition(job.output.topic, 0), READ_LIMIT_S) for each in consumers)
        ends = [end for _, end in found]
    for each in consumers:
        each.close()


def test_what_waits_behind_a_failure_is_not_taken_for_all_before_it(broker: Handle) -> None:
    """A record that no broker takes; what is queued behind is of a sink that has ended."""
    job = job_at(broker, "too-large", parallelism=1)
    (old,), (new,) = sinks(job), sinks(job)
    old.publish({1: [output(1, "old")]})
    with pytest.raises(EnvironmentFailure, match=r"output-too-large: .*Message size too large"):
        old.publish({2: [output(2, "old" * 2**20).slice(0, 1)]})
    with pytest.raises(EnvironmentFailure):
        old.publish({3: [output(3, "old")]})
    for number in (2, 3):
        new.publish({number: [output(number, "new")]})
    assert messages_out(job) == values(job, output(1, "old"), output(2, "new"), output(3, "new"))


def test_a_plain_sink_writes_at_once_and_says_what_no_broker_takes(broker: Handle) -> None:
    job = replace(job := job_at(broker, "plain", parallelism=1), output=replace(job.output, delivery=Delivery.PLAIN))
    (sink,) = sinks(job)
    sink.write([output(1, "sink"), output(2, "sink")])
    sink.write([output(2, "sink")])
    assert messages_out(job) == values(job, output(1, "sink"), output(2, "sink"), output(2, "sink"))
    with pytest.raises(EnvironmentFailure, match=r"output-plain: .*Message size too large"):
        sink.write([output(3, "sink" * 2**20).slice(0, 1)])


def test_a_sink_that_was_abandoned_shuts_out_nobody(broker: Handle) -> None:
    job = job_at(broker, "abandoned", parallelism=1)
    (old,), (new,) = sinks(job), sinks(job)
    new.publish({1: [output(1, "new")]})
    old.abandon()
    with pytest.raises(Superseded):
        old.publish({2: [output(2, "old")]})
    new.publish({2: [output(2, "new")]})
    assert messages_out(job) == values(job, output(1, "new"), output(2, "new"))


def test_what_the_one_before_got_out_is_not_published_again(broker: Handle) -> None:
    job = job_at(broker, "finished", parallelism=1)
    (old,), (new,) = sinks(job), sinks(job)
    old.publish({1: [output(1, "old")]})
    old.publish({2: [output(2, "old")]})
    for number in (1, 2, 3):
        new.publish({number: [output(number, "new")]})
    assert messages_out(job) == values(job, output(1, "old"), output(2, "old"), output(3, "new"))


def test_while_the_broker_is_away_sinks_and_a_reader_wait_and_then_all_is_out_once(
    driver: LocalDriver, broker: Handle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each sink is at another step of its transaction when the broker dies, and goes on at once."""
    monkeypatch.setattr(topics, "ANSWER_S", 3.0)  # librdkafka may never answer: what is waited for is the next attempt
    steps = (WRITE, OFFSETS, COMMIT)
    job = job_at(broker, "away", parallelism=len(steps))
    produce(job, 0, EVENTS)
    feed = next(map(feeds(job), (each for each in job.layout().partitions if isinstance(each.element, Source))))
    before = read(feed, 0, EVENTS)

    def outage() -> None:
        assert driver.prepare(broker, "gateway", FaultKind.BROKER_KILL).fire().holds
        driver.heal(broker, "gateway", FaultKind.BROKER_KILL)

    together = threading.Barrier(len(steps), outage)

    def publish(sink: KafkaResults, step: str) -> None:
        sink.publish({1: [output(1, step)]})
        interrupt(sink, step, together.wait)
        for number in (2, 3):
            sink.publish({number: [output(number, step)]})

    with ThreadPoolExecutor(len(steps)) as pool:
        list(pool.map(publish, sinks(job), steps))
    assert messages_out(job) == values(job, *(output(number, step) for number in (1, 2, 3) for step in steps))
    produce(job, EVENTS, 2 * EVENTS)
    assert before + read(feed, EVENTS, 2 * EVENTS) == bids(job, 2 * EVENTS)
    feed.close()


class Noted(Producer):
    """A producer of a sink: which there are still, and how often one of them was opened."""

    made: ClassVar[list[weakref.ref[Producer]]] = []
    openings: ClassVar[int] = 0

    def __init__(self, settings: dict[str, Any]) -> None:
        super().__init__(settings)
        Noted.made.append(weakref.ref(self))

    def init_transactions(self, limit_s: float) -> None:
        Noted.openings += 1
        super().init_transactions(limit_s)

    @classmethod
    def left(cls) -> list[Producer]:
        """Those that are not freed, which go on with what they have begun."""
        return [producer for made in cls.made if (producer := made()) is not None]


def test_sinks_that_were_left_while_the_broker_was_away_do_not_fence_the_one_that_waits_for_it(
    driver: LocalDriver, broker: Handle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sink that waits calls `init_transactions` again and again, which goes on in the background all the time.

    What lives until the next search for garbage would live to the end: there is none.
    """
    monkeypatch.setattr(topics, "OPENING_S", 0.3)
    monkeypatch.setattr(topics, "REOPEN_S", 0.05)
    monkeypatch.setattr(topics, "Producer", Noted)
    monkeypatch.setattr(answers, "GRACE_S", READ_LIMIT_S)  # a call that is slow to return is not taken for a lost one
    job = job_at(broker, "left", parallelism=1)
    (before,), (new,) = sinks(job), sinks(job)
    before.publish({1: [output(1, "before")]})
    before.close()
    assert driver.prepare(broker, "gateway", FaultKind.BROKER_KILL).fire().holds
    gc.disable()
    try:
        with ThreadPoolExecutor(1) as pool:
            for _ in range(LEFT):
                leave_while_it_opens(next(sinks(job)), pool)
            assert Noted.left() == [], "it would fence the new one when the broker is back"
            published, begun = pool.submit(new.publish, {2: [output(2, "new")]}), Noted.openings
            wait_for(lambda: Noted.openings >= begun + OPENINGS, READ_LIMIT_S)
            assert len(Noted.left()) == 1, "it calls the same one again"
            driver.heal(broker, "gateway", FaultKind.BROKER_KILL)
            assert published.result(READ_LIMIT_S) == 2
            assert len(Noted.left()) == 1
            assert new.publish({3: [output(3, "new")]}) == 3
    finally:
        gc.enable()
    assert messages_out(job) == values(job, output(1, "before"), output(2, "new"), output(3, "new"))


def leave_while_it_opens(sink: KafkaResults, pool: ThreadPoolExecutor) -> None:
    """As a slot does that begins another epoch: the sink ends soon, and so does its producer."""
    begun, publishing = Noted.openings, pool.submit(sink.publish, {2: [output(2, "left")]})
    wait_for(lambda: Noted.openings > begun, READ_LIMIT_S)
    sink.abandon()
    with pytest.raises(Superseded):
        publishing.result(READ_LIMIT_S)
    sink.close()


def produce(job: Job, start: int, stop: int) -> None:
    """Events into the first partition of the input, where their positions are their offsets."""
    producer = Producer({**job.input.broker.for_librdkafka(), "enable.idempotence": True})
    for value in records(job.workload, SCHEDULE)(start, stop):
        producer.produce(job.input.topic, value, partition=0)
    assert producer.flush(READ_LIMIT_S) == 0


def read(feed: Feed, position: int, until: int) -> list[tuple[int, int]]:
    """Position in the input and price of each bid between two offsets, once all are there."""
    found, deadline_s = list[tuple[int, int]](), time.monotonic() + READ_LIMIT_S
    while position < until:
        assert time.monotonic() < deadline_s
        given = feed.read(position, until)
        if given is None:
            time.sleep(0.01)
            continue
        batch, position, *_ = given
        if batch is not None:
            found += zip(batch["position"].to_pylist(), batch["price"].to_pylist(), strict=True)
    return found


def bids(job: Job, stop: int) -> list[tuple[int, int]]:
    made = events_of(stream_of(job.workload, SCHEDULE), "bids", 0, stop)
    places = (offset * job.parallelism for offset in made["position"].to_pylist())
    return list(zip(places, made["price"].to_pylist(), strict=True))
