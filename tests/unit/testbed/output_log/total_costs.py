"""What a policy costs an operator in all: the time for its checks, and what recoveries are expected to take."""

from collections.abc import Callable
from functools import cache

import numpy as np
import pyarrow as pa

from testbed.operators.count_windows import CountWindows
from testbed.output_log.policies import NO_TARGET, CostBenefit, Costs, Policy, Targets
from testbed.output_log.recorded import RecordedOperator
from tests.unit.testbed.output_log.inputs import PRICES

ITEMS, SIZE, RECORDS, STEP = 300, 10, 60_000, 100
COSTS = Costs(entry_s=1e-6, record_s=2e-6, check_s=8e-6, records_per_s=10_000)
FAILURE_RATE = 0.2  # high, since a log of so few windows is short
Q = (2, 2.75, 3, 3.25, 3.5, 4, 4.5, 5, 6)  # times as many entries as there are items


def alike(random: np.random.Generator) -> np.ndarray:
    """All items are as frequent."""
    return random.integers(0, ITEMS, RECORDS)


def skewed(random: np.random.Generator) -> np.ndarray:
    """Few items have most records (Zipf)."""
    weights = np.arange(1, ITEMS + 1) ** -0.9
    return random.choice(ITEMS, RECORDS, p=weights / weights.sum())


def mixed(random: np.random.Generator) -> np.ndarray:
    """Beside items that are as frequent, a few whose windows hardly ever close."""
    rare = random.random(RECORDS) < 0.002
    return np.where(rare, random.integers(ITEMS, ITEMS + ITEMS // 5, RECORDS), random.integers(0, ITEMS, RECORDS))


WORKLOADS: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    each.__name__: each for each in (alike, skewed, mixed)
}


def total_cost(items: np.ndarray, policy: Policy) -> float:
    """Of a run in which there is always time for checks: the time of all checks and of the expected recoveries [s].

    A recovery between two steps takes the time for the log and the input that it reads. The expected number of failures
    follows from the failure rate and the time in which the step's records come.
    """
    operator = CountWindows("item", "price", SIZE, ("at_ns",))
    operator.schema(PRICES)
    operator.open()
    recorded = RecordedOperator(operator, policy)
    failures, total_s = FAILURE_RATE * STEP / COSTS.records_per_s, 0.0
    ones = pa.array(np.ones(STEP, dtype=np.int64))
    for begin in range(0, RECORDS, STEP):
        columns = [pa.array(items[begin : begin + STEP]), ones, pa.array(np.arange(begin, begin + STEP))]
        recorded.process(0, pa.RecordBatch.from_arrays(columns, schema=PRICES))
        total_s += recorded.check(lambda: True) * COSTS.check_s
        recorded.take_block()
        recovery_s = COSTS.entry_s * recorded.extent.length + COSTS.record_s * recorded.extent.replay
        total_s += failures * recovery_s
    return total_s


@cache
def items_of(workload: str, seed: int) -> np.ndarray:
    return WORKLOADS[workload](np.random.default_rng(seed))


@cache
def by_target(workload: str, seed: int) -> tuple[float, ...]:
    """The total cost with each Q [s]."""
    items = items_of(workload, seed)
    return tuple(total_cost(items, Targets(round(each * ITEMS), NO_TARGET)) for each in Q)


def by_cost(workload: str, seed: int) -> float:
    """The total cost of the policy by cost and benefit [s]."""
    return total_cost(items_of(workload, seed), CostBenefit(FAILURE_RATE, COSTS))
