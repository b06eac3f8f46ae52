"""Schedules under which a coordinator once did wrong; the enumeration found them."""

from testbed.core.control import Failure, Go, Ready, Restore, Stable, Stored
from testbed.recovery import STRATEGIES, Passive
from tests.unit.testbed.recovery.coordinators import joined
from tests.unit.testbed.recovery.orders import orders_of
from tests.unit.testbed.recovery.small_layouts import chain


def ready(coordinator, epoch, *partitions):
    for partition in partitions:
        coordinator.on_message(Ready(partition, epoch))


def test_who_was_lost_meanwhile_is_not_told_to_go():
    coordinator = joined(chain(0, 1, 0), Passive(), 2)
    coordinator.on_lost("w0")
    coordinator.on_joined("w2")
    coordinator.take_effects()
    ready(coordinator, 1, 1)
    assert orders_of(coordinator, Go) == [(1, Go(1))]


def test_who_is_restored_hears_who_is_still_down():
    coordinator = joined(chain(0, 1, 2), Passive(), 3)
    ready(coordinator, 1, 0, 1, 2)
    coordinator.on_lost("w1")
    coordinator.on_lost("w0")
    coordinator.take_effects()
    coordinator.on_joined("w3")
    (restore, failure) = orders_of(coordinator, Restore, Failure)
    assert (restore[0], failure) == (0, (0, Failure(2, (1,))))


def test_everybody_hears_what_is_stable_since_everybody_retains_output():
    coordinator = joined(layout := chain(0, 0, 0), STRATEGIES["global"](), 1, spare_lines=0)
    ready(coordinator, 1, 0, 1, 2)
    coordinator.take_effects()
    for initial in coordinator.history.line:
        taken = {"number": 1, "epoch": 1, "state_keys": (f"{layout.partitions[initial.partition].name}/state-1-1",)}
        coordinator.on_message(Stored(1, type(initial)(**{**vars(initial), **taken})))
    assert orders_of(coordinator, Stable) == [(number, Stable(1, 1)) for number in range(3)]
