"""Which worker hosts which partition: slots, seats beyond them, and partitions that were moved."""

import pytest

from testbed.core.coordinator.placement import Placement, Worker
from tests.unit.testbed.recovery.small_layouts import chain, diamond


def placed(*workers, slots=2):
    """Partitions 0 and 2 belong to slot 0, partition 1 to slot 1."""
    placement = Placement(chain(0, 1, 0).partitions, slots)
    for name in workers:
        placement.join(Worker(name))
    return placement


def hosts(placement):
    return [placement.worker_of(number) for number in range(3)]


def test_a_slot_goes_as_a_whole_to_the_worker_that_came_first():
    placement = placed("a", "b", "c", "d")
    assert hosts(placement) == ["a", "b", "a"]
    assert placement.lose("a") == {0, 2}
    assert hosts(placement) == [None, "b", None]
    placement.fill()
    assert hosts(placement) == ["c", "b", "c"]
    assert placement.spare == ["d"]


def test_a_moved_partition_stays_until_its_worker_is_lost():
    placement = placed("a", "b", "c")
    placement.move(2, "c")
    assert hosts(placement) == ["a", "b", "c"]
    assert (placement.seat("c"), placement.moved, placement.spare) == (2, {2: 2}, [])
    placement.lose("a")
    placement.move(0, "c")
    placement.join(Worker("d"))
    assert hosts(placement) == ["c", "b", "c"]
    assert placement.hosts[0] == "d"
    assert set(placement.hosting) == {"b", "c"}
    assert placement.lose("c") == {0, 2}
    assert hosts(placement) == ["d", "b", "d"]


def test_moving_a_partition_into_its_slot_is_as_if_it_had_never_left():
    placement = placed("a", "b", "c")
    placement.move(2, "c")
    placement.move(2, "a")
    assert (hosts(placement), placement.moved) == (["a", "b", "a"], {})


def test_what_is_left_of_a_slot_moves_beyond_the_slots_if_nobody_is_spare():
    placement = placed("a", "b", "c")
    placement.move(2, "c")
    placement.lose("a")
    placement.fill()
    assert hosts(placement) == ["c", "b", "c"]


def test_a_worker_beyond_the_slots_takes_no_more_than_the_largest_slot_has():
    placement = placed("a", "b", "c")
    placement.move(2, "c")
    placement.lose("b")
    placement.lose("a")
    placement.fill()
    assert hosts(placement) == ["c", None, "c"]
    placement.join(Worker("d"))
    assert hosts(placement) == ["c", "d", "c"], "it takes the first slot, of which everything has moved"


@pytest.mark.parametrize(("room", "then"), [(0, [None, None, "c"]), (2, ["c", None, "c"]), (3, ["c", "c", "c"])])
def test_a_worker_beyond_the_slots_takes_what_it_is_given_room_for(room, then):
    """Partition 2 is promoted there, even without room."""
    placement = Placement(chain(0, 1, 0).partitions, slots=2, standby_room=room)
    for name in "abc":
        placement.join(Worker(name))
    placement.move(2, "c")
    placement.lose("b")
    placement.lose("a")
    placement.fill()
    assert hosts(placement) == then


def test_a_worker_whose_slot_is_partly_elsewhere_takes_what_others_have_no_room_for():
    placement = Placement(diamond(0, 1, 0, 1).partitions, slots=2)
    for name in ("a", "b", "c", "d"):
        placement.join(Worker(name))
    placement.lose("a")
    placement.lose("b")
    placement.move(0, "c")
    placement.move(1, "c")
    placement.fill()
    assert [placement.worker_of(number) for number in range(4)] == ["c", "c", "d", "d"]


def test_a_worker_whose_slot_is_whole_takes_nothing_of_another():
    placement = placed("a", "b")
    placement.lose("a")
    placement.fill()
    assert hosts(placement) == [None, "b", None]


def test_a_seat_beyond_the_slots_is_given_again_once_it_is_free():
    placement = placed("a", "b", "c", "d", "e")
    assert [placement.seat(name) for name in "cd"] == [2, 3]
    placement.lose("c")
    assert placement.seat("e") == 2


@pytest.mark.parametrize(
    ("one", "other", "apart"),
    [
        (Worker("a"), Worker("a"), False),
        (Worker("a"), Worker("b"), True),
        (Worker("a", "10.0.0.1"), Worker("b", "10.0.0.1"), False),
        (Worker("a", "10.0.0.1", frozenset({"rack"})), Worker("b", "10.0.0.2", frozenset({"rack"})), False),
        (Worker("a", "10.0.0.1", frozenset({"rack"})), Worker("b", "10.0.0.2", frozenset({"other"})), True),
        (Worker("a", "10.0.0.1"), Worker("b", "10.0.0.2"), True),
    ],
)
def test_two_workers_are_apart_if_nothing_that_is_known_takes_both(one, other, apart):
    assert one.is_apart_from(other) is apart


def test_hosts_that_stand_by_take_no_slot_before_all_slots_were_taken_once():
    placement = Placement(chain(0, 1, 0).partitions, 2, frozenset({"h2"}))
    placement.join(Worker("late", "h2"))
    placement.join(Worker("first", "h0"))
    assert (placement.hosts, placement.spare) == ({0: "first"}, ["late"])
    placement.lose("first")
    placement.fill()
    assert not placement.hosts
    for name in ("again", "second"):
        placement.join(Worker(name, "h0"))
    assert (placement.hosts, placement.spare) == ({0: "again", 1: "second"}, ["late"])
    placement.lose("second")
    placement.fill()
    assert placement.hosts == {0: "again", 1: "late"}
