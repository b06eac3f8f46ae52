"""A source's log: what it sent is made again from where it was read, or refused."""

import pyarrow as pa
import pytest

from testbed.core.checkpoints import initial_line
from testbed.core.control import Go, Restore
from testbed.core.effects import Send, Store
from testbed.core.partition.partition import PartitionLimits
from testbed.core.partition.partition_status import replaying
from testbed.core.partition.readings import SourceChanged
from testbed.protocols import PROTOCOLS
from tests.unit.testbed.lone_partitions import lone, named
from tests.unit.testbed.small_flows import events, laid_out

BATCHES = events(1, batches=3, rows=7)


def source(flow="joined", name="left.0"):
    layout, _ = laid_out(flow)
    of, protocol = named(layout, name), PROTOCOLS["communication-induced"]
    return lone(layout, of, protocol, PartitionLimits(records_per_message=2)), initial_line(layout)[of.number]


def sent(partition):
    return [effect.frame for effect in partition.take_effects() if isinstance(effect, Send)]


def content(frames):
    return [(f.channel, f.sequence, f.watermark_ns, f.piggyback, f.batch and f.batch.to_pylist()) for f in frames]


def went_on(**options):
    """What a source sent until it took a checkpoint, that checkpoint, and its objects."""
    partition, start = source(**options)
    partition.restore(Restore(1, start, ()), {})
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
    partition.restore(Restore(2, checkpoint, (checkpoint.log_key,), arrived), objects)
    partition.on_order(Go(2))
    return partition


def test_event_time_goes_on_by_what_the_input_has_for_other_sources():
    """A partition of the input may have nothing for this source, which would hold up all windows behind it."""
    partition, start = source("windowed", "left.1")
    partition.restore(Restore(1, start, ()), {})
    partition.on_order(Go(1))
    partition.on_input(None, 5, times_ns=(300, 700))
    partition.on_input(None, 9, times_ns=(500, 600))
    partition.on_progress()
    told = sent(partition)
    assert told
    assert {(frame.watermark_ns, frame.batch) for frame in told} == {(700, None)}


@pytest.mark.parametrize(("flow", "name"), [("joined", "left.0"), ("windowed", "left.1"), ("fused", "events.0")])
def test_a_source_sends_again_what_it_sent_before_whatever_parts_it_is_read_in(flow, name):
    before, checkpoint, objects = went_on(flow=flow, name=name)
    again = gone_back(checkpoint, objects, dict.fromkeys(checkpoint.sent, 0), flow=flow, name=name)
    assert replaying(again)
    assert not again.idle
    assert again.source_input.span == (0, 10)
    again.on_input(BATCHES[0].slice(0, 3), 4)
    assert again.source_input.span == (4, 10)
    again.on_input(None, 5)
    again.on_input(BATCHES[0].slice(3), 10)
    assert again.source_input.span == (15, 20)
    again.on_timer()
    again.on_input(BATCHES[1], 20)
    found = sent(again)
    assert content(found[: len(before)]) == content(before)
    assert {frame.epoch for frame in found} == {2}
    new = found[len(before) :]
    assert [(f.sequence, f.batch) for f in new] == [(checkpoint.sent[f.channel] + 1, None) for f in new]
    assert not replaying(again)
    assert not again.wants_input


def test_what_has_arrived_is_not_read_again():
    _, checkpoint, objects = went_on()
    all_but_two = {channel: number - 2 for channel, number in checkpoint.sent.items()}
    assert gone_back(checkpoint, objects, checkpoint.sent).source_input.span == (20, None)
    assert gone_back(checkpoint, objects, all_but_two).source_input.span == (15, 20)
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
