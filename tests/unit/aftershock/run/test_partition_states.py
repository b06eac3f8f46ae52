"""Which partitions of the testbed are up, as its journal tells it step by step."""

from aftershock.run.partition_states import PartitionStates
from journal.events.common import DriverStarted
from journal.events.testbed import (
    Copied,
    EpochReady,
    PartitionsAbsent,
    PartitionTentative,
    PlanChanged,
    Recovering,
    WorkerLost,
)
from tests.unit.example_events import example

NAMES = ("a.0", "a.1", "b.0", "b.1")
LINE = dict.fromkeys(NAMES, 0)


def after(*events):
    """The states of all partitions, in the order of the dataflow."""
    states = PartitionStates()
    for event in (example(Recovering, epoch=1, line=LINE, restored=NAMES), example(EpochReady, epoch=1), *events):
        states.take(event)
    found = states.states()
    assert tuple(found) == NAMES
    return [state.value for state in found.values()]


def lost(*partitions):
    return example(WorkerLost, partitions=partitions)


def absent(*partitions):
    return PartitionsAbsent(partitions)


def back(*partitions, epoch=2):
    return example(Recovering, epoch=epoch, line=LINE, restored=partitions)


TENTATIVE = PartitionTentative("b.1", 1, 7)


def test_nothing_is_known_before_the_first_recovery():
    assert PartitionStates().states() == {}


def test_the_first_recovery_restores_all():
    states = PartitionStates()
    states.take(example(Recovering, epoch=1, line=LINE, restored=NAMES))
    assert set(states.states().values()) == {"restoring"}
    states.take(example(EpochReady, epoch=1))
    assert set(states.states().values()) == {"up"}


def test_who_is_lost_is_absent_until_it_is_restored():
    assert after(lost("a.0")) == ["absent", "up", "up", "up"]
    assert after(lost("a.0"), back("a.0")) == ["restoring", "up", "up", "up"]
    assert after(lost("a.0"), back("a.0"), example(EpochReady, epoch=2)) == ["up"] * 4


def test_a_loss_of_who_had_nothing_and_one_of_an_old_journal_change_nothing():
    assert after(lost(), example(WorkerLost, partitions=None)) == ["up"] * 4


def test_who_gets_input_only_from_absent_ones_is_absent_until_they_are_not():
    assert after(lost("a.0"), absent("a.0", "b.0")) == ["absent", "up", "absent", "up"]
    assert after(lost("a.0"), absent("a.0", "b.0"), absent(), back("a.0")) == ["restoring", "up", "up", "up"]


def test_who_goes_on_without_input_is_tentative_until_it_is_restored():
    assert after(lost("a.0"), absent("a.0"), TENTATIVE) == ["absent", "up", "up", "tentative"]
    restored = (lost("a.0"), absent("a.0"), TENTATIVE, absent(), back("a.0", "b.1"))
    assert after(*restored) == ["restoring", "up", "up", "restoring"]
    assert after(*restored, example(EpochReady, epoch=2)) == ["up"] * 4


def test_who_is_tentative_and_lost_is_absent():
    assert after(TENTATIVE, lost("b.1")) == ["up", "up", "up", "absent"]


def test_whose_copy_takes_its_place_is_the_only_one_that_is_restored():
    promoted = example(Recovering, epoch=2, line=LINE, restored=(), promoted=("a.0",))
    assert after(lost("a.0"), promoted) == ["restoring", "up", "up", "up"]


def test_copies_are_those_that_were_told_last():
    states = PartitionStates()
    states.take(Copied(2, {"a.0": "slot-4", "b.0": "slot-5"}))
    states.take(Copied(3, {"b.0": "slot-5"}))
    assert states.copied == {"b.0": "slot-5"}


def test_what_a_new_plan_leaves_out_has_no_copy_any_more():
    states = PartitionStates()
    states.take(Copied(2, {"a.0": "slot-4", "b.0": "slot-5"}))
    states.take(example(PlanChanged, copied=("b.0", "b.1")))
    assert states.copied == {"b.0": "slot-5"}


def test_who_was_promoted_has_no_copy_any_more():
    states = PartitionStates()
    states.take(Copied(2, {"a.0": "slot-4", "b.0": "slot-5"}))
    states.take(example(Recovering, epoch=3, line=LINE, restored=("a.1",), promoted=("a.0",)))
    assert states.copied == {"b.0": "slot-5"}


def test_an_epoch_that_is_ready_does_not_end_a_later_recovery():
    both = (lost("a.0"), back("a.0"), lost("b.0"), back("b.0", epoch=3))
    assert after(*both, example(EpochReady, epoch=2)) == ["up", "up", "restoring", "up"]
    assert after(*both, example(EpochReady, epoch=2), example(EpochReady, epoch=3)) == ["up"] * 4


def test_an_epoch_that_is_ready_does_not_end_an_earlier_recovery():
    """Recoveries of different partitions go on side by side, and one that reads a large state takes longer."""
    both = (lost("a.0"), back("a.0"), lost("b.0"), back("b.0", epoch=3))
    assert after(*both, example(EpochReady, epoch=3)) == ["restoring", "up", "up", "up"]


def test_who_is_restored_once_more_waits_for_the_later_epoch():
    again = (lost("a.0"), back("a.0"), back("a.0", epoch=3))
    assert after(*again, example(EpochReady, epoch=2)) == ["restoring", "up", "up", "up"]


def test_a_recovery_whose_partitions_were_lost_again_restores_nobody():
    assert after(lost("a.0"), back()) == ["absent", "up", "up", "up"]
    assert after(lost("a.0"), back(), example(EpochReady, epoch=2)) == ["absent", "up", "up", "up"]


def test_with_the_driver_everything_is_absent_until_the_next_one_restores_it():
    ended = [Copied(1, {"a.0": "slot-3"}), absent("b.1"), example(DriverStarted)]
    assert after(*ended) == ["absent"] * 4
    assert after(*ended, back("a.0", "a.1")) == ["restoring", "restoring", "absent", "absent"]
    assert after(*ended, back("a.0", "a.1"), example(EpochReady, epoch=2)) == ["up", "up", "absent", "absent"]
