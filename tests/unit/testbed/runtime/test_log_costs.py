"""What checks and recoveries cost, measured: the usual costs at first, then what this slot has measured."""

import pytest

from testbed.runtime.slot.log_costs import ENOUGH, USUAL, LogCosts


def test_without_measurements_the_usual_costs_count():
    costs = LogCosts()
    assert vars(costs).items() >= vars(USUAL).items()
    costs.add_read(ENOUGH - 1, 1.0)
    costs.add_checks(ENOUGH - 1, 1.0)
    costs.set_taken_in(0, 0.0, 0.0)
    costs.set_taken_in(ENOUGH - 1, 1.0, 1.0)
    assert vars(costs).items() >= vars(USUAL).items()


def test_then_what_was_measured_does():
    costs = LogCosts()
    costs.add_read(2 * ENOUGH, 0.5)
    for _ in range(2):
        costs.add_checks(ENOUGH, 3.0)
        costs.add_checks(0, 99.0)  # nothing was due
    costs.set_taken_in(500, 10.0, 100.0)
    costs.set_taken_in(500 + 4 * ENOUGH, 12.0, 120.0)
    assert costs.entry_s == 0.5 / (2 * ENOUGH)
    assert costs.check_s == 3.0 / ENOUGH
    assert costs.record_s == 2.0 / (4 * ENOUGH)
    assert costs.records_per_s == 4 * ENOUGH / 20


@pytest.mark.parametrize("replayed", [3 * ENOUGH, 5 * ENOUGH])
def test_after_a_recovery_all_is_measured_anew(replayed):
    """The replay itself is told by nobody, whether or not it ends before where the operator was."""
    costs = LogCosts()
    costs.set_taken_in(0, 0.0, 0.0)
    costs.set_taken_in(4 * ENOUGH, 4.0, 4.0)
    costs.add_read(0, 0.0)
    costs.set_taken_in(replayed, 4.5, 5.0)
    costs.set_taken_in(replayed + 2 * ENOUGH, 5.5, 9.0)
    assert costs.record_s == pytest.approx(1.0 / (2 * ENOUGH))
    assert costs.records_per_s == pytest.approx(2 * ENOUGH / 4.0)


def test_a_clock_that_stands_still_divides_by_nothing():
    costs = LogCosts()
    costs.set_taken_in(0, 0.0, 0.0)
    costs.set_taken_in(ENOUGH, 0.0, 0.0)
    assert (costs.record_s, costs.records_per_s) == (USUAL.record_s, USUAL.records_per_s)
