"""Errors planted in active copies: the simulation notices each of them within a few seeds."""

import re

import pytest

from experiments.errors import AftershockError
from testbed.core.by_batch.copy_links import CopyLinks
from testbed.core.by_batch.intake import BatchIntake
from testbed.core.by_batch.muted import Withheld
from testbed.core.by_batch.sending import BatchSending
from testbed.core.coordinator import Coordinator
from testbed.core.copies import Copies
from testbed.core.snapshots import Snapshots
from tests.unit.testbed.recovery.copied_runs import copied
from tests.unit.testbed.runs import oracle

SEEDS = 16


def promoted_without_resend(sending, epoch, real=BatchSending.promote):
    real(sending, epoch)
    for link in sending._links.values():
        link.waiting.clear()


def trimmed_one_too_far(sending, number, real=BatchSending.trim):
    real(sending, number + sending.muted)


def muted_copy_sends(sending, epoch, sent, number, muted=False, real=BatchSending.restore_at):
    real(sending, epoch, sent, number)


def output_let_out(withheld, batch, effects):
    return effects


def output_forgotten(withheld):
    return []


def output_trimmed_too_far(withheld, first, real=Withheld.trim):
    real(withheld, first + 3)


def behind_the_line(copies, partition, line):
    return partition in copies.of and copies.of[partition].runs


def copy_of_a_copy_kept(coordinator, partitions, real=Coordinator._drop_copies):
    return


def link_kept_at_promotion(sending, epoch, real=BatchSending.promote):
    sending.muted = False


def inputs_keep_their_epoch(intake, epoch, channels):
    return


def copies_unheard(coordinator, made, back, real=Coordinator._attach):
    real(coordinator, made, frozenset())


def copies_get_nothing_new(links, frame):
    return


def credit_of_copies_lost(links, grant):
    return


def next_checkpoint_has_changes_only(snapshots, states, number):
    snapshots.last = number
    for state in states.values():
        state.changes()


def skipped_one_too_many(links, epoch, arrived, real=CopyLinks.release):
    real(links, epoch, {channel: batch + 1 for channel, batch in arrived.items()})


PLANTS = {
    "promotion without resend": (BatchSending, "promote", promoted_without_resend, "ChannelGap"),
    "a copy is trimmed a checkpoint too far": (BatchSending, "trim", trimmed_one_too_far, "KeyError|ChannelGap|retains"),
    "a muted copy sends": (BatchSending, "restore_at", muted_copy_sends, "is not muted"),
    "a muted copy puts output out": (Withheld, "hold", output_let_out, "lets out Publish"),
    "withheld output is forgotten": (Withheld, "take", output_forgotten, "other output"),
    "withheld output is trimmed too far": (Withheld, "trim", output_trimmed_too_far, "other output"),
    "a copy behind the line is promoted": (Copies, "can_replace", behind_the_line, "KeyError|ChannelGap"),
    "inputs keep their epoch": (BatchIntake, "rejoin", inputs_keep_their_epoch, "sent in epoch|Stuck"),
    "copies do not hear from who is restored": (Coordinator, "_attach", copies_unheard, "nothing was promoted|ChannelGap"),
    "copies get nothing new": (CopyLinks, "post", copies_get_nothing_new, "nothing was promoted|ChannelGap"),
    "credit of copies is lost": (CopyLinks, "on_credit", credit_of_copies_lost, "channel . to a copy"),
    "the first checkpoint has changes only": (Snapshots, "pass_over", next_checkpoint_has_changes_only, "another state|KeyError"),
    "a copy skips what it lacks": (CopyLinks, "release", skipped_one_too_many, "ChannelGap|to a copy"),
}


def notice(seed):
    """What is wrong with a run; None if nothing is."""
    flow = ("tiny", "chain", "joined")[seed % 3]
    try:
        outcome = copied(flow, seed, spare_lines=seed % 2).run()
    except (AftershockError, KeyError) as error:
        return repr(error)
    return None if outcome.published == oracle(flow) else "other output than without faults"


@pytest.mark.parametrize("plant", PLANTS)
def test_an_error_in_copies_is_noticed(plant, monkeypatch):
    owner, name, wrong, expected = PLANTS[plant]
    monkeypatch.setattr(owner, name, wrong)
    found = next(filter(None, map(notice, range(SEEDS))), f"nothing in {SEEDS} runs")
    assert re.search(expected, found), found
