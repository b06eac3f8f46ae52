"""A partition by itself: order, credit, alignment, epochs."""

from dataclasses import replace

import pyarrow as pa
import pytest

from testbed.core.checkpoints import initial_line
from testbed.core.control import Go, Ready, Restore, Round
from testbed.core.effects import Fetch, Grant, Send, Spill, Store, Tell
from testbed.core.frames import Frame, FrameKind
from testbed.core.partition.intake import ChannelGap
from testbed.core.partition.partition import PartitionLimits
from testbed.core.partition.partition_status import aligning
from testbed.core.protocol import Protocol
from testbed.protocols import PROTOCOLS
from tests.unit.testbed.lone_partitions import lone, named
from tests.unit.testbed.small_flows import events, laid_out

ROUND_ONE = (1).to_bytes(8, "little")


def started(name, flow="joined", protocol="uncoordinated", **limits):
    """A partition that was told to go."""
    layout, _ = laid_out(flow)
    of = named(layout, name)
    partition = lone(layout, of, PROTOCOLS.get(protocol, protocol), PartitionLimits(**limits))
    partition.restore(Restore(1, initial_line(layout)[of.number], ()), {})
    assert partition.take_effects() == [Tell(Ready(of.number, 1))]
    partition.on_order(Go(1))
    return partition


def data(channel, sequence, epoch=1):
    return Frame(FrameKind.DATA, epoch, channel.id, sequence, 0, b"", events(1, batches=1)[0])


def round_trip(channel, sequence):
    """A record that goes on round the cycle, always to the same partition."""
    batch = pa.record_batch({name: [2] for name in channel.schema.names}, schema=channel.schema)
    return Frame(FrameKind.DATA, 1, channel.id, sequence, 0, b"", batch)


def marker(channel, sequence):
    return Frame(FrameKind.MARKER, 1, channel.id, sequence, 0, ROUND_ONE)


def kinds(partition):
    return [type(effect) for effect in partition.take_effects()]


def test_a_gap_is_never_passed_over():
    partition = started("pair.0")
    partition.on_frame(data(partition.inputs[0], 1))
    with pytest.raises(ChannelGap, match=r"pair\.0.*3 came, not 2"):
        partition.on_frame(data(partition.inputs[0], 3))


def test_only_a_source_takes_input():
    with pytest.raises(TypeError, match=r"pair\.0 is no source"):
        started("pair.0").on_input(events(1, batches=1)[0], 1)


def test_what_comes_twice_or_from_another_epoch_is_dropped_and_credit_returned():
    partition = started("pair.0")
    first = data(partition.inputs[0], 1)
    partition.on_frame(first)
    partition.on_frame(first)
    partition.on_frame(replace(first, sequence=2, epoch=0))
    assert partition.take_effects() == [Grant(first.channel, 1, 1)]
    assert (partition.tally.duplicates, partition.tally.stale) == (1, 1)
    assert partition.ready_channels() == [first.channel]


def test_nothing_happens_before_go():
    partition = started("pair.0")
    layout, _ = laid_out("joined")
    partition.restore(Restore(2, initial_line(layout)[partition.number], ()), {})
    partition.take_effects()
    partition.on_frame(data(partition.inputs[0], 1, epoch=2))
    partition.on_timer()
    partition.on_order(Go(1))
    assert (partition.ready_channels(), partition.take_effects()) == ([], [])
    partition.on_order(Go(2))
    assert partition.ready_channels()


def test_without_credit_a_partition_stops_and_goes_on_when_it_comes():
    partition = started("left.0", frames_in_flight=1, records_per_message=1, messages_in_range=1)
    (batch,) = events(1, batches=1, rows=6)
    assert partition.wants_input
    partition.on_input(batch, 1)
    sent = [effect.frame for effect in partition.take_effects()]
    assert {frame.sequence for frame in sent} == {1}
    assert not partition.wants_input
    for _ in range(5):
        for channel in partition.outputs:
            partition.on_credit(Grant(channel.id, 1, 1))
    sent += [effect.frame for effect in partition.take_effects()]
    assert sum(frame.rows for frame in sent) == 6
    assert all(frame.rows == 1 for frame in sent)
    assert partition.wants_input


def test_a_channel_with_a_marker_waits_for_the_others():
    partition = started("pair.0", protocol="coordinated")
    first, *others = partition.inputs
    partition.on_frame(data(first, 1))
    partition.on_frame(marker(first, 1))
    partition.on_frame(data(first, 2))
    partition.step(first.id)
    partition.step(first.id)
    assert aligning(partition)
    assert partition.ready_channels() == []
    for other in others:
        assert Store not in kinds(partition)
        partition.on_frame(marker(other, 0))
        partition.step(other.id)
    effects = partition.take_effects()
    (store,) = [effect for effect in effects if isinstance(effect, Store)]
    assert (store.checkpoint.number, store.checkpoint.received[first.id]) == (1, 1)
    markers = [e.frame for e in effects if isinstance(e, Send) and e.frame.kind is FrameKind.MARKER]
    assert {frame.channel for frame in markers} == {channel.id for channel in partition.outputs}
    assert partition.ready_channels() == [first.id]


def test_a_watermark_without_records_gives_a_sink_nothing_to_publish():
    partition = started("out.0", protocol="coordinated")
    first, *others = partition.inputs
    partition.on_frame(Frame(FrameKind.DATA, 1, first.id, 1, 50))
    partition.on_frame(marker(first, 1))
    for other in others:
        partition.on_frame(marker(other, 0))
    while ready := partition.ready_channels():
        partition.step(ready[0])
    assert not partition._snapshots.holds_output
    (stored,) = (effect for effect in partition.take_effects() if isinstance(effect, Store))
    assert [key.rpartition("/")[2].partition("-")[0] for key in stored.objects] == ["state"]


def test_a_source_takes_its_checkpoint_before_it_sends_markers():
    partition = started("left.0", protocol="coordinated")
    partition.on_order(Round(1, 1))
    assert kinds(partition) == [Store, Send, Send]


def test_control_goes_between_data_past_the_operator():
    heard = []

    class Punctuated(Protocol):
        """Tells every receiver at each timer that all before has been sent."""

        name, on_own_time = "punctuated", True

        def on_timer(self):
            for channel in self.runtime.outputs:
                self.runtime.send(FrameKind.CONTROL, channel, b"all before is there")

        def on_control(self, frame):
            heard.append((self.runtime.number, frame.channel, frame.sequence, frame.piggyback))

    sender, receiver = (started(name, protocol=Punctuated) for name in ("left.0", "pair.0"))
    (channel,) = (each for each in sender.outputs if each.receiver == receiver.number)
    for position, batch in enumerate(events(1, batches=2, rows=30), 1):
        sender.on_input(batch, position)
        sender.on_timer()
    frames = [e.frame for e in sender.take_effects() if isinstance(e, Send) and e.frame.channel == channel.id]
    assert [frame.kind for frame in frames] == [FrameKind.DATA, FrameKind.CONTROL] * 2
    assert sender.tally.protocol_bytes == sum(2 * frames[1].protocol_bytes() for _ in sender.outputs)
    for frame in frames:
        receiver.on_frame(frame)
        receiver.step(channel.id)
    assert heard == [(receiver.number, channel.id, sequence, b"all before is there") for sequence in (1, 2)]
    assert receiver.tally.records_in == sum(frame.rows for frame in frames)
    assert kinds(receiver) == [Grant] * 4


def test_channels_take_turns_and_those_of_a_cycle_go_first():
    partition = started("pair.0")
    for channel in partition.inputs:
        partition.on_frame(data(channel, 1))
        partition.on_frame(data(channel, 2))
    turns = []
    for _ in range(6):
        turns.append(partition.next_channel())
        partition.step(turns[-1])
    assert turns == [channel.id for channel in partition.inputs] * 2
    assert partition.next_channel() is None
    visiting = started("visit.0", flow="cyclic")
    for channel in visiting.inputs:
        visiting.on_frame(Frame(FrameKind.DATA, 1, channel.id, 1, 0))
    assert visiting.ready_channels() == [channel.id for channel in visiting.inputs if channel.on_cycle]


def test_only_the_channel_that_closes_a_cycle_does_not_hold_up_its_operator():
    bounds = {"frames_in_flight": 1, "records_per_message": 1, "messages_in_range": 1, "returning_bytes": 1}
    visiting, again = (started(name, flow="cyclic", **bounds) for name in ("visit.0", "again.0"))
    for partition in (visiting, again):
        for sequence in range(1, 4):
            partition.on_frame(round_trip(partition.inputs[0], sequence))
        for _ in range(2):
            partition.step(partition.inputs[0].id)
    assert visiting.ready_channels() == []
    assert again.ready_channels() == [again.inputs[0].id]


def test_a_partition_is_not_idle_while_what_it_sends_is_in_the_store():
    limits = {"frames_in_flight": 1, "records_per_message": 1, "messages_in_range": 1, "returning_bytes": 1}
    again = started("again.0", flow="cyclic", **limits)
    for sequence in range(1, 4):
        again.on_frame(round_trip(again.inputs[0], sequence))
        again.step(again.inputs[0].id)
    effects = again.take_effects()
    sent = [effect.frame for effect in effects if isinstance(effect, Send)]
    objects = {e.key: b"".join(map(bytes, e.content())) for e in effects if isinstance(e, Spill)}
    assert objects
    assert again.ready_channels() == []  # until the store has them
    for key in objects:
        again.on_spilled(key)
    for _ in range(2):
        assert not again.idle
        again.on_credit(Grant(sent[0].channel, 1, 1))
        effects = again.take_effects()
        for key in [effect.key for effect in effects if isinstance(effect, Fetch)]:
            assert not again.idle
            again.on_fetched(key, objects[key])
        sent += [effect.frame for effect in (*effects, *again.take_effects()) if isinstance(effect, Send)]
    assert again.idle
    assert [frame.sequence for frame in sent] == [1, 2, 3]


def test_a_full_copy_comes_after_so_many_changes():
    partition = started("count.0", flow="tiny", changes_per_full=2)
    lengths = []
    for _ in range(6):
        partition.on_timer()
        (store,) = partition.take_effects()
        lengths.append(len(store.checkpoint.state_keys))
        partition.on_stored(1, store.checkpoint.number)
        partition.take_effects()
    assert lengths == [1, 2, 3, 1, 2, 3]
