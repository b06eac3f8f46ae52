"""The coordinator by itself: workers, epochs, rounds, what is stable and what is garbage."""

import pytest

from experiments.errors import EnvironmentFailure
from testbed.core.checkpoints import OUTSIDE, Checkpoint
from testbed.core.control import Failure, Go, NotStored, Published, Ready, Restore, Round, Stable, Stored, Unreadable
from testbed.core.coordinator.coordinator import Coordinator, Phase
from testbed.core.dataflow.graph import Dataflow
from testbed.core.dataflow.layout import lay_out
from testbed.core.effects import Delete, Order
from testbed.protocols import PROTOCOLS
from tests.unit.testbed.recovery.orders import deleted, orders_of
from tests.unit.testbed.small_flows import EVENTS, laid_out


def pair(protocol, spare_lines=0, slots=1):
    """A source, number 0, and a sink, number 1, on channel 0; everything is ready."""
    flow = Dataflow("pair")
    flow.source("a", EVENTS).sink("b")
    coordinator = Coordinator(lay_out(flow), PROTOCOLS[protocol], slots, spare_lines)
    coordinator.on_joined("first")
    make_ready(coordinator)
    coordinator.take_effects()
    return coordinator


def make_ready(coordinator):
    for number in range(2):
        coordinator.on_message(Ready(number, coordinator.epoch))


def stored(coordinator, partition, number, count):
    """Tell of a checkpoint after `count` messages on the channel."""
    stem = f"{'ab'[partition]}.0/{{}}-{number}-{coordinator.epoch}"
    sent, received = ({0: count}, {}) if partition == 0 else ({}, {0: count})
    logged = {0: count} if partition == 0 else {OUTSIDE: number}
    state, log = (stem.format("state"),), stem.format("log")
    found = Checkpoint(partition, number, coordinator.epoch, sent, received, state, log, logged)
    coordinator.on_message(Stored(coordinator.epoch, found))


def test_slots_go_as_a_whole_to_workers_that_come():
    layout, _ = laid_out("joined")
    coordinator = Coordinator(layout, PROTOCOLS["uncoordinated"], slots=2)
    coordinator.on_joined("one")
    assert (coordinator.phase, orders_of(coordinator)) == (Phase.WAITING, [])
    coordinator.on_joined("two")
    hosts = {each.partition: each.worker for each in coordinator.take_effects() if isinstance(each, Order)}
    assert {layout.partitions[number].index: worker for number, worker in hosts.items()} == {0: "one", 1: "two"}
    coordinator.on_lost("one")
    coordinator.on_joined("three")
    hosts = {e.partition: e.worker for e in coordinator.take_effects() if isinstance(getattr(e, "message", 0), Restore)}
    assert {layout.partitions[number].index: worker for number, worker in hosts.items()} == {0: "three", 1: "two"}


def test_everyone_waits_for_a_replacement_and_hears_of_the_failure():
    layout, _ = laid_out("joined")
    coordinator = Coordinator(layout, PROTOCOLS["uncoordinated"], slots=2)
    coordinator.on_joined("one")
    coordinator.on_joined("two")
    coordinator.take_effects()
    coordinator.on_lost("two")
    told = orders_of(coordinator)
    assert coordinator.phase is Phase.WAITING
    assert all(isinstance(message, Failure) and number not in message.partitions for number, message in told)
    coordinator.on_lost("nobody")
    assert (coordinator.epoch, orders_of(coordinator)) == (1, [])


def test_nobody_begins_before_all_are_ready():
    coordinator = pair("uncoordinated")
    coordinator.on_lost("first")
    coordinator.on_joined("second")
    coordinator.take_effects()
    coordinator.on_message(Ready(0, coordinator.epoch))
    coordinator.on_message(Ready(1, coordinator.epoch - 1))
    assert orders_of(coordinator, Go) == []
    coordinator.on_message(Ready(1, coordinator.epoch))
    assert len(orders_of(coordinator, Go)) == 2


def test_a_round_begins_when_the_one_before_is_reported_by_all():
    coordinator = pair("coordinated")
    for _ in range(2):
        coordinator.on_round_due()
    assert orders_of(coordinator) == [(0, Round(1, 1))]
    stored(coordinator, 0, 1, 4)
    coordinator.on_round_due()
    assert orders_of(coordinator, Round) == []
    coordinator.on_message(NotStored(1, 1, 1))
    coordinator.on_round_due()
    assert orders_of(coordinator, Round) == [(0, Round(1, 2))]
    assert [each.number for each in coordinator.history.line] == [0, 0]


def test_output_is_published_when_its_line_has_so_many_spare_ones_after_it():
    coordinator = pair("uncoordinated", spare_lines=1)
    stored(coordinator, 0, 1, 4)
    stored(coordinator, 1, 1, 4)
    stored(coordinator, 1, 2, 4)
    assert orders_of(coordinator, Stable)[-1] == (1, Stable(1, 1))
    assert [each.number for each in coordinator.history.line] == [1, 2]


def test_garbage_is_what_no_line_can_need_any_more():
    coordinator = pair("uncoordinated")
    stored(coordinator, 0, 1, 4)
    stored(coordinator, 1, 1, 3)
    assert not [each for each in coordinator.take_effects() if isinstance(each, Delete)]
    stored(coordinator, 1, 2, 4)
    assert deleted(coordinator) == {"b.0/state-1-1", "a.0/log-1-1"}
    coordinator.on_message(Published(1, 1))
    assert deleted(coordinator) == {"b.0/log-1-1"}


def test_a_recovery_names_the_logs_with_what_is_in_flight_or_unpublished():
    coordinator = pair("uncoordinated")
    stored(coordinator, 0, 1, 4)
    stored(coordinator, 0, 2, 6)
    stored(coordinator, 1, 1, 4)
    coordinator.on_lost("first")
    coordinator.on_joined("second")
    found = dict(orders_of(coordinator, Restore))
    assert found[0].log_keys == ("a.0/log-2-1",)
    assert found[1].log_keys == ("b.0/log-1-1",)


def test_what_a_partition_is_told_to_read_is_not_deleted_before_it_is_ready():
    """The log becomes garbage by a message that its sink has sent before it was lost."""
    coordinator = pair("uncoordinated")
    stored(coordinator, 0, 1, 4)
    stored(coordinator, 1, 1, 4)
    coordinator.on_lost("first")
    coordinator.on_joined("second")
    assert dict(orders_of(coordinator, Restore))[1].log_keys == ("b.0/log-1-1",)
    coordinator.on_message(Published(1, 1))
    coordinator.on_message(Ready(1, coordinator.epoch - 1))
    assert deleted(coordinator) == set()
    coordinator.on_message(Ready(1, coordinator.epoch))
    assert deleted(coordinator) == {"b.0/log-1-1"}


def test_what_a_later_recovery_does_not_read_is_deleted():
    coordinator = pair("uncoordinated")
    stored(coordinator, 0, 1, 4)
    stored(coordinator, 1, 1, 4)
    coordinator.take_effects()
    coordinator.on_lost("first")
    coordinator.on_joined("second")
    coordinator.on_message(Published(1, 1))
    coordinator.on_lost("second")
    assert deleted(coordinator) == set()
    coordinator.on_joined("third")
    assert deleted(coordinator) == {"b.0/log-1-1"}


def test_messages_of_an_earlier_epoch_do_not_count():
    coordinator = pair("uncoordinated")
    coordinator.on_lost("first")
    coordinator.on_joined("second")
    coordinator.on_message(Stored(1, Checkpoint(0, 1, 1, {0: 4}, {})))
    assert [each.number for each in coordinator.history.line] == [0, 0]


def test_an_object_that_cannot_be_read_costs_its_checkpoints_and_the_stable_line_everything():
    coordinator = pair("uncoordinated", spare_lines=1)
    for number in (1, 2, 3):
        stored(coordinator, 0, number, number)
        stored(coordinator, 1, number, number)
    newest = [each.number for each in coordinator.history.line]
    stable = [each.number for each in coordinator.history.stable]
    coordinator.on_lost("first")
    coordinator.on_joined("second")
    coordinator.on_message(Unreadable(1, coordinator.epoch, "b.0/state-3-1"))
    assert stable <= [each.number for each in coordinator.history.line] < newest
    key = coordinator.history.stable[1].state_keys[0]
    with pytest.raises(EnvironmentFailure, match=r"no line of checkpoints is left for b\.0"):
        coordinator.on_message(Unreadable(1, coordinator.epoch, key))
