"""Errors planted in what works by batch: the simulation notices each of them within a few seeds."""

from collections import deque
from dataclasses import replace

import pytest

from testbed.core.by_batch.cutting import Cutter
from testbed.core.by_batch.intake import BatchIntake
from testbed.core.by_batch.partition import BatchedPartition
from testbed.core.by_batch.processing import BatchProcessing
from testbed.core.by_batch.retained import Retained
from testbed.core.by_batch.sending import BatchSending
from testbed.core.frames import FrameKind
from testbed.core.partition.intake import Intake
from testbed.core.partition.partition import Partition
from testbed.recovery import Passive
from tests.unit.testbed.planting import assert_noticed, everyone_restored, notice_of
from tests.unit.testbed.recovery.runs import simulated

SEEDS = 12


def border_twice(intake, link, frame):
    return Intake._has_arrived(intake, link, frame)


def trimmed_too_far(retained, number, real=Retained.trim):
    real(retained, number + 1)


def sent_again_too_late(retained, channel, number, real=Retained.since):
    return real(retained, channel, number) + 1


def channel_not_held(sending, epoch, channels, number, real=BatchSending.rejoin):
    real(sending, epoch, channels, number)
    sending.go_on(epoch)


def receiver_keeps_epoch(intake, epoch, channels):
    return


def sender_keeps_epoch(sending, epoch, channels, number, real=BatchSending.rejoin):
    kept = {channel: sending._links[channel].epoch for channel in channels}
    real(sending, epoch, channels, number)
    for channel, before in kept.items():
        sending._links[channel].epoch = before


def stored_before_output(partition, number=None, forced=False):
    Partition.checkpoint(partition, number, forced)
    partition.sending.mark(partition._snapshots.last)


def one_record_too_many(cutter, column, length_ns, batch, position, skipped, real=Cutter.__init__):
    real(cutter, column, length_ns, batch, position, skipped + (skipped > 0))


def duplicates_cost_credit(intake, frame, real=BatchIntake.accept):
    before = intake._tally.duplicates
    real(intake, frame)
    if intake._tally.duplicates > before:
        intake._effects.pop()


def failure_ignored(sending, receivers):
    return


def credit_kept_for_later_batches(intake, channel, real=BatchIntake.take):
    of = intake._borders[channel]
    if intake.head(channel).kind is FrameKind.BORDER:
        of.following = deque(0 for _ in of.following)
    real(intake, channel)


def output_twice(processing, batch, real=BatchProcessing.end_batch):
    found = real(processing, batch)
    return found and replace(found, batches=found.batches * 2)


def nothing_trimmed(retained, number):
    return


PLANTS = {
    "a border is counted twice": (BatchIntake, "_has_arrived", border_twice, "ChannelGap"),
    "output is trimmed a checkpoint too far": (Retained, "trim", trimmed_too_far, "retains what is after"),
    "output is sent again from a frame too late": (Retained, "since", sent_again_too_late, "ChannelGap|ContentChanged"),
    "a channel is not held until Go": (BatchSending, "rejoin", channel_not_held, "of a credit of 32"),
    "a receiver that survives keeps the old epoch": (BatchIntake, "rejoin", receiver_keeps_epoch, "sent in epoch"),
    "a sender that survives keeps the old epoch": (BatchSending, "rejoin", sender_keeps_epoch, "sent in epoch"),
    "a sink's checkpoint is stored too early": (BatchedPartition, "checkpoint", stored_before_output, "before output"),
    "a restored source skips a record too many": (Cutter, "__init__", one_record_too_many, "ContentChanged"),
    "no credit comes back for duplicates": (BatchIntake, "accept", duplicates_cost_credit, "of a credit of 32"),
    "no credit comes back for later batches": (BatchIntake, "take", credit_kept_for_later_batches, "of a credit of 32"),
    "a sender ignores that its receiver failed": (BatchSending, "lose", failure_ignored, "takes set.. for unheard"),
    "output is put out twice": (BatchProcessing, "end_batch", output_twice, "put out and not expected"),
    "nothing is ever trimmed": (Retained, "trim", nothing_trimmed, "still retains"),
    "a survivor is restored": (Passive, "restored_now", everyone_restored, "was not lost"),
}


def notice(seed):
    """What is wrong with a run; None if nothing is."""
    flow = ("tiny", "chain", "joined")[seed % 3]
    return notice_of(simulated(flow, "passive", seed, spare_lines=seed % 2).run, flow)


@pytest.mark.parametrize("plant", PLANTS)
def test_an_error_by_batch_is_noticed(plant, monkeypatch):
    assert_noticed(monkeypatch, PLANTS[plant], notice, range(SEEDS))
