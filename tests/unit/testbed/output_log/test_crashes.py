"""Eventual checkpoint and replay make the state of a run without faults, at whichever step the operator crashes."""

import pytest

from testbed.output_log.policies import CostBenefit, Costs, OpensOnly, Targets
from tests.unit.testbed.campaigns import first_and_rest
from tests.unit.testbed.output_log.crashes import Run, exact
from tests.unit.testbed.output_log.inputs import CASES

STEPS = 60
QUARTER = range(0, STEPS, 4)
POLICIES = {
    "opens only": OpensOnly(),
    "targets": Targets(extent=8, replay=15),
    "tight targets": Targets(extent=1, replay=1),
    "cost and benefit": CostBenefit(0.1, Costs(entry_s=0.1, record_s=0.1, check_s=0.15, records_per_s=1)),
}


def compared(name, policy, seed, crashes, **more):
    run = Run(CASES[name], POLICIES[policy], seed, crashes, **more)
    assert run.run() == exact(run.case, seed)
    return run


@pytest.mark.parametrize("steps", first_and_rest([*QUARTER, *sorted({*range(STEPS)} - {*QUARTER})], len(QUARTER)))
@pytest.mark.parametrize("name", CASES)
def test_a_crash_at_every_step(name, steps):
    runs = [compared(name, "targets", step % 3, [step]) for step in steps]
    replayed = [found for run in runs for found in run.found if found.replay_after < found.position]
    assert len(replayed) >= len(steps) / 6 or name == "windows of 1 record"  # of which none is ever open


@pytest.mark.parametrize("seeds", first_and_rest(range(4), 1))
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", CASES)
def test_crashes_in_a_row(name, policy, seeds):
    """Some of them while the input is being replayed."""
    for seed in seeds:
        compared(name, policy, seed, [9 + 4 * seed, 2, 1, 7])


@pytest.mark.extended
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", CASES)
def test_a_thousand_crashes(name, policy):
    for seed in range(250):
        compared(name, policy, seed, [seed % STEPS, seed % 7, seed % 11, seed % 5])
