"""The clock of a slot's partitions: when checkpoints and progress are due."""

import pytest

from testbed.runtime.slot.timers import DRAINING_INTERVAL_S, PROGRESS_S, Timers


def due(timers, moments_s):
    return [at_s for at_s in moments_s if timers.checkpoint_due(at_s)]


def test_checkpoints_are_due_once_an_interval_from_the_start_of_an_epoch_to_its_end():
    timers = Timers(10.0)
    assert due(timers, (0.0, 1e9)) == []
    timers.start(100.0)
    assert due(timers, (109.0, 110.0, 110.1, 119.9, 120.0)) == [110.0, 120.0]
    timers.begin(0)
    assert due(timers, (130.0, 1e9)) == []


def test_a_later_start_in_the_same_epoch_puts_nothing_off():
    """Every partition of a slot starts; they have one timer."""
    timers = Timers(10.0)
    timers.start(100.0)
    timers.start(105.0)
    assert due(timers, (110.0, 115.0)) == [110.0]


@pytest.mark.parametrize(("seat", "first_s"), [(0, 2.5), (1, 5.0), (3, 10.0), (5, 5.0)])
def test_slots_in_turn_are_due_one_after_the_other_in_every_epoch(seat, first_s):
    timers = Timers(10.0, in_turn=4)
    for started_s in (100.0, 1000.0):
        timers.begin(seat)
        timers.start(started_s)
        moments_s = [started_s + at_s for at_s in (first_s - 0.1, first_s, first_s + 9.9, first_s + 10.0)]
        assert due(timers, moments_s) == [moments_s[1], moments_s[3]]


def test_after_a_long_stop_one_checkpoint_is_made_up_for_and_the_slot_is_in_step_with_the_others():
    timers = Timers(10.0)
    timers.start(100.0)
    assert due(timers, (155.0, 156.0, 159.9, 160.0, 165.0, 170.0)) == [155.0, 160.0, 170.0]


def test_who_hurries_takes_checkpoints_fast_but_never_slower_than_before():
    timers = Timers(10.0)
    timers.start(100.0)
    timers.hurry(101.0)
    assert due(timers, (101.0, 101.0 + DRAINING_INTERVAL_S)) == [101.0 + DRAINING_INTERVAL_S]
    fast = Timers(DRAINING_INTERVAL_S / 2)
    fast.hurry(0.0)
    assert fast.interval_s == DRAINING_INTERVAL_S / 2


def test_progress_is_due_at_once_and_then_after_a_while():
    timers = Timers(10.0)
    moments_s = (5.0, 5.0 + PROGRESS_S / 2, 5.0 + PROGRESS_S)
    assert [timers.progress_due(at_s) for at_s in moments_s] == [True, False, True]
