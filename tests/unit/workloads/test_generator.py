"""The generator's schedule is changed while it sends; its feeds are recorded, in place of a broker."""

import json
import os

import pytest

from experiments.workloads.catalogue import NexmarkSpec
from infra.broker import Broker
from journal.reader import raw_entries
from journal.writer import Journal
from workloads.schedule import Schedule
from workloads.sending import feeds, generator
from workloads.sending.input_sender import InputSender
from workloads.sending.load_config import LoadConfig

START_NS = 1_795_173_799_675_000_000


class Sending(InputSender):
    """A feed that keeps what it would hand to the broker's client."""

    def __init__(self, broker, topic, source, schedule, keys=None):
        self.topic, self.sent, self.failed = topic, 0, 0
        self.records, self._producer, self._records = [], self, 1
        self._begin(source, schedule, keys)

    def __len__(self):
        """As many messages wait for the broker's answer."""
        return 0

    def _produce(self, text, key, partition, due_ms):
        self.records.append((text, partition, due_ms))

    def poll(self, _timeout):
        """Nothing is refused."""


@pytest.fixture
def bench(tmp_path, monkeypatch):
    """The generator at a moment that the test sets, its configuration and its journal."""
    monkeypatch.setattr(feeds, "InputSender", Sending)

    class Bench:
        path, journal = tmp_path / "generator.json", tmp_path / "generator.jsonl"

        def ask(self, schedule):
            scratch = tmp_path / "scratch"
            scratch.write_text(json.dumps(LoadConfig(Broker(""), NexmarkSpec(), schedule).to_json()))
            os.replace(scratch, self.path)

        def at(self, seconds):
            monkeypatch.setattr(generator.time, "time_ns", lambda: START_NS + round(seconds * 1e9))

    return Bench()


def turns(sender, times=4):
    """The loop of the program: another schedule is noticed in one turn and followed in the next."""
    for _ in range(times):
        sender.send()


def test_records_are_made_ahead_and_are_the_same(bench):
    """Sent by the tick, a second's records are made in a few goes."""
    bench.ask(Schedule(START_NS, 1000.0, 2))
    asked = []
    bench.at(1.0)
    together, one_by_one = (generator.Generator(bench.path, Journal(bench.journal)) for _ in range(2))
    together.send()
    (feed,) = one_by_one._feeds
    source = feed.source
    feed.source = lambda start, stop: asked.append((start, stop)) or source(start, stop)
    for tick in range(50):
        bench.at((tick + 1) / 50)
        one_by_one.send()
    assert feed.records == together._feeds[0].records
    assert asked == [(start, start + 200) for start in range(0, 1000, 200)]


def test_what_was_made_ahead_of_a_schedule_is_not_sent_under_another(bench):
    """Its records are dated by when they would have been due."""
    bench.ask(first := Schedule(START_NS, 1000.0, 2))
    sender = generator.Generator(bench.path, Journal(bench.journal))
    (feed,) = sender._feeds
    bench.at(0.1)
    sender.send()
    bench.ask(first.ending(START_NS + 10**8).then(START_NS + 10**9, 500.0))
    bench.at(1.1)
    turns(sender)
    assert feed.sent == 150
    assert [due_ms - START_NS // 10**6 for _, _, due_ms in feed.records[99:102]] == [99, 1000, 1002]
    dated = [json.loads(text)["date_time"] for text, _, _ in feed.records[99:102]]
    assert [at_ms - START_NS // 10**6 for at_ms in dated] == [99, 1000, 1002]


def test_another_rate_goes_on_with_the_next_record(bench):
    first = Schedule(START_NS, 100.0, 2)
    bench.ask(first)
    sender = generator.Generator(bench.path, Journal(bench.journal))
    (feed,) = sender._feeds
    bench.at(1.0)
    sender.send()
    assert feed.sent == 100
    ended = first.ending(START_NS + 2 * 10**9)
    bench.ask(ended)
    bench.at(3.0)
    turns(sender)
    assert feed.sent == 200, "nothing is due after the end"
    second = ended.then(START_NS + 5 * 10**9, 1000.0)
    bench.ask(second)
    bench.at(6.0)
    turns(sender)
    sender.report()
    assert feed.sent == 1200
    assert [partition for _, partition, _ in feed.records] == [p % 2 for p in range(1200)]
    due_ms = [at_ms - START_NS // 10**6 for *_, at_ms in feed.records]
    assert due_ms[199] == pytest.approx(1990, abs=1)
    assert due_ms[200:202] == [pytest.approx(5000, abs=1), pytest.approx(5001, abs=1)]
    dated = [json.loads(text)["date_time"] for text, *_ in feed.records]
    assert dated == [at_ms for *_, at_ms in feed.records], "events bear the times at which they were due"
    started, ending, going_on, sent = list(raw_entries(bench.journal))
    assert [entry["event"] for entry in (started, ending, going_on)] == ["started", "rescheduled", "rescheduled"]
    assert (going_on["rate"], going_on["end_ns"]) == (1000.0, None)
    assert (sent["due"], sent["sent"], sent["delivered"]) == (1200, 1200, 1200)


def test_a_late_generator_first_sends_what_the_ended_schedule_made_due(bench):
    first = Schedule(START_NS, 100.0, 2)
    bench.ask(first)
    sender = generator.Generator(bench.path, Journal(bench.journal))
    bench.ask(first.ending(START_NS + 10**9))
    bench.at(0.5)
    turns(sender)
    bench.ask(first.ending(START_NS + 10**9).then(START_NS + 4 * 10**9, 10.0))
    bench.at(5.0)
    turns(sender)
    records = sender._feeds[0].records
    assert len(records) == 110
    assert records[99][2] - START_NS // 10**6 == pytest.approx(990, abs=1)
    assert records[100][2] - START_NS // 10**6 == pytest.approx(4000, abs=1)


def test_what_is_due_goes_out_in_parts_so_that_an_end_is_seen_in_time(bench, monkeypatch):
    """Far behind, the first part takes until after the end that was asked for meanwhile: no feed sends beyond it."""
    monkeypatch.setattr(generator, "MOST_AT_ONCE", 1000)
    first = Schedule(START_NS, 1000.0, 2)
    bench.ask(first)
    sender = generator.Generator(bench.path, Journal(bench.journal))
    bench.at(3.0)
    assert sender.send(), "more is due"
    (feed,) = sender._feeds
    assert feed.sent == 1000
    bench.ask(first.ending(START_NS + 4 * 10**9))
    bench.at(9.0)
    turns(sender, times=20)
    assert feed.sent == 4000
    assert not sender.send()
