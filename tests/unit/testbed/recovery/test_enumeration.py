"""Coordinator and strategies under every interleaving of faults, orders, messages and checkpoints on small layouts.

A state has the real coordinator, abstract workers, and what is under way between them. A worker crashes or is given up
and goes on, at any time; its replacement comes at any time later, also before the loss is noticed.
"""

import pytest

from testbed.core.control import Failure, Rejoin
from testbed.core.coordinator.coordinator import Coordinator
from testbed.core.coordinator.history import History
from testbed.core.coordinator.line_orders import LineOrders
from testbed.core.coordinator.outbox import Outbox
from testbed.core.coordinator.recoveries_underway import RecoveriesUnderway, Underway
from testbed.recovery import STRATEGIES, Blocking
from tests.unit.testbed.campaigns import paired
from tests.unit.testbed.recovery.abstract import Wrong
from tests.unit.testbed.recovery.exploring import Explored
from tests.unit.testbed.recovery.small_layouts import chain, diamond, two_sources

LAYOUTS = {
    "chain on two slots": chain(0, 1, 0),
    "chain on three slots": chain(0, 1, 2),
    "two sources on two slots": two_sources(0, 1, 0),
    "two sources on three slots": two_sources(0, 1, 2),
    "diamond on two slots": diamond(0, 1, 0, 1),
}
ONE_FAULT = {"most_checkpoints": 1, "faults": 1, "spoilable": 1, "spare_lines": 1}
TWO_FAULTS = {"most_checkpoints": 0, "faults": 2}
THREE_SLOTS = [layout for layout in LAYOUTS if layout.endswith("three slots")]
# Where each strategy takes half a minute, `make test-all` enumerates these, and `-m slow` the others.
ENUMERATED = ("global", "passive", "source-replay")
NIGHTLY = [pytest.param(each, marks=[pytest.mark.slow] * (each not in ENUMERATED)) for each in STRATEGIES]


def explored(layout, strategy, **limits):
    of = LAYOUTS[layout]
    return Explored(of, strategy, len({each.index for each in of.partitions}), **limits)


@pytest.mark.parametrize(
    ("strategy", "layout"),
    paired(
        STRATEGIES,
        ["chain on two slots", "chain on three slots", "two sources on two slots"],
        left_out=["chain on three slots"],
    ),
)
def test_every_order_of_events_with_one_fault(layout, strategy):
    found = explored(layout, strategy, **ONE_FAULT)
    assert found.states > 3000, f"{found.states} states"


@pytest.mark.extended
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("layout", [layout for layout in LAYOUTS if layout not in THREE_SLOTS])
def test_every_order_of_events_with_two_faults(layout, strategy):
    found = explored(layout, strategy, **TWO_FAULTS)
    assert found.states > 10_000, f"{found.states} states"


@pytest.mark.extended
@pytest.mark.parametrize("strategy", NIGHTLY)
@pytest.mark.parametrize("layout", THREE_SLOTS)
def test_every_order_of_events_with_two_faults_on_three_slots(layout, strategy):
    found = explored(layout, strategy, **TWO_FAULTS)
    assert found.states > 10_000, f"{found.states} states"


@pytest.mark.extended
@pytest.mark.parametrize("strategy", NIGHTLY)
def test_every_order_of_events_with_two_faults_and_a_checkpoint(strategy):
    found = explored("chain on two slots", strategy, most_checkpoints=1, faults=2)
    assert found.states > 100_000, f"{found.states} states"


@pytest.mark.extended
def test_every_order_of_events_with_two_faults_and_a_checkpoint_that_may_be_unreadable():
    found = explored("chain on two slots", "passive", **{**ONE_FAULT, "faults": 2})
    assert found.states > 300_000, f"{found.states} states"


@pytest.mark.extended
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("layout", ["chain on two slots", "two sources on two slots"])
def test_every_order_of_events_with_two_checkpoints(layout, strategy):
    found = explored(layout, strategy, **{**ONE_FAULT, "most_checkpoints": 2})
    assert found.states > 30_000, f"{found.states} states"


def go_at_first_ready(recoveries, message, real=RecoveriesUnderway.on_ready):
    real(recoveries, message)
    if message.epoch in recoveries.of:
        recoveries.of[message.epoch].awaited.clear()


def survivors_too(strategy, world):
    return world.everyone if world.down <= world.placed and world.down else frozenset()


def inputs_forgotten(orders, *which, real=LineOrders.rejoins):
    found = real(orders, *which)
    return {number: Rejoin(each.epoch, each.number, each.outputs, ()) for number, each in found.items()}


def nobody_rejoins(orders, *which):
    return {}


def nobody_goes_on(coordinator, real=Coordinator._go_where_ready):
    for epoch, recovery in coordinator.recoveries.of.items():
        recovery.taking_part = {each for each in recovery.taking_part if coordinator.lives[each] == epoch}
    real(coordinator)


def sent_again_too_late(orders, *which, real=LineOrders.rejoins):
    found = real(orders, *which)
    return {n: Rejoin(each.epoch, each.number + 1, each.outputs, each.inputs) for n, each in found.items()}


def newest_line_announced(coordinator, real=Coordinator._announce_stable):
    lines = coordinator.history._lines
    lines.insert(0, lines[-1])
    real(coordinator)
    del lines[0]


def stable_line_deleted(history, real=History._trim):
    return sorted(set(real(history)) | {key for at in history.stable for key in at.state_keys})


def failure_untold(outbox, partitions, message, real=Outbox.order):
    found = {number: message(number) for number in partitions}
    real(outbox, [number for number in found if not isinstance(found[number], Failure)], message)


def lost_are_awaited(underway, partitions):
    return


PLANTS = {
    "Go once one is ready": (RecoveriesUnderway, "on_ready", go_at_first_ready, "used in epoch 1"),
    "survivors are restored": (Blocking, "restored_now", survivors_too, "are restored and only"),
    "a receiver keeps the old epoch": (LineOrders, "rejoins", inputs_forgotten, "used in epoch 2"),
    "neighbours are told nothing": (LineOrders, "rejoins", nobody_rejoins, "is told nothing more"),
    "neighbours are not told to go on": (Coordinator, "_go_where_ready", nobody_goes_on, "stuck: .* to go"),
    "output comes from a checkpoint too late": (LineOrders, "rejoins", sent_again_too_late, "retains from 0 to 0"),
    "the newest line is announced": (Coordinator, "_announce_stable", newest_line_announced, "1 is stable"),
    "objects of the stable line are deleted": (History, "_trim", stable_line_deleted, "may be restored and is deleted"),
    "a failure is not told": (Outbox, "order", failure_untold, "is told nothing more and its receiver"),
    "those that were lost are awaited": (Underway, "lose", lost_are_awaited, "stuck: Phase.RESTORING"),
}


@pytest.mark.parametrize("plant", PLANTS)
def test_an_error_in_the_coordinator_is_noticed(plant, monkeypatch):
    owner, name, wrong, notice = PLANTS[plant]
    monkeypatch.setattr(owner, name, wrong)
    with pytest.raises(Wrong, match=notice):
        explored("chain on two slots", "blocking", most_checkpoints=2, faults=1, spare_lines=1)
