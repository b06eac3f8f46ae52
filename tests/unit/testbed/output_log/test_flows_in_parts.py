"""Other dataflows under protocol `output-log`: time windows, sliding windows, joins, and one log behind another."""

from functools import cache

import pytest

from testbed.core.by_batch.cutting import Batching
from testbed.core.dataflow.graph import Dataflow
from testbed.core.dataflow.layout import lay_out
from testbed.operators import Aggregation, Delivery, Emit, sliding
from testbed.operators.parted_aggregate import PartedAggregate
from testbed.operators.parted_join import PartedJoin
from testbed.output_log.in_parts import in_parts
from testbed.output_log.partition import LoggedPartition
from testbed.output_log.policies import OpensOnly, Targets
from testbed.protocols import PROTOCOLS
from testbed.recovery import STRATEGIES
from testbed.simulation import CrashMoment, Fault, Simulation
from tests.unit.testbed import small_flows
from tests.unit.testbed.campaigns import quick
from tests.unit.testbed.small_flows import COUNT, EVENTS, events


def stacked(delivery):
    """Counts of sliding windows, and behind them how often each count came: running, so its windows never close."""
    flow = Dataflow("stacked")
    stream = flow.source("events", EVENTS, parallelism=2, time="at_ns")
    counts = stream.aggregate("slide", "key", COUNT, sliding("at_ns", 40, 20), Emit.ON_CLOSE)
    counts.aggregate("again", "count", (Aggregation("times", "count"),)).sink("out", delivery)
    return flow, {"events": [events(1, 8), events(2, 8)]}


FLOWS = {"windowed": small_flows.windowed, "fused": small_flows.fused, "spread": small_flows.spread, "stacked": stacked}
KINDS = {"windowed": {PartedAggregate, PartedJoin}}


def laid_out(name):
    flow, given = FLOWS[name](Delivery.EXACTLY_ONCE)
    return lay_out(in_parts(flow)), given


@cache
def wanted(name):
    """What comes out under another protocol, without parts and without faults."""
    flow, given = FLOWS[name](Delivery.EXACTLY_ONCE)
    return Simulation(lay_out(flow), PROTOCOLS["coordinated"], given, 0).run().published


@pytest.mark.parametrize("strategy", quick(["global", "passive"], ["passive"]))
@pytest.mark.parametrize("name", quick(FLOWS, ["windowed"]))
def test_crashes_cost_no_result(name, strategy):
    layout, given = laid_out(name)
    resumed = replayed = 0
    for seed in range(3):
        options = {"batching": Batching(5, 1 + seed % 2), "refusals": 0.1 * (seed % 2), "expected": wanted(name)}
        options |= {"policy": Targets(6, 8) if seed % 2 else OpensOnly(), "recovery": STRATEGIES[strategy]()}
        late = [Fault(CrashMoment.ANY, 800 + 200 * seed, late=True), Fault(CrashMoment.RESTORING, 3)]
        simulation = Simulation(layout, PROTOCOLS["output-log"], given, seed, faults=late, **options)
        outcome = simulation.run()
        assert outcome.published == wanted(name), f"seed {seed}"
        resumed, replayed = resumed + outcome.resumed, replayed + simulation.checks.logged.replayed
    assert resumed
    assert replayed


@pytest.mark.parametrize("name", FLOWS)
def test_every_state_is_in_parts(name):
    layout, given = laid_out(name)
    simulation = Simulation(layout, PROTOCOLS["output-log"], given, 0)
    simulation.run()
    partitions = [each for worker in simulation.workers for each in worker.partitions.values()]
    logged = {type(each.recorded.operator) for each in partitions if isinstance(each, LoggedPartition)}
    assert logged == KINDS.get(name, {PartedAggregate})
