"""With ranges everything that a protocol sees, and all that comes out, is as one by one."""

import pytest

from tests.unit.testbed.campaigns import first_and_rest
from tests.unit.testbed.ranges.lockstep import in_lockstep
from tests.unit.testbed.runs import CASES, oracle


@pytest.mark.parametrize("seeds", first_and_rest(range(1, 41), 1))
@pytest.mark.parametrize(("flow", "protocol"), CASES)
def test_ranges_are_as_single_messages_whatever_crashes(flow, protocol, seeds):
    crashes = longest = 0
    for seed in seeds:
        run = in_lockstep(flow, protocol, seed, refusals=0.1 * (seed % 2))
        outcome = run.run()
        assert outcome.published == oracle(flow), f"seed {seed}"
        crashes, longest = crashes + outcome.crashes, max(longest, *(each.longest for each in run.made))
    assert crashes
    assert longest > 2
