"""Restored partitions that come back to where they were, as their slot tells it: a real slot without others."""

import time
from contextlib import closing
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import pytest

from testbed.core.checkpoints import OUTSIDE, initial_line
from testbed.core.control import Go, Promote, Ready, Restore
from testbed.core.partition.counts_and_watermarks import Tally
from testbed.operators import Delivery, Sink, Source
from testbed.runtime.job import InputKind, JobInput, OutputKind, OutputSpec
from testbed.runtime.network.messages import Peers
from testbed.runtime.slot.catching_up import CatchingUp
from testbed.runtime.slot.restoring import ReadBack
from tests.unit.testbed.runtime.lone_slot import LoneSlot
from tests.unit.testbed.small_job import JOB

EVENTS, BLOCK = 4000, 200  # a position of generated input stands for a block of events


class OneSlot(LoneSlot):
    """The one slot of a job that works by batches, on input that was due long ago."""

    def __init__(self, folder):
        job = replace(
            JOB,
            slots=1,
            parallelism=1,
            protocol="batch-aligned",
            recovery="passive",
            store=str(folder / "store"),
            input=JobInput(InputKind.GENERATED, EVENTS, start_ns=time.time_ns() - 3600 * 10**9, rate=2000.0),
            output=OutputSpec(OutputKind.NOWHERE, Delivery.PLAIN),
        )
        super().__init__(job)
        self.loaded, self.reached = [], []

    def look(self):
        """The progress by the slot's status, which tells what it has to tell once."""
        status = self.hosting.status()
        self.loaded += status.loaded
        self.reached += status.reached
        return status.progress

    def finished(self):
        return bool(self.hosting.status().finished)


@pytest.fixture
def slot(tmp_path):
    with closing(OneSlot(tmp_path)) as made:
        yield made


def run_to_the_end(slot, epoch, reached):
    slot.restore(epoch, reached)
    slot.go(epoch)
    slot.until(lambda: all(at for by in slot.look().values() for at in by.values()) and slot.finished())
    return slot.look()


def test_a_source_tells_its_position_and_the_others_what_they_have_received(slot):
    progress = run_to_the_end(slot, 1, {})
    for number in slot.everyone:
        inputs = slot.layout.partitions[number].inputs
        assert progress[number].keys() == ({channel.id for channel in inputs} or {OUTSIDE})
    assert progress[0] == {OUTSIDE: EVENTS // BLOCK}
    assert [each.partition for each in slot.loaded] == list(slot.everyone)
    assert slot.reached == [], "there was no earlier life"


def test_each_partition_arrives_once_and_says_what_it_has_processed_again(slot):
    before = run_to_the_end(slot, 1, {})
    slot.loaded.clear()
    slot.restore(2, before)
    slot.look()
    assert [each.epoch for each in slot.loaded] == [2 for _ in slot.everyone]
    assert slot.reached == []
    slot.go(2)
    slot.until(lambda: slot.look() and len(slot.reached) >= len(slot.everyone))
    assert sorted(each.partition for each in slot.reached) == list(slot.everyone)
    for each in slot.reached:
        is_source = not slot.layout.partitions[each.partition].inputs
        assert each.records == EVENTS // BLOCK if is_source else each.records > 0
        assert (each.size_bytes == 0) == is_source
    slot.until(lambda: not slot.hosting.work(time.monotonic() + 0.01))
    slot.look()
    assert len(slot.reached) == len(slot.everyone), "told once"


def test_nobody_has_arrived_before_they_may_go_though_nothing_is_to_be_done_again(slot):
    nowhere = {number: dict.fromkeys(progress, 0) for number, progress in run_to_the_end(slot, 1, {}).items()}
    slot.restore(2, nowhere)
    for _ in range(5):
        slot.turn()
    slot.look()
    assert slot.reached == []
    slot.go(2)
    slot.until(lambda: slot.look() and len(slot.reached) == len(slot.everyone))


def test_who_was_lost_before_it_could_report_arrives_when_it_goes_on(slot):
    slot.restore(2, {number: {} for number in slot.everyone})
    slot.turn()
    slot.look()
    assert slot.reached == []
    slot.go(2)
    slot.until(lambda: slot.look() and len(slot.reached) == len(slot.everyone))


def test_who_goes_back_again_on_the_way_arrives_in_the_later_recovery_only(slot):
    further = {
        number: {channel: at + 10**6 for channel, at in progress.items()}
        for number, progress in run_to_the_end(slot, 1, {}).items()
    }
    slot.restore(2, further)
    slot.go(2)
    slot.until(slot.finished)
    slot.restore(3, {number: dict.fromkeys(progress, 1) for number, progress in further.items()})
    slot.go(3)
    slot.until(lambda: slot.look() and len(slot.reached) == len(slot.everyone))
    assert {each.epoch for each in slot.reached} == {3}


def test_where_nobody_knows_how_far_a_partition_was_an_earlier_goal_is_void(slot):
    slot.restore(2, run_to_the_end(slot, 1, {}))
    run_to_the_end(slot, 3, {})
    assert slot.reached == []


def peers(slot, epoch, restored, reached):
    return Peers(epoch, (slot._mesh.address,), (1,), 0, restored, reached=reached)


def come_back(slot, epoch, number):
    """Begin a recovery of one partition, up to where it would go on."""
    slot.hosting.begin(peers(slot, epoch, (number,), {number: {}} if epoch > 1 else {}))
    slot.hosting.order(number, Restore(epoch, initial_line(slot.layout)[number], ()))
    slot.until(lambda: Ready(number, epoch) in slot.told)


def test_a_slot_has_not_caught_up_before_a_partition_that_comes_back_to_it_goes_on(slot):
    """A slot can host others meanwhile, which have caught up. A run whose sources stop too early never ends."""
    source, sink = slot.the(Source), slot.the(Sink)
    come_back(slot, 1, sink)
    assert not slot.hosting.status().caught_up
    slot.hosting.order(sink, Go(1))
    assert slot.hosting.status().caught_up
    slot.hosting.begin(peers(slot, 2, (source,), {source: {}}))
    status = slot.hosting.status()
    assert (status.caught_up, status.ended) == (False, False), "the partition is not even there"
    come_back(slot, 2, source)
    slot.hosting.begin(peers(slot, 3, (), {}))
    assert not slot.hosting.status().caught_up, "copies were placed, and the recovery still goes on"
    slot.hosting.order(source, Go(2))
    assert slot.hosting.status().caught_up


def test_a_slot_has_not_caught_up_before_a_copy_that_was_promoted_goes_on(slot):
    source, sink = slot.the(Source), slot.the(Sink)
    come_back(slot, 1, sink)
    slot.hosting.order(sink, Go(1))
    slot.hosting.begin(peers(slot, 2, (), {}))
    slot.hosting.order(source, Restore(2, initial_line(slot.layout)[source], (), muted=True))
    slot.until(lambda: Ready(source, 2) in slot.told)
    assert slot.hosting.status().caught_up, "a copy does not count"
    slot.hosting.begin(peers(slot, 3, (), {source: {}}))
    slot.hosting.order(source, Promote(3))
    assert not slot.hosting.status().caught_up, "it does not know yet how far its primary was"
    slot.hosting.order(source, Go(3))
    assert slot.hosting.status().caught_up


def test_a_slot_does_not_wait_for_a_partition_that_comes_back_elsewhere(slot):
    source, sink = slot.the(Source), slot.the(Sink)
    come_back(slot, 1, sink)
    slot.hosting.order(sink, Go(1))
    slot.hosting.begin(peers(slot, 2, (source,), {source: {}}))
    elsewhere = Peers(3, (slot._mesh.address,) * 2, (1, 2), 0, (source,), moved={source: 1}, reached={source: {}})
    slot.hosting.begin(elsewhere)
    assert slot.hosting.status().caught_up


def test_a_slot_does_not_wait_for_a_partition_of_its_own_that_was_lost_again_before_it_was_told(slot):
    source, sink = slot.the(Source), slot.the(Sink)
    come_back(slot, 1, sink)
    slot.hosting.order(sink, Go(1))
    slot.hosting.begin(replace(peers(slot, 2, (source,), {source: {}}), void=(source,)))
    assert slot.hosting.status().caught_up


@dataclass
class Standing:
    """A partition that is as far as it says."""

    received: dict[int, int]
    number: int = 4
    epoch: int = 2
    running: bool = True
    tally: Tally = field(default_factory=Tally)

    @property
    def intake(self):
        return self

    @property
    def source_input(self):
        return SimpleNamespace(position=0)


def test_a_partition_is_back_once_it_is_on_all_of_its_channels():
    partition, catching_up = Standing({7: 10, 8: 9}), CatchingUp()
    catching_up.expect(Peers(2, (), (), 0, (4,), reached={4: {7: 10, 8: 10}}))
    catching_up.begin(partition, ReadBack({}, (None, None), 0.1))
    catching_up.look(1.0)
    assert catching_up.take_reached() == ()
    partition.received[8] = 10
    catching_up.look(1.0)
    assert [each.partition for each in catching_up.take_reached()] == [4]


def test_a_promoted_copy_has_read_nothing_back_and_arrives_as_well():
    copy, catching_up = Standing({7: 9}, running=False), CatchingUp()
    catching_up.expect(Peers(2, (), (), 0, (), reached={4: {7: 10}}))
    catching_up.follow(copy)
    copy.running, copy.received[7] = True, 10
    catching_up.look(1.0)
    assert [each.partition for each in catching_up.take_reached()] == [4]
    assert catching_up.take_loaded() == ()
