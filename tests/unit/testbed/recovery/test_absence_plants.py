"""Errors planted where drivers die amid absent input: the simulation notices each of them within a few seeds."""

import re
from dataclasses import replace

import pytest

from experiments.errors import AftershockError
from testbed.core.by_batch.partition import BatchedPartition
from testbed.core.by_batch.processing import BatchProcessing
from testbed.core.by_batch.publications import Publications
from testbed.core.by_batch.tentative import TentativeIntake
from testbed.core.line_record import LineRecord
from testbed.core.write_ahead import WriteAhead
from tests.unit.testbed.recovery.dying_drivers import going_on
from tests.unit.testbed.runs import oracle

SEEDS = 12


def does_not_wait(publications, effect):
    if not publications.has(effect.batch):
        publications._effects.append(effect)


def does_not_ask(publications):
    return


def nothing_waits(ahead):
    found, ahead._waiting = ahead._out + ahead._waiting, []
    ahead._out = []
    return found


def old_epoch(record, real=LineRecord.encode):
    return real(replace(record, epoch=max(record.epoch - 1, 0)))


def of_a_later_batch(processing, batch, end_ns, real=BatchProcessing.end_tentative_batch):
    found = real(processing, batch, end_ns)
    return found and replace(found, batch=batch + 1000)


def forgets_what_was_missing(intake, real=TentativeIntake.begin):
    real(intake)
    intake.tentative = False


def published_as_exact(partition, batch):
    published = partition.processing.end_batch(batch)
    if published is not None:
        partition._publications.publish(published)
    partition.sending.end_batch(batch)


def checkpoint_all_the_same(partition, batch, real=BatchedPartition._end_tentative_batch):
    real(partition, batch)
    partition._protocol.on_border(partition._batching.checkpoint_at(batch))


REUSED = "ChannelGap|ContentChanged|of a credit|other output"
NOT_EXACT = "put out and not expected|ContentChanged|another state|received or sent something else|other output"
PLANTS = {
    "tentative output does not wait for what is out": (Publications, "put_out", does_not_wait, "which is out"),
    "a sink does not ask what is out": (Publications, "ask", does_not_ask, "which is out"),
    "nothing waits for the record": (WriteAhead, "take_effects", nothing_waits, f"{REUSED}|no line of checkpoints"),
    "an old epoch is used again": (LineRecord, "encode", old_epoch, REUSED),
    "what is tentative is of no batch": (BatchProcessing, "end_tentative_batch", of_a_later_batch, "not corrected"),
    "missing input goes unnoticed": (TentativeIntake, "begin", forgets_what_was_missing, NOT_EXACT),
    "a tentative sink publishes": (BatchedPartition, "_end_tentative_batch", published_as_exact, NOT_EXACT),
    "tentative state is in a checkpoint": (
        BatchedPartition,
        "_end_tentative_batch",
        checkpoint_all_the_same,
        "takes checkpoint . and is tentative",
    ),
}
# The first seed to try: few runs show each error.
FIRST = {"tentative output does not wait for what is out": 270, "nothing waits for the record": 153}
FIRST |= dict.fromkeys(("a tentative sink publishes", "what is tentative is of no batch"), 14)


def notice(seed):
    """What is wrong with a run; None if nothing is."""
    strategy = "passive" if seed % 4 == 3 else "partially-active"
    try:
        outcome = going_on("tiny", strategy, seed).run()
    except (AftershockError, KeyError, ValueError) as error:
        return repr(error)
    return None if outcome.published == oracle("tiny") else "other output than without faults"


@pytest.mark.parametrize("plant", PLANTS)
def test_an_error_amid_absence_is_noticed(plant, monkeypatch):
    owner, name, wrong, expected = PLANTS[plant]
    monkeypatch.setattr(owner, name, wrong)
    first = FIRST.get(plant, 0)
    found = next(filter(None, map(notice, range(first, first + SEEDS))), f"nothing in {SEEDS} runs")
    assert re.search(expected, found), found
