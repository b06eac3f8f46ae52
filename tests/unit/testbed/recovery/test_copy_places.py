"""Which copies have a place at the start: room on a worker that shares neither host nor failure domain."""

import random

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import maximum_bipartite_matching

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


def most_places(copied, slots, given):
    """How many copies can have a place at once, by a matching of copies with seats."""
    room = max(sum(each.slot(slots) == slot for each in LAYOUT.partitions) for slot in range(slots))
    primaries = {each.number: given[each.slot(slots)] for each in LAYOUT.partitions}
    may = [
        [worker.is_apart_from(primaries[number]) for worker in given[slots:] for _ in range(room)] for number in copied
    ]
    return int((maximum_bipartite_matching(csr_matrix(np.array(may, int)), perm_type="column") >= 0).sum())


def test_no_copy_goes_without_a_place_that_another_order_would_give_it():
    source, all_placed = random.Random(3), 0
    for _ in range(400):
        slots = source.choice([2, 3, 4])
        copied = frozenset(source.sample(sorted(ALL), source.randint(8, len(ALL))))
        domains = [source.sample("abcd", source.choice([1, 1, 2])) for _ in range(slots + source.choice([2, 3, 4]))]
        given = workers(*domains)
        without = without_a_place(LAYOUT, slots, copied, given)
        assert len(copied) - len(without) == most_places(sorted(copied), slots, given)
        all_placed += not without
    assert all_placed > 50
