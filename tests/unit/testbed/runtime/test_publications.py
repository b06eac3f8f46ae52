"""Sinks on their way out: what gathers behind a publication goes together, each once, and for what plain ones wait."""

import weakref
from dataclasses import replace
from itertools import chain

import pyarrow as pa
import pytest
from confluent_kafka import KafkaError

from experiments.errors import EnvironmentFailure
from infra.broker import Broker
from testbed.operators import Delivery
from testbed.runtime.connectors import topics
from testbed.runtime.connectors.sinks import Files, Outlet, Superseded, published
from testbed.runtime.connectors.topics import KafkaResults
from testbed.runtime.job import OutputKind, OutputSpec
from testbed.runtime.slot import outputs
from testbed.runtime.slot.outputs import SinkOutput
from tests.unit.testbed.runtime.backgrounds import Later
from tests.unit.testbed.small_job import JOB, rows
from tests.unit.testbed.syncs import note_syncs


class Noted(Outlet):
    """Keeps what it is given to publish, by call; `failure` is raised instead."""

    failure = None

    def __init__(self):
        self.calls = []

    def publish(self, given):
        if self.failure is not None:
            raise self.failure
        self.calls.append({number: [each.to_pylist() for each in batches] for number, batches in given.items()})
        return max(given)

    def write(self, batches):
        if self.failure is not None:
            raise self.failure


@pytest.fixture
def outlets(monkeypatch):
    """The outlets that were opened, in order."""
    opened = []
    monkeypatch.setattr(outputs, "outlet_of", lambda job, layout: opened.append(Noted()) or opened[-1])
    return opened


def sink_of(protocol, background, published_numbers=None):
    told = [] if published_numbers is None else published_numbers
    delivery = Delivery.PLAIN if protocol == "none" else Delivery.EXACTLY_ONCE
    job = replace(JOB, protocol=protocol, output=replace(JOB.output, delivery=delivery))
    return SinkOutput(job, job.layout().partitions[-1], background, told.append, lambda: None)


def numbers(outlet):
    return [list(call) for call in outlet.calls]


@pytest.mark.parametrize("left", [True, False])
def test_only_the_outlet_that_is_in_use_may_fail_to_write(outlets, left):
    """A recovery leaves an outlet amid its writing, which the sink need not survive."""
    background = Later()
    sink = sink_of("none", background)
    sink.write(rows(1))
    outlets[0].failure = Superseded("left")
    if left:
        sink.reopen()
        background.go_on()
        assert sink.empty
    else:
        with pytest.raises(Superseded):
            background.go_on()


def test_what_gathers_behind_a_publication_goes_together_with_its_numbers(outlets):
    background, told = Later(), []
    sink = sink_of("batch-aligned", background, told)
    for number in (0, 4, 5, 9):
        sink.publish(number, [rows(number)] if number else [])
    assert not sink.empty
    for _ in range(2):
        background.go_on()
    assert outlets[0].calls == [{0: []}, {4: [[{"number": 4}]], 5: [[{"number": 5}]], 9: [[{"number": 9}]]}]
    assert (told, sink.empty) == ([0, 9], True)


def test_what_is_published_amid_the_answer_is_neither_lost_nor_doubled(outlets):
    background = Later()
    sink = sink_of("batch-aligned", background)
    sink._on_published = lambda number: sink.publish(number + 10, []) if number < 10 else None
    for number in (1, 2):
        sink.publish(number, [])
    for _ in range(4):
        background.go_on()
    assert sorted(chain.from_iterable(numbers(outlets[0]))) == [1, 2, 11, 12]
    assert sink.empty


def test_what_gathered_before_an_epoch_is_not_published_in_it(outlets):
    background = Later()
    sink = sink_of("batch-aligned", background)
    for number in (1, 2):
        sink.publish(number, [])
    sink.reopen()
    sink.publish(7, [])
    for _ in range(3):
        background.go_on()
    assert [numbers(each) for each in outlets] == [[[1]], [[7]]]


def test_an_outlet_that_was_left_may_fail_and_the_next_goes_on(outlets):
    background = Later()
    sink = sink_of("batch-aligned", background)
    sink.publish(1, [])
    outlets[0].failure = Superseded("left")
    sink.reopen()
    sink.publish(2, [])
    for _ in range(3):
        background.go_on()
    assert numbers(outlets[1]) == [[2]]


def test_a_publication_that_fails_ends_the_slot(outlets):
    background = Later()
    sink = sink_of("batch-aligned", background)
    sink.publish(1, [])
    outlets[0].failure = Superseded("overtaken")
    with pytest.raises(Superseded):
        background.go_on()


LEFT = 3  # in the last publication of a backlog
BACKLOG = range(1, 2 * outputs.MOST_TOGETHER + LEFT + 1)


def publish_backlog(sink):
    """As a copy that is promoted: it asks what is out, and has what it withheld ready before it gets the answer."""
    sink.publish(0, [])
    for number in BACKLOG:
        sink.publish(number, [rows(number)])


def test_a_backlog_is_published_in_order_by_as_many_numbers_as_a_publication_may_have(outlets):
    background, told, most = Later(), [], outputs.MOST_TOGETHER
    sink = sink_of("batch-aligned", background, told)
    publish_backlog(sink)
    for _ in range(4):
        assert not sink.empty
        background.go_on()
    assert numbers(outlets[0]) == [[0], [*BACKLOG[:most]], [*BACKLOG[most : 2 * most]], [*BACKLOG[-LEFT:]]]
    assert all(out == {n: [[{"number": n}]] for n in out} for out in outlets[0].calls[1:])
    assert (told, sink.empty) == ([0, most, 2 * most, BACKLOG[-1]], True)


class Breaking(Files):
    """Fails when `fails_at` is among what it is to publish."""

    fails_at = None

    def publish(self, given):
        if self.fails_at in given:
            raise Superseded("broken")
        return super().publish(given)


@pytest.fixture
def shared_folder(tmp_path, monkeypatch):
    """Every outlet writes the files of one sink there."""
    monkeypatch.setattr(outputs, "outlet_of", lambda *_: Breaking(tmp_path))
    return tmp_path


def files(folder):
    return [each.to_pylist() for each in published(folder)]


def whole(several):
    return [[{"number": number}] for number in several]


def test_a_backlog_whose_second_publication_fails_comes_again_and_each_number_is_out_once(shared_folder):
    background, told = Later(), []
    first = sink_of("batch-aligned", background, told)
    first._outlet.fails_at = BACKLOG[-1 - LEFT]
    publish_backlog(first)
    for _ in range(2):
        background.go_on()
    with pytest.raises(Superseded):
        background.go_on()
    assert files(shared_folder) == whole(BACKLOG[: outputs.MOST_TOGETHER])
    successor = sink_of("batch-aligned", background, told)
    publish_backlog(successor)
    for _ in range(4):
        background.go_on()
    assert (files(shared_folder), successor.empty) == (whole(BACKLOG), True)


def test_a_backlog_that_another_epoch_interrupts_comes_again_and_each_number_is_out_once(shared_folder):
    background = Later()
    sink = sink_of("batch-aligned", background)
    publish_backlog(sink)
    for _ in range(2):
        background.go_on()
    sink.reopen()
    assert files(shared_folder) == whole(BACKLOG[: outputs.MOST_TOGETHER])
    publish_backlog(sink)
    for _ in range(5):
        background.go_on()
    assert (files(shared_folder), sink.empty) == (whole(BACKLOG), True)


@pytest.mark.parametrize(("protocol", "most"), [("coordinated", 2), ("batch-aligned", 16)])
def test_a_sink_takes_no_more_than_its_bound(outlets, protocol, most):
    background = Later()
    sink = sink_of(protocol, background)
    full = [(sink.publish(number, []), sink.full)[1] for number in range(1, most + 1)]
    assert full == [False] * (most - 1) + [True]
    background.go_on()
    background.go_on()
    assert (sink.full, sink.empty) == (False, True)


def test_records_become_messages_together_whatever_batches_they_come_in(monkeypatch):
    monkeypatch.setattr(topics, "MOST_TOGETHER", 5)
    given = [rows(*range(start, start + size)) for start, size in ((0, 1), (1, 1), (2, 4), (6, 9), (15, 1))]
    found = [each["number"].to_pylist() for each in topics.together(given)]
    assert found == [list(range(6)), list(range(6, 15)), [15]]
    assert not list(topics.together([]))


def test_files_are_those_of_their_numbers_whatever_goes_together(tmp_path):
    Files(tmp_path).publish({3: [rows(3)], 4: [], 5: [rows(5)]})
    again = Files(tmp_path)
    assert again.publish({0: []}) == 5
    assert again.publish({4: [], 5: [rows(50)], 6: [rows(6)]}) == 6
    assert [each.to_pylist() for each in published(tmp_path)] == [[{"number": n}] for n in (3, 5, 6)]


def test_a_sink_to_files_is_opened_without_the_disk_which_may_be_slow(tmp_path):
    """The thread of the slot opens it: if that waited, the slot would be silent, and given up."""
    files = Files(tmp_path / "out.0")
    assert not list(tmp_path.iterdir())
    Files(tmp_path / "out.0").publish({3: [rows(3)]})
    assert files.publish({0: []}) == 3
    other = Files(tmp_path / "out.1")
    other.write([rows(1)])
    assert len(published(tmp_path)) == 2


def test_files_have_their_names_for_good_before_they_count_as_published(tmp_path, monkeypatch):
    synced, folder = note_syncs(monkeypatch), tmp_path / "output" / "out.0"
    files = Files(folder)
    files.publish({3: [rows(3)], 5: [rows(5)]})
    assert (synced[tmp_path], synced[folder.parent]) == ({"output"}, {"out.0"}), "the folders that were made"
    assert synced.pop(folder) == {"000000003.arrow", "000000005.arrow"}
    Files(folder).publish({0: []})
    assert synced.pop(folder) == {"000000003.arrow", "000000005.arrow"}, "whoever wrote them may have been killed"
    files.write([rows(1)])
    assert len(synced[folder]) == 3


class Transactions:
    """In place of a producer: what was committed, message by message, with the number that the group stands at.

    on_flush   called for each flush; returns how many messages the broker still lacks
    """

    def __init__(self, on_flush=lambda: 0):
        self.committed, self._open, self.number = [], [], 0
        self._on_flush = on_flush

    def flush(self, limit_s=None):
        return self._on_flush()

    def begin_transaction(self):
        self._open = []

    def produce(self, topic, value, key, partition):
        self._open.append(key)

    def send_offsets_to_transaction(self, places, group, limit_s):
        self._number = places[0].offset

    def commit_transaction(self, limit_s):
        self.committed.append(self._open)
        self.number = self._number


def bid(number):
    given = {name: [number] for name in ("position", "at_ns", "auction", "bidder", "euros_milli")}
    return pa.RecordBatch.from_pydict({**given, "extra": ["x"]})


def sink_with(producer):
    job = replace(JOB, output=OutputSpec(OutputKind.KAFKA, Delivery.EXACTLY_ONCE))
    sink = KafkaResults(job, job.layout().partitions[-1])
    sink._producer, sink._group, sink._out = producer, None, 2
    return sink


def test_a_transaction_waits_for_a_slow_link_as_long_as_that_takes():
    lacking = [3, 2, 1, 0]
    producer = Transactions(lambda: lacking.pop(0))
    assert sink_with(producer).publish({3: [bid(3)]}) == 3
    assert (lacking, len(producer.committed)) == ([], 1)


def test_a_transaction_does_not_wait_for_a_broker_that_takes_nothing():
    """The commit that follows fails then, and the sink reconnects."""
    lacking = [3, 2, 2]
    assert sink_with(Transactions(lambda: lacking.pop(0))).publish({3: [bid(3)]}) == 3
    assert lacking == []


class Full(Transactions):
    """A producer whose queue is full, and stays so."""

    aborted = False

    def produce(self, topic, value, key, partition):
        raise BufferError("the queue is full")

    def poll(self, limit_s):
        return 0

    def abort_transaction(self, limit_s):
        self.aborted = True


def test_a_transaction_does_not_wait_for_room_where_the_broker_takes_nothing(monkeypatch):
    """Messages in the queue last for five minutes, and the sink is to reconnect before."""
    monkeypatch.setattr(topics, "ANSWER_S", 0.05)
    monkeypatch.setattr(topics, "REOPEN_S", 0.0)
    full, other = Full(), Transactions()
    sink = sink_with(full)
    monkeypatch.setattr(sink, "_open", lambda: other)
    assert sink.publish({3: [bid(3)]}) == 3
    assert full.aborted
    assert (full.committed, len(other.committed)) == ([], 1)


def test_an_outlet_that_is_abandoned_amid_a_transaction_commits_nothing():
    producer = Transactions(lambda: sink.abandon() or 1)  # less than before: it would wait on
    sink = sink_with(producer)
    with pytest.raises(Superseded):
        sink.publish({3: [bid(3)]})
    assert producer.committed == []


def test_a_plain_sink_that_is_abandoned_waits_for_its_broker_no_longer():
    """The sinks of a slot share the thread that waits."""
    lacking = [2, 1]
    sink = sink_with(Transactions(lambda: sink.abandon() or lacking.pop(0)))
    with pytest.raises(Superseded):
        sink.write([bid(3)])
    assert lacking == [1]


def test_a_plain_sink_says_what_the_broker_did_not_take():
    sink = sink_with(Transactions(lambda: sink._on_refused(KafkaError(KafkaError._MSG_TIMED_OUT), None) or 0))
    with pytest.raises(EnvironmentFailure, match=r"the topic output: .*timed out"):
        sink.write([bid(3)])


def test_a_plain_sink_does_not_wait_for_room_where_the_broker_takes_nothing(monkeypatch):
    monkeypatch.setattr(topics, "PATIENCE_S", 0.05)
    with pytest.raises(EnvironmentFailure, match=r"no message was taken for 0\.05 s"):
        sink_with(Full()).write([bid(3)])


def plain_sink():
    job = replace(JOB, output=OutputSpec(OutputKind.KAFKA, Delivery.PLAIN, broker=Broker("127.0.0.1:1")))
    return KafkaResults(job, job.layout().partitions[-1])


def test_what_a_plain_sink_writes_waits_for_the_broker_as_long_as_a_publication(monkeypatch):
    given = {}
    monkeypatch.setattr(topics, "Producer", lambda settings: given.update(settings) or Transactions())
    plain_sink().write([])
    assert given["message.timeout.ms"] == topics.PATIENCE_S * 1000


def test_an_outlet_that_is_closed_lets_its_producer_go():
    """The producer calls the outlet back, so each would keep the other, with threads and a connection."""
    sink = plain_sink()
    sink.write([])
    sink.close()
    gone = weakref.ref(sink)
    del sink
    assert gone() is None


def test_of_several_batches_a_transaction_has_those_that_are_not_out():
    producer = Transactions()
    sink = sink_with(producer)
    assert sink.publish({0: ()}) == 2
    assert sink.publish({1: [bid(1)], 2: [bid(2)], 3: [bid(3)], 6: [bid(6)]}) == 6
    assert sink.publish({3: [bid(3)], 6: [bid(6)]}) == 6
    assert (producer.committed, producer.number) == ([["0|0:1", "0|0:2"]], 6)
