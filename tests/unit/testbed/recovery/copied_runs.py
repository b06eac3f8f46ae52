"""Simulated runs with active copies, under faults that may take primaries together with their copies."""

from testbed.core.by_batch.cutting import Batching
from testbed.operators import Delivery
from testbed.protocols import PROTOCOLS
from testbed.recovery import PartiallyActive
from testbed.simulation import Simulation
from tests.unit.testbed.recovery.runs import faults
from tests.unit.testbed.runs import oracle
from tests.unit.testbed.small_flows import laid_out


def copied(flow, seed, ratio=1.0, delivery=Delivery.EXACTLY_ONCE, kind=Simulation, standby_room=None, **options):
    """A run, not yet begun; its faults, slots and standby workers are those of its seed unless they are given."""
    layout, inputs = laid_out(flow, delivery)
    options = {
        "faults": faults(flow, seed),
        "slots": 2 + seed % 2,
        "standby": 1 + seed % 3,
        "batching": Batching(5, 1 + seed % 2),
        "spare_lines": seed % 3,
        "expected": oracle(flow),
        **options,
    }
    recovery = PartiallyActive(ratio, planner="greedy", standby_room=standby_room)
    return kind(layout, PROTOCOLS["batch-aligned"], inputs, seed, recovery=recovery, **options)
