"""The time for G-checks is CPU time: while another process has the core, none of it passes."""

import time

from testbed.operators.parts import TOGETHER
from testbed.output_log.policies import CheckPacing
from testbed.runtime.slot.check_budget import PacedBudget

PACE = CheckPacing(0.005, 1e4)


def test_the_check_interval_is_over_after_as_much_cpu_time():
    budget = PacedBudget(PACE)
    assert budget.more() == 0, "no period has begun"
    assert budget.begins()
    time.sleep(3 * PACE.interval_s)
    assert budget.more() == TOGETHER
    begun_s = time.thread_time()
    while time.thread_time() - begun_s < PACE.interval_s:
        pass
    assert budget.more() == 0


def test_the_next_period_begins_after_this_one():
    budget = PacedBudget(PACE)
    assert [budget.begins(), budget.begins()] == [True, False]
