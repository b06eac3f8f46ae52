"""When a restored partition has reached its earlier progress: the end of a run must wait for that."""

import pyarrow as pa

from testbed.core.by_batch.cutting import BORDER, Batching
from testbed.core.checkpoints import initial_line
from testbed.core.control import Go, Restore, Stable, Waiting
from testbed.core.effects import Grant, Publish, Send
from testbed.core.frames import Frame, FrameKind
from testbed.core.partition.partition import PartitionLimits
from tests.unit.testbed.lone_partitions import lone_by_batch, named
from tests.unit.testbed.small_flows import EVENTS, laid_out


def restored(operator, reached=None, frames_in_flight=32):
    """The first partition of an operator, restored at its beginning; it goes if it is told what was reached."""
    layout, _ = laid_out("chain")
    of = named(layout, f"{operator}.0")
    partition = lone_by_batch(layout, of, PartitionLimits(frames_in_flight), Batching(10, 2))
    partition.restore(Restore(1, initial_line(layout)[of.number], (), {c.id: 0 for c in of.outputs}), {})
    if reached is not None:
        partition.on_order(Go(1, reached))
    return partition


def rows(*times):
    return pa.record_batch({"key": times, "value": times, "at_ns": times}, schema=EVENTS)


def test_a_partition_that_does_not_go_yet_repeats():
    assert restored("double").repeats


def test_a_source_repeats_until_it_has_sent_the_batch_that_a_receiver_has():
    source = restored("events", reached=2)
    source.on_input(rows(1, 12, 23), 1)
    assert (source.batch, source.repeats) == (1, True)
    source.on_input(rows(35), 2)
    assert (source.batch, source.repeats) == (2, False)


def test_a_sink_repeats_until_it_has_processed_the_batch_that_is_out():
    sink = restored("out", reached=-1)
    assert Publish(0, ()) in sink.take_effects(), "it asks what is out"
    assert sink.repeats
    sink.on_published(3)
    for batch in (0, 1, 2):
        assert sink.repeats
        sink.on_frame(Frame(FrameKind.BORDER, 1, sink.inputs[0].id, 0, (batch + 1) * 10, BORDER.pack(batch)))
        sink.step(sink.next_channel())
    assert not sink.repeats


def test_what_a_stable_line_covers_is_not_read_for_a_receiver_that_is_not_waited_for():
    """The receiver has it from an earlier life of this sender, whose frames of it still wait for credit."""
    source = restored("events", reached=-1, frames_in_flight=1)
    (channel,) = source.layout.outputs
    source.on_input(rows(1, 12, 23, 35), 1)
    source.on_order(Stable(1, 1))
    source.take_effects()
    source.on_order(Waiting(1, (channel.receiver,)))
    source.on_order(Go(1, -1))
    for _ in range(4):
        source.on_credit(Grant(channel.id, 1, 1))
    sent = [each.frame for each in source.take_effects() if isinstance(each, Send)]
    kept = [frame for segment in source.sending.retained.segments for frame in segment.frames]
    assert sent == kept[:4]
    assert min(each.watermark_ns for each in sent) >= 20
