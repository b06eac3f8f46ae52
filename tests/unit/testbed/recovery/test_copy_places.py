"""Which copies have a place at the start: room on a worker that shares neither host nor failure domain."""

import pytest

from testbed.core.coordinator.placement import Worker
from testbed.recovery.partially_active import without_a_place
from tests.unit.testbed.recovery.moving_loads import LAYOUT

ALL = frozenset(range(len(LAYOUT.partitions)))


def workers(*of_hosts):
    """A worker on a host of its own by its domains."""
    return [Worker(f"w{at}", f"host-{at}", frozenset(domains)) for at, domains in enumerate(of_hosts)]


@pytest.mark.parametrize(
    "of_hosts",
    [
        ("", "", "", ""),
        ("a", "a", "b", "b"),
        ("a", "b", "a", "b"),
        ("b", "a", "c", "a"),  # only the third may have the copies of the second, so those of the first leave it free
    ],
)
def test_two_slots_find_places_for_all_copies_on_two_that_stand_by(of_hosts):
    assert not without_a_place(LAYOUT, 2, ALL, workers(*of_hosts))


@pytest.mark.parametrize(
    ("of_hosts", "slots"),
    [(("a", "b", "a", "a"), [0] * 17), (("a", "b", "ab", "ab"), [0] * 17 + [1] * 15)],
)
def test_copies_for_which_only_their_own_domain_has_room_have_no_place(of_hosts, slots):
    """The first slot has 17 of the 32 partitions."""
    found = without_a_place(LAYOUT, 2, ALL, workers(*of_hosts))
    assert sorted(LAYOUT.partitions[number].slot(2) for number in found) == slots


def test_one_worker_alone_has_room_for_the_copies_of_one_slot():
    assert len(without_a_place(LAYOUT, 2, ALL, workers("a", "a", "a", "b"))) == 15


def test_slots_of_the_primarys_host_are_no_place():
    one_host = [Worker(f"w{at}", "host") for at in range(3)]
    assert without_a_place(LAYOUT, 2, frozenset({0}), one_host) == {0}
