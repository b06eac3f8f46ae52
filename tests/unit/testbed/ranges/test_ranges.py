"""Ranges by themselves: what is cut and joined where, and counted as single messages are."""

from collections import deque
from dataclasses import replace

import pytest

from testbed.core.checkpoints import initial_line
from testbed.core.control import Go, Restore
from testbed.core.effects import Grant, Send
from testbed.core.frames import OVERHEAD_BYTES, CorruptFrame, Frame, FrameKind, FrameReader, encode
from testbed.core.partition.partition import PartitionLimits
from testbed.core.ranges import cut, gather, message
from testbed.protocols import PROTOCOLS
from tests.unit.testbed.lone_partitions import lone, named
from tests.unit.testbed.runs import simulated
from tests.unit.testbed.small_flows import EVENTS, events, laid_out

(TEN,) = events(1, batches=1, rows=10)


def a_range(first, last, piggyback=b"now", watermark_ns=7):
    """Messages with these numbers on channel 0."""
    rows = TEN.slice(first - 1, last - first + 1)
    return Frame(FrameKind.DATA, 1, 0, last, watermark_ns, piggyback, rows, is_range=True)


def numbers(frame):
    return list(range(frame.sequence - frame.messages + 1, frame.sequence + 1)), frame.batch.to_pylist()


def started(name, protocol="uncoordinated", **limits):
    layout, _ = laid_out("joined")
    of = named(layout, name)
    partition = lone(layout, of, PROTOCOLS[protocol], PartitionLimits(records_per_message=1, **limits))
    partition.restore(Restore(1, initial_line(layout)[of.number], ()), {})
    partition.on_order(Go(1))
    partition.take_effects()
    return partition


@pytest.mark.parametrize("messages", range(1, 10))
def test_what_is_cut_keeps_its_numbers(messages):
    first, rest = cut(a_range(1, 10), messages)
    assert numbers(first) == numbers(a_range(1, messages))
    assert numbers(rest) == numbers(a_range(messages + 1, 10))
    assert (first.piggyback, rest.watermark_ns) == (b"now", 7)


def test_one_message_of_a_range_is_none():
    third = message(a_range(2, 6), 2)
    assert (third.sequence, third.batch, third.messages, third.is_range) == (4, TEN.slice(3, 1), 1, False)


def gathered(*frames, advances=lambda _: False, most=10):
    """What is due, and how many messages each frame has that is left."""
    queue = deque(frames)
    due = gather(queue, advances, most)
    assert queue[0] is due
    return numbers(due)[0], [frame.messages for frame in list(queue)[1:]]


def test_what_waits_and_says_the_same_is_due_together():
    assert gathered(a_range(1, 2), a_range(3, 3), a_range(4, 8)) == ([*range(1, 9)], [])
    assert gathered(a_range(1, 2), a_range(3, 3), a_range(4, 8), most=3) == ([1, 2, 3], [5])
    assert gathered(a_range(1, 2), a_range(3, 4, b"later"), a_range(5, 6, b"later")) == ([1, 2], [2, 2])


def test_a_marker_or_a_message_without_records_ends_what_is_due():
    for kind, number in ((FrameKind.MARKER, 2), (FrameKind.DATA, 3)):
        other = Frame(kind, 1, 0, number, 7, b"now")
        assert gathered(a_range(1, 2), other, a_range(3, 4)) == ([1, 2], [1, 2])


def test_event_time_moves_on_behind_the_first_message_that_says_so():
    def advances(watermark_ns):
        return watermark_ns > 7

    later = a_range(3, 6, watermark_ns=8)
    assert gathered(a_range(1, 2), later, advances=advances) == ([1, 2], [4])
    assert gathered(later, a_range(7, 8), advances=advances) == ([3], [3, 2])


def test_the_highest_event_time_of_what_is_joined_is_kept():
    queue = deque([a_range(1, 2, watermark_ns=5), a_range(3, 4, watermark_ns=6), a_range(5, 5, watermark_ns=4)])
    assert gather(queue, lambda _: False, 10).watermark_ns == 6


def test_of_a_range_that_has_arrived_in_part_only_the_rest_is_new():
    partition = started("pair.0")
    channel = partition.inputs[0].id
    for first, last in ((1, 4), (3, 7), (2, 5)):
        partition.on_frame(replace(a_range(first, last), channel=channel))
    assert [numbers(frame)[0] for frame in partition.intake._links[channel].queue] == [[1, 2, 3, 4], [5, 6, 7]]
    assert partition.take_effects() == [Grant(channel, 1, 2), Grant(channel, 1, 4)]
    assert partition.tally.duplicates == 6


def test_a_message_takes_credit_however_many_travel_together():
    partition = started("left.0", frames_in_flight=1, messages_in_range=4)
    partition.on_input(TEN, 1)
    sent = [effect.frame for effect in partition.take_effects() if isinstance(effect, Send)]
    of = {channel.id: sum(f.messages for f in sent if f.channel == channel.id) for channel in partition.outputs}
    assert set(of.values()) == {4}
    assert not partition.wants_input
    partition.on_credit(Grant(partition.outputs[0].id, 1, 1))
    (more,) = (effect.frame for effect in partition.take_effects())
    assert (more.messages, more.sequence) == (1, 5)


def test_bytes_are_counted_as_those_of_single_messages():
    tallies = []
    for in_range in (1, 1024):
        partition = started("left.0", "communication-induced", messages_in_range=in_range)
        for position, batch in enumerate(events(3, batches=5, rows=40)):
            partition.on_input(batch, position + 1)
        tallies.append(partition.tally)
    assert tallies[0] == tallies[1]
    assert tallies[0].data_bytes > 200 * OVERHEAD_BYTES


def test_a_range_survives_as_bytes_and_one_without_a_record_for_each_number_is_corrupt():
    schemas = [EVENTS]
    (found,) = FrameReader(schemas).feed(encode(a_range(3, 8)))
    assert found == a_range(3, 8)
    for wrong in (replace(a_range(1, 4), sequence=3), replace(a_range(1, 4), batch=None)):
        with pytest.raises(CorruptFrame, match="is a range of"):
            FrameReader(schemas).feed(encode(wrong))


@pytest.mark.parametrize(
    ("protocol", "records"), [("batch-aligned", 1), ("uncoordinated", 2)], ids=["by batch", "two records a message"]
)
def test_only_what_is_processed_as_it_comes_one_record_a_message_goes_in_ranges(protocol, records, monkeypatch):
    limits = PartitionLimits(records_per_message=records)
    run = simulated("chain", protocol, 1, limits=limits, faults=())
    send, frames = run.network.send, []
    monkeypatch.setattr(run.network, "send", lambda frame, to_copy=False: (frames.append(frame), send(frame, to_copy)))
    run.run()
    assert frames
    assert not any(frame.is_range for frame in frames)
    assert {frame.rows for frame in frames if frame.batch is not None} <= {1, records}
