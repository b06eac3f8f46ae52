"""A source's log: what it sent is made again from where it was read, or refused."""

from dataclasses import dataclass
from itertools import islice

import pyarrow as pa
import pytest

from experiments.errors import BadInput
from testbed.core.checkpoints import initial_line
from testbed.core.control import Go, Restore
from testbed.core.effects import Send, Store
from testbed.core.partition import Partition, PartitionLimits
from testbed.core.readings import SourceChanged
from testbed.protocols import PROTOCOLS
from testbed.runtime import topics
from tests.unit.testbed.small_flows import events, laid_out
from tests.unit.testbed.small_job import JOB

BATCHES = events(1, batches=3, rows=7)


def source(flow="joined", name="left.0"):
    layout, _ = laid_out(flow)
    mine = next(each for each in layout.partitions if each.name == name)
    schemas = [channel.schema for channel in layout.channels]
    protocol, limits = PROTOCOLS["communication-induced"], PartitionLimits(records_per_message=2)
    return Partition(mine, len(layout.partitions), schemas, protocol, limits), initial_line(layout)[mine.number]


def sent(partition):
    return [effect.frame for effect in partition.take_effects() if isinstance(effect, Send)]


def content(frames):
    return [(f.channel, f.sequence, f.watermark_ns, f.piggyback, f.batch and f.batch.to_pylist()) for f in frames]


def went_on(**options):
    """What a source sent until it took a checkpoint, that checkpoint, and its objects."""
    partition, start = source(**options)
    partition.restore(Restore(1, start, (), 0), {})
    partition.on_order(Go(1))
    partition.on_input(BATCHES[0], 10)
    partition.on_progress()
    partition.on_input(None, 15)
    partition.on_input(BATCHES[1], 20, ended=True)
    before = sent(partition)
    partition.on_timer()
    (store,) = (each for each in partition.take_effects() if isinstance(each, Store))
    return before, store.checkpoint, {key: b"".join(make()) for key, make in store.objects.items()}


def gone_back(checkpoint, objects, arrived, **options):
    partition, _ = source(**options)
    partition.restore(Restore(2, checkpoint, (checkpoint.log_key,), 0, arrived), objects)
    partition.on_order(Go(2))
    return partition


@pytest.mark.parametrize(("flow", "name"), [("joined", "left.0"), ("windowed", "left.1"), ("fused", "events.0")])
def test_a_source_sends_again_what_it_sent_before_whatever_parts_it_is_read_in(flow, name):
    before, checkpoint, objects = went_on(flow=flow, name=name)
    again = gone_back(checkpoint, objects, dict.fromkeys(checkpoint.sent, 0), flow=flow, name=name)
    assert again.replaying
    assert not again.idle
    assert again.next_input == (0, 10)
    again.on_input(BATCHES[0].slice(0, 3), 4)
    assert again.next_input == (4, 10)
    again.on_input(None, 5)
    again.on_input(BATCHES[0].slice(3), 10)
    assert again.next_input == (15, 20)
    again.on_timer()
    again.on_input(BATCHES[1], 20)
    found = sent(again)
    assert content(found[: len(before)]) == content(before)
    assert {frame.epoch for frame in found} == {2}
    new = found[len(before) :]
    assert [(f.sequence, f.batch) for f in new] == [(checkpoint.sent[f.channel] + 1, None) for f in new]
    assert not again.replaying
    assert not again.wants_input


def test_what_has_arrived_is_not_read_again():
    _, checkpoint, objects = went_on()
    all_but_two = {channel: number - 2 for channel, number in checkpoint.sent.items()}
    assert gone_back(checkpoint, objects, checkpoint.sent).next_input == (20, None)
    assert gone_back(checkpoint, objects, all_but_two).next_input == (15, 20)
    assert not gone_back(checkpoint, objects, checkpoint.sent).wants_input


@pytest.mark.parametrize(
    ("batch", "position"), [(BATCHES[0].slice(1), 10), (BATCHES[0], 11), (None, 10)], ids=["fewer", "beyond", "nothing"]
)
def test_a_source_that_gives_something_else_is_refused(batch, position):
    _, checkpoint, objects = went_on()
    again = gone_back(checkpoint, objects, dict.fromkeys(checkpoint.sent, 0))
    with pytest.raises(SourceChanged, match="positions 0 to 10"):
        again.on_input(batch, position)


def test_records_with_other_keys_are_refused():
    _, checkpoint, objects = went_on()
    again = gone_back(checkpoint, objects, dict.fromkeys(checkpoint.sent, 0))
    same_key = BATCHES[0].set_column(0, "key", pa.array([3] * BATCHES[0].num_rows))
    with pytest.raises(SourceChanged, match="go elsewhere"):
        again.on_input(same_key, 10)


@dataclass(frozen=True)
class Message:
    """An event of a topic: every other one is a bid."""

    at: int

    def offset(self):
        return self.at

    def timestamp(self):
        return 1, self.at

    def value(self):
        kind = "bid" if self.at % 2 else "auction"
        return f'{{"kind":"{kind}","auction":{self.at},"bidder":1,"price":7,"extra":"x"}}'.encode()


class Topic:
    """Stands in for the thread that reads a partition: batches of three messages from an offset on."""

    opened = 0

    def __init__(self, _topic, _partition, offset, end):
        Topic.opened += 1
        self._offsets = iter(range(offset, end))

    def take(self):
        return [Message(offset) for offset in islice(self._offsets, 3)] or None

    def close(self): ...


def bids(read):
    return [] if read is None or read.batch is None else read.batch.column("auction").to_pylist()


def test_a_topic_is_read_again_to_the_same_ends_in_one_go(monkeypatch):
    monkeypatch.setattr(topics, "_Reader", Topic)
    feed = topics.KafkaEvents(JOB, next(p for p in JOB.layout().partitions if p.name == "bids.0"))
    opened, found, position = Topic.opened, {}, 0
    for start, stop in ((2, 9), (9, 10), (17, 30)):
        position, found[start] = max(position, start), []
        while position < stop:
            read = feed.read(position, stop)
            found[start] += bids(read)
            position = read.position if read else position
        assert position == stop
        assert found[start] == [at for at in range(start, stop) if at % 2]
    assert Topic.opened == opened + 1
    assert bids(feed.read(2, 4)) == [3], "whoever goes back begins anew"
    assert Topic.opened == opened + 2


def test_a_job_without_a_broker_is_refused_where_a_topic_is_read():
    feed = topics.KafkaEvents(JOB, next(p for p in JOB.layout().partitions if p.name == "bids.0"))
    with pytest.raises(BadInput, match="a broker, where events or results are those of a topic"):
        feed.read(0)
