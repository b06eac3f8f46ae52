"""Errors that are planted in the testbed on purpose: what several tests plant, and whether simulated runs notice it.

A plant is the owner of an attribute, the attribute's name, a wrong value for it, and a pattern of what a run must say.
"""

import re
from dataclasses import replace

from experiments.errors import AftershockError
from testbed.core.by_batch.partition import BatchedPartition
from testbed.core.by_batch.tentative import TentativeIntake
from testbed.core.coordinator.line_record import LineRecord
from tests.unit.testbed.runs import oracle


def notice_of(simulate, flow, *errors):
    """What is wrong with a run: an error of ours, one of `errors`, or its output. None if nothing is."""
    try:
        outcome = simulate()
    except (AftershockError, *errors) as error:
        return repr(error)
    return None if outcome.published == oracle(flow) else "other output than without faults"


def assert_noticed(monkeypatch, plant, notice, seeds):
    """With the plant, the first seed of whose run `notice` tells anything is one that tells what is expected."""
    owner, name, wrong, expected = plant
    monkeypatch.setattr(owner, name, wrong)
    found = next(filter(None, map(notice, seeds)), None)
    assert found is not None, f"nothing in {len(seeds)} runs"
    assert re.search(expected, found), found


def nothing_waits(ahead):
    """Instead of `WriteAhead.take_effects`."""
    found, ahead._waiting = ahead._out + ahead._waiting, []
    ahead._out = []
    return found


def old_epoch(record, real=LineRecord.encode):
    return real(replace(record, epoch=max(record.epoch - 1, 0)))


def forgets_what_was_missing(intake, real=TentativeIntake.begin):
    real(intake)
    intake.tentative = False


def published_as_exact(partition, batch):
    """Instead of `BatchedPartition._end_tentative_batch`."""
    published = partition.processing.end_batch(batch)
    if published is not None:
        partition._publications.publish(published)
    partition.sending.end_batch(batch)


def checkpoint_all_the_same(partition, batch, real=BatchedPartition._end_tentative_batch):
    real(partition, batch)
    partition._protocol.on_border(partition._batching.checkpoint_at(batch))


def everyone_restored(strategy, world):
    """Instead of a strategy's `restored_now`."""
    return world.everyone if world.down and world.placed == world.everyone else frozenset()
