"""Output while input is missing: set apart from exact output, and corrected once what was missing is back."""

import pytest

from experiments.errors import BadInput
from testbed.core.coordinator import Coordinator
from testbed.core.partition import PartitionLimits
from testbed.operators import Delivery
from testbed.protocols import PROTOCOLS
from testbed.recovery import STRATEGIES
from testbed.simulation import CrashMoment, Fault
from tests.unit.testbed.recovery.runs import FLOWS, simulated
from tests.unit.testbed.runs import oracle
from tests.unit.testbed.small_flows import laid_out

PARTIAL = [name for name, strategy in STRATEGIES.items() if strategy.partial]
SHARE = 125


def run(flow, strategy, seed, **options):
    """A run that must put out what is exact; returns the simulation."""
    simulation = simulated(flow, strategy, seed, tentative=True, **options)
    assert simulation.run().published == oracle(flow), f"seed {seed}"
    return simulation


@pytest.mark.parametrize("strategy", PARTIAL)
@pytest.mark.parametrize("flow", (*FLOWS, "tiny"))
def test_every_kind_of_dataflow_goes_on_and_is_corrected(flow, strategy):
    rows = 0
    for seed in range(8):
        rows += run(flow, strategy, seed, refusals=0.1 * (seed % 2), spare_lines=seed % 3).outcome.tentative.total()
    assert rows
