"""Copies where survivors go on without absent input: a promoted copy goes on, too, and no copy is ever tentative."""

from dataclasses import replace

import pytest

from testbed.core.by_batch.sending import BatchSending
from testbed.core.checkpoints import initial_line
from testbed.core.control import Absent, Attach, Attached, Dismiss, Go, Passed, Promote, Ready, Restore, Stored
from testbed.core.effects import Grant, Send
from testbed.core.frames import FrameKind
from testbed.core.partition.partition import PartitionLimits
from testbed.recovery import PartiallyActive
from testbed.simulation import CrashMoment, Fault
from tests.unit.testbed.campaigns import first_and_rest, parts
from tests.unit.testbed.lone_partitions import lone_by_batch
from tests.unit.testbed.planting import assert_noticed, notice_of
from tests.unit.testbed.recovery.coordinators import running
from tests.unit.testbed.recovery.copied_runs import copied
from tests.unit.testbed.recovery.orders import addressed_orders_of, deleted
from tests.unit.testbed.recovery.runs import faults
from tests.unit.testbed.recovery.small_layouts import chain, two_sources
from tests.unit.testbed.runs import oracle

LONG_ABSENCE, SHARE = 0.004, 50


def simulated(flow, seed, room=None, **options):
    """A run, not yet begun.

    Unless it is said otherwise, two slots are lost, or one and the standby worker, the second soon after the first.
    `room`: how many partitions without a copy a standby worker takes; by default as many as a slot has.
    """
    burst = [Fault(CrashMoment.ANY, 250 + 30 * (seed % 12), late=True), Fault(CrashMoment.ANY, 20, late=True)]
    given = {"ratio": 0.75, "slots": 2, "standby": 1, "faults": burst, "tentative": True, "returns": LONG_ABSENCE}
    simulation = copied(flow, seed, **(given | options))
    if room is not None:
        simulation.coordinator.placement.room = room
    return simulation


def run(flow, seed, room=None, **options):
    """What came of such a run; its exact output is whole."""
    outcome = simulated(flow, seed, room, **options).run()
    assert outcome.published == oracle(flow), f"seed {seed}"
    return outcome


@pytest.mark.parametrize(("flow", "ratio", "room"), [("tiny", 0.5, None), ("spread", 0.6, 1)])
def test_what_has_a_copy_goes_on_and_the_rest_is_corrected(flow, ratio, room):
    outcomes = [run(flow, seed, room, ratio=ratio) for seed in range(3)]
    assert any(each.tentative and each.promoted for each in outcomes)


@pytest.mark.parametrize("seeds", first_and_rest(range(6), 2))
def test_where_everything_has_a_copy_one_loss_makes_nothing_tentative(seeds):
    promoted = 0
    for seed in seeds:
        loss = [Fault(CrashMoment.ANY, 180 + 20 * seed, late=True)]
        outcome = run("tiny", seed, ratio=1.0, faults=loss, standby=2)
        assert (outcome.restored, outcome.tentative.total()) == (0, 0), f"seed {seed}"
        promoted += outcome.promoted
    assert promoted > len(seeds) / 2


@pytest.mark.extended
@pytest.mark.parametrize("ratio", [0.5, 0.75])
@pytest.mark.parametrize("part", parts(20))
def test_two_thousand_bursts(ratio, part):
    outcomes = [
        run("tiny", seed, ratio=ratio, returns=(0.05, LONG_ABSENCE)[seed % 2])
        for seed in range(part * SHARE, (part + 1) * SHARE)
    ]
    assert sum(each.promoted > 0 for each in outcomes) > SHARE / 4
    assert sum(each.tentative.total() > 0 for each in outcomes) > SHARE / 10


@pytest.mark.extended
@pytest.mark.parametrize("flow", ["chain", "joined", "windowed", "fused", "spread"])
@pytest.mark.parametrize("part", parts(4))
def test_schedules_of_every_kind_of_dataflow(flow, part):
    """With the faults, slots and standby workers of each seed."""
    for seed in range(part * 10, (part + 1) * 10):
        drawn = {"faults": faults(flow, seed), "slots": 2 + seed % 2, "standby": 1 + seed % 3}
        run(
            flow,
            seed,
            room=4 * (seed % 2),
            ratio=(0.5, 0.75, 1.0)[seed % 3],
            returns=(0.05, LONG_ABSENCE)[seed % 2],
            **drawn,
        )


# What the coordinator tells.


def with_copies(layout, wanted, slots, standby):
    """A coordinator under which all partitions run, and those that are wanted have copies on standby workers."""
    strategy = PartiallyActive(0.0)
    strategy.copied = lambda _: frozenset(wanted)
    return running(layout, strategy, slots, standby, lives=(1, 2), spare_lines=0, tentative=True)


def test_a_promoted_copy_hears_what_is_absent_in_its_new_life():
    """Source 0 and what joins it with source 1 are on one worker. The worker with the copies has no room for the source
    beside the two that are promoted."""
    coordinator = with_copies(two_sources(0, 1, 0), {1, 2}, slots=2, standby=1)
    coordinator.on_lost("w1")
    assert addressed_orders_of(coordinator, Promote, Absent) == [("w2", 1, Promote(3))]
    coordinator.on_lost("w0")
    life = coordinator.lives[2]
    assert addressed_orders_of(coordinator, Promote, Absent) == [
        ("w2", 2, Promote(life)),
        ("w2", 2, Absent(life, (0,))),
    ]
    assert coordinator.absent == {0}


def sending_to_a_copy(frames_in_flight):
    """A partition that goes on, and whose only receiver has a copy; both links have so much credit."""
    layout = chain(0, 0, 0)
    partition = lone_by_batch(layout, layout.partitions[1], PartitionLimits(frames_in_flight))
    partition.restore(Restore(1, initial_line(layout)[1], ()), {})
    (output,) = (channel.id for channel in partition.outputs)
    for message in (Go(1), Attach(2, 0, (output,)), Attached(2)):
        partition.on_order(message)
    partition.take_effects()
    return partition, output


def sent(partition):
    return [(each.frame.kind, each.to_copy) for each in partition.take_effects() if isinstance(each, Send)]


def test_a_copy_gets_nothing_that_is_tentative():
    partition, _ = sending_to_a_copy(8)
    partition.sending.end_batch(0)
    assert sent(partition) == [(FrameKind.BORDER, True), (FrameKind.BORDER, False)]
    partition._turn_tentative()
    partition.sending.end_batch(1)
    assert sent(partition) == [(FrameKind.TENTATIVE_BORDER, False)]


def test_a_copy_without_credit_holds_nobody_up():
    partition, output = sending_to_a_copy(1)
    for batch in range(3):
        partition.sending.end_batch(batch)
        partition.on_credit(Grant(output, 1, 1))
    assert not partition.sending.congested
    assert sum(to_copy for _, to_copy in sent(partition)) == 1
    for _ in range(2):
        partition.on_credit(Grant(output, 2, 1))
    assert sum(to_copy for _, to_copy in sent(partition)) == 2, "what had to wait comes once there is room"
    partition.sending.end_batch(3)
    partition.sending.end_batch(4)
    assert partition.sending.congested, "by the receiver itself"


def stored(coordinator, number):
    """Everybody has taken the checkpoint with this number."""
    for at in coordinator.history.line:
        taken = {"number": number, "epoch": 1, "state_keys": (f"{at.partition}/state-{number}-1",)}
        coordinator.on_message(Stored(1, replace(at, **taken)))


def test_a_copy_that_falls_far_behind_the_stable_line_is_made_anew():
    coordinator = with_copies(chain(0, 0, 0), {0, 1}, slots=1, standby=1)
    for number in range(1, 4):
        stored(coordinator, number)
        coordinator.on_message(Passed(0, 2, number))
    assert addressed_orders_of(coordinator, Dismiss, Restore) == []
    stored(coordinator, 4)
    found = addressed_orders_of(coordinator, Dismiss, Restore, Attach)
    assert [(number, type(message)) for _, number, message in found] == [(1, Dismiss), (1, Restore), (0, Attach)]
    assert found[1][2].checkpoint.number == 4


def test_a_copy_that_was_long_in_the_making_may_catch_up():
    coordinator = with_copies(chain(0, 0, 0), set(), slots=1, standby=1)
    coordinator.copies.wanted = frozenset({1})
    stored(coordinator, 1)
    for number in range(2, 12):
        stored(coordinator, number)
    coordinator.on_message(Ready(1, coordinator.copies.of[1].life))
    stored(coordinator, 12)
    assert addressed_orders_of(coordinator, Dismiss) == []
    assert coordinator.copies.of[1].number == 1


@pytest.mark.parametrize("is_dropped", [False, True])
def test_what_a_copy_reads_is_deleted_when_it_has_read_it_or_is_dropped(is_dropped):
    coordinator = with_copies(chain(0, 0, 0), set(), slots=1, standby=1)
    coordinator.copies.wanted = frozenset({1})
    stored(coordinator, 1)
    (order,) = [message for *_, message in addressed_orders_of(coordinator, Restore)]
    stored(coordinator, 2)
    assert deleted(coordinator) == {"0/state-1-1", "2/state-1-1"}
    if is_dropped:
        coordinator.adapt(frozenset())
    else:
        coordinator.on_message(Ready(1, order.epoch))
    assert deleted(coordinator) == set(order.checkpoint.state_keys) == {"1/state-1-1"}


# Errors that must be noticed.


def sends_tentative_frames_to_copies(sending, link, frame, real=BatchSending._post):
    if sending.tentative:
        sending.copies.post(frame)
    real(sending, link, frame)


SEEDS = 12


def notice(seed):
    """What is wrong with a run; None if nothing is."""
    flow = ("tiny", "spread")[seed % 2]
    options = {"slots": 3, "standby": 2, "ratio": (0.5, 0.75)[seed % 2], "spare_lines": 0}
    return notice_of(simulated(flow, seed, room=0, **options).run, flow)


def test_the_simulation_notices_copies_that_get_what_is_tentative(monkeypatch):
    plant = BatchSending, "_post", sends_tentative_frames_to_copies, "the copy .* is tentative"
    assert_noticed(monkeypatch, plant, notice, range(SEEDS))
