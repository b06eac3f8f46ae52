"""The generator with Arrow batches: what it hands to the broker's client is recorded, at moments that the test sets."""

import json
import os

import pytest

from experiments.workloads.catalogue import NexmarkSpec
from infra.broker import Broker
from journal.reader import raw_entries
from journal.writer import Journal
from workloads.nexmark.batches import as_json, read
from workloads.schedule import Schedule
from workloads.sending import generator, producing
from workloads.sending.load_config import LoadConfig

START_NS, PARTITIONS, RECORDS = 1_795_173_799_675_000_000, 2, 30
LENGTH = PARTITIONS * RECORDS
FIRST = Schedule(START_NS, 100.0, PARTITIONS)


class Client:
    """The broker's client; takes every message but those of the partitions in `refused`."""

    def __init__(self, _settings):
        self.messages, self.refused = [], set()

    def produce(self, topic, value, key, *, partition, timestamp, on_delivery):
        assert key is None
        self.messages.append((topic, partition, timestamp, value))
        if partition in self.refused:
            on_delivery("refused", None)

    def __len__(self):
        """As many messages wait for an answer."""
        return 0

    def poll(self, _timeout):
        """All is answered at once."""


class Bench:
    """The generator, its configuration, its journal and its clock."""

    def __init__(self, folder, patch):
        self.path, self.journal, self._patch = folder / "generator.json", folder / "generator.jsonl", patch
        self.ask(FIRST)
        self.generator = generator.Generator(self.path, Journal(self.journal))
        (self.feed,) = self.generator._feeds

    @property
    def client(self):
        return self.feed._producer

    def ask(self, schedule):
        scratch = self.path.with_name("scratch")
        config = LoadConfig(Broker(""), NexmarkSpec(), schedule, RECORDS)
        scratch.write_text(json.dumps(config.to_json()))
        os.replace(scratch, self.path)

    def at(self, seconds, turns=1):
        """Whether more is to be sent after a number of turns of the program's loop."""
        self._patch.setattr(generator.time, "time_ns", lambda: START_NS + round(seconds * 1e9))
        return [self.generator.send() for _ in range(turns)][-1]

    def due_s(self):
        """When the events that were sent were due, in the order of their positions [s after the start]."""
        found = {}
        for number, (_, partition, _, value) in enumerate(self.client.messages):
            first = number // PARTITIONS * RECORDS
            offsets, due_ms, _ = as_json(read(value, first, first + RECORDS))
            found |= dict(zip(offsets * PARTITIONS + partition, due_ms / 1000 - START_NS / 1e9, strict=True))
        assert sorted(found) == list(range(len(found)))
        return [found[position] for position in sorted(found)]


@pytest.fixture
def bench(tmp_path, monkeypatch):
    monkeypatch.setattr(producing, "Producer", Client)
    return Bench(tmp_path, monkeypatch)


def test_a_batch_goes_out_once_all_its_events_are_due(bench):
    assert not bench.at(0.585)
    assert bench.client.messages == []
    assert not bench.at(0.595)
    assert [place for *place, _, _ in bench.client.messages] == [["input", 0], ["input", 1]]
    assert not bench.at(1.5), "what does not fill a batch is no reason to go on without a pause"
    assert (bench.feed.sent, len(bench.client.messages)) == (2 * LENGTH, 4)
    assert [round(stamp - START_NS / 1e6) for *_, stamp, _ in bench.client.messages] == [590, 590, 1190, 1190]
    assert bench.due_s() == pytest.approx([position / 100 for position in range(2 * LENGTH)], abs=0.001)


def test_counts_are_of_records(bench):
    bench.client.refused = {1}
    bench.at(1.9)
    bench.generator.report()
    *_, sent = raw_entries(bench.journal)
    assert (sent["due"], sent["sent"]) == (190, 3 * LENGTH)
    assert (sent["delivered"], sent["failed"]) == (3 * RECORDS, 3 * RECORDS)


def test_far_behind_it_sends_in_parts(bench, monkeypatch):
    monkeypatch.setattr(generator, "MOST_AT_ONCE", LENGTH - 1)
    assert bench.at(1.9)
    assert bench.feed.sent == LENGTH, "a message for each partition, though that is more than it should be"
    assert bench.at(1.9)
    assert not bench.at(1.9)
    assert bench.feed.sent == 3 * LENGTH


def test_what_an_ended_schedule_left_goes_out_with_what_the_next_one_makes_due(bench):
    ended = FIRST.ending(START_NS + 10**9)  # 100 events, of which one batch a partition is full
    bench.ask(ended)
    assert not bench.at(3.0, turns=4)
    assert bench.feed.sent == LENGTH
    following = ended.then(START_NS + 5 * 10**9, 1000.0)
    bench.ask(following)
    assert not bench.at(5.015, turns=4)
    assert bench.feed.sent == LENGTH, "five more are needed"
    assert not bench.at(5.02, turns=4)
    assert bench.feed.sent == 2 * LENGTH
    wanted = [position / 100 for position in range(100)] + [5 + number / 1000 for number in range(20)]
    assert bench.due_s() == pytest.approx(wanted, abs=0.002)
    again = following.ending(START_NS + 6 * 10**9)
    bench.ask(again)
    bench.at(7.0, turns=4)
    assert bench.feed.sent == again.in_full_batches(1100, RECORDS) == 1080
