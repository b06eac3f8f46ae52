"""Errors planted in active copies: the simulation notices each of them within a few seeds."""

import pytest

from testbed.core.by_batch.copy_links import CopyLinks
from testbed.core.by_batch.intake import BatchIntake
from testbed.core.by_batch.muted import WithheldOutput
from testbed.core.by_batch.sending import BatchSending
from testbed.core.coordinator.copying import Copying
from testbed.simulation import CrashMoment, Fault
from tests.unit.testbed.campaigns import quick
from tests.unit.testbed.planting import assert_noticed, notice_of
from tests.unit.testbed.recovery.copied_runs import copied

SEEDS, EARLY = 24, 6  # `EARLY` of the seeds have one fault that comes early


def promoted_without_resend(sending, epoch, real=BatchSending.promote):
    real(sending, epoch)
    for channel, backlog in sending._backlogs.items():
        backlog._next = sending.retained.end(channel)


def trimmed_one_too_far(sending, number, real=BatchSending.trim):
    real(sending, number + sending.muted)


def muted_copy_sends(sending, epoch, sent, number, muted=False, real=BatchSending.restore_at):
    real(sending, epoch, sent, number)


def output_let_out(withheld, batch, effects):
    return effects


def output_forgotten(withheld):
    return []


def inputs_keep_their_epoch(intake, epoch, channels):
    return


def copies_unheard(copying, made, back, real=Copying.attach):
    real(copying, made, frozenset())


def copies_get_nothing_new(links, frame):
    return


def credit_of_copies_lost(links, grant):
    return


def skipped_one_too_many(sending, epoch, arrived=None, real=BatchSending.go_on):
    real(sending, epoch, {channel: batch + 1 for channel, batch in (arrived or {}).items()})


PLANTS = {
    "promotion without resend": (BatchSending, "promote", promoted_without_resend, "ChannelGap"),
    "a copy is trimmed a checkpoint too far": (
        BatchSending,
        "trim",
        trimmed_one_too_far,
        "the copy .* retains",
    ),
    "a muted copy sends": (BatchSending, "restore_at", muted_copy_sends, "is not muted"),
    "a muted copy puts output out": (WithheldOutput, "hold", output_let_out, "lets out Publish"),
    "withheld output is forgotten": (WithheldOutput, "take", output_forgotten, "other output"),
    "inputs keep their epoch": (BatchIntake, "rejoin", inputs_keep_their_epoch, "sent in epoch|Stuck"),
    "copies do not hear from who is restored": (Copying, "attach", copies_unheard, "gets nothing on channel"),
    "copies get nothing new": (CopyLinks, "post", copies_get_nothing_new, "the copy of"),
    "credit of copies is lost": (CopyLinks, "on_credit", credit_of_copies_lost, "channel . to a copy"),
    "what the receiver lacks is skipped": (BatchSending, "go_on", skipped_one_too_many, "ChannelGap|ContentChanged"),
}


# They show only after many seeds.
LATE = {"withheld output is forgotten", "what the receiver lacks is skipped", "copies get nothing new"}


def notice(seed):
    """What is wrong with a run; None if nothing is."""
    flow = ("tiny", "chain", "joined")[seed % 3]
    early = [Fault(CrashMoment.ANY, 100 + 20 * seed, late=seed % 2 == 1)]
    options = {"faults": early} if seed < EARLY else {}
    return notice_of(copied(flow, seed, spare_lines=seed % 2, **options).run, flow, KeyError)


@pytest.mark.parametrize("plant", quick(PLANTS, PLANTS.keys() - LATE))
def test_an_error_in_copies_is_noticed(plant, monkeypatch):
    assert_noticed(monkeypatch, PLANTS[plant], notice, range(SEEDS))
