"""The policy by cost and benefit costs no more in all than the best fixed Q, which is not known before the run."""

from dataclasses import replace

import pytest

import testbed.output_log.policies as policies
from testbed.output_log.lasting import Lasting
from testbed.output_log.policies import CostBenefit
from tests.unit.testbed.campaigns import parts
from tests.unit.testbed.output_log.total_costs import (
    COSTS,
    FAILURE_RATE,
    WORKLOADS,
    by_cost,
    by_target,
    items_of,
    total_cost,
)

pytestmark = pytest.mark.extended


@pytest.mark.parametrize("workload", WORKLOADS)
def test_it_costs_no_more_than_the_best_target(workload):
    assert by_cost(workload, 1) <= min(by_target(workload, 1))


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize("part", parts(3))
def test_so_it_does_on_other_streams(workload, part):
    assert by_cost(workload, 2 + part) <= min(by_target(workload, 2 + part))


def as_old_as_it_is(lasting, window, age, windows):
    """What is known of checks that have ended does not count."""
    return age


PLANTS = [
    (Lasting, "expected", as_old_as_it_is),
    (policies, "AHEAD", 1),
]


@pytest.mark.parametrize(("where", "name", "planted"), PLANTS, ids=["age", "one by one"])
def test_an_error_that_makes_it_dearer_is_noticed(monkeypatch, where, name, planted):
    monkeypatch.setattr(where, name, planted)
    assert by_cost("mixed", 1) > min(by_target("mixed", 1))


@pytest.mark.parametrize("factor", [0.1, 10])
def test_so_are_wrong_costs(factor):
    wrong = CostBenefit(FAILURE_RATE, replace(COSTS, check_s=factor * COSTS.check_s))
    assert total_cost(items_of("mixed", 1), wrong) > min(by_target("mixed", 1))


@pytest.mark.parametrize("workload", WORKLOADS)
def test_the_best_target_is_among_those_that_are_compared(workload):
    first, *others, last = by_target(workload, 1)
    assert min(others) < min(first, last)
