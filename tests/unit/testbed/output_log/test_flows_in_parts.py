"""Other dataflows under protocol `output-log`: time windows, sliding windows, joins, and one log behind another."""

from functools import cache, partial

import pytest

from experiments.workloads.catalogue import NexmarkQuery, NexmarkSpec
from testbed.core.by_batch.cutting import Batching
from testbed.core.dataflow.graph import Dataflow
from testbed.core.dataflow.layout import lay_out
from testbed.operators import Aggregation, Delivery, Emit, Source, sliding
from testbed.operators.parted_aggregate import PartedAggregate
from testbed.operators.parted_join import PartedJoin
from testbed.output_log.in_parts import in_parts
from testbed.output_log.partition import LoggedPartition
from testbed.output_log.policies import OpensOnly, Targets
from testbed.protocols import PROTOCOLS
from testbed.queries import dataflow
from testbed.recovery import STRATEGIES
from testbed.runtime.connectors.sources import columns, stream_of
from testbed.simulation import CrashMoment, Fault, Simulation
from tests.unit.testbed import small_flows
from tests.unit.testbed.campaigns import quick
from tests.unit.testbed.small_flows import COUNT, EVENTS, events
from workloads.nexmark.stream import events_of
from workloads.schedule import Schedule

EVENTS_OF = {NexmarkQuery.Q8: 1600, NexmarkQuery.Q12: 320}  # in Q8, only each 12th event has to do with it
RATE, BLOCKS, SOURCES = 1000.0, 20, 2


def stacked(delivery):
    """Counts of sliding windows, and behind them how often each count came: running, so its windows never close."""
    flow = Dataflow("stacked")
    stream = flow.source("events", EVENTS, parallelism=2, time="at_ns")
    counts = stream.aggregate("slide", "key", COUNT, sliding("at_ns", 40, 20), Emit.ON_CLOSE)
    counts.aggregate("again", "count", (Aggregation("times", "count"),)).sink("out", delivery)
    return flow, {"events": [events(1, 8), events(2, 8)]}


def nexmark(query, delivery):
    """About 8 windows; the sources get the blocks of the events in turn, as `Generated` deals them."""
    count = EVENTS_OF[query]
    window_s, block = count / RATE / 8, count // BLOCKS
    spec = NexmarkSpec(query=query, window_s=window_s, slide_s=window_s, hot_bidders=0.2)
    flow, stream = dataflow(spec, SOURCES, delivery), stream_of(spec, Schedule(0, RATE, SOURCES))
    given = {}
    for name, node in flow.nodes.items():
        if isinstance(node.element, Source):
            made = [events_of(stream, name, at, at + block) for at in range(0, count, block)]
            batches = [columns(each, node.element.output) for each in made]
            given[name] = [batches[index::SOURCES] for index in range(SOURCES)]
    return flow, given


FLOWS = {
    "windowed": small_flows.windowed,
    "fused": small_flows.fused,
    "spread": small_flows.spread,
    "stacked": stacked,
    "q8": partial(nexmark, NexmarkQuery.Q8),
    "q12": partial(nexmark, NexmarkQuery.Q12),
}
BATCH_NS = {"q8": 100_000_000, "q12": 20_000_000}  # of event time; of the others, 5
FIRST = {"q8": 500, "q12": 400}  # the step of the earliest first crash; of the others, 800
KINDS = {"windowed": {PartedAggregate, PartedJoin}, "q8": {PartedJoin}}


def laid_out(name):
    flow, given = FLOWS[name](Delivery.EXACTLY_ONCE)
    return lay_out(in_parts(flow)), given


@cache
def wanted(name):
    """What comes out under another protocol, without parts and without faults."""
    flow, given = FLOWS[name](Delivery.EXACTLY_ONCE)
    return Simulation(lay_out(flow), PROTOCOLS["coordinated"], given, 0).run().published


@pytest.mark.parametrize("strategy", quick(["global", "passive"], ["passive"]))
@pytest.mark.parametrize("name", quick(FLOWS, ["windowed", "q8", "q12"]))
def test_crashes_cost_no_result(name, strategy):
    layout, given = laid_out(name)
    resumed = replayed = 0
    for seed in range(3):
        batching = Batching(BATCH_NS.get(name, 5), 1 + seed % 2)
        options = {"batching": batching, "refusals": 0.1 * (seed % 2), "expected": wanted(name)}
        options |= {"policy": Targets(6, 8) if seed % 2 else OpensOnly(), "recovery": STRATEGIES[strategy]()}
        first = FIRST.get(name, 800) * (4 + seed) // 4
        late = [Fault(CrashMoment.ANY, first, late=True), Fault(CrashMoment.RESTORING, 3)]
        simulation = Simulation(layout, PROTOCOLS["output-log"], given, seed, faults=late, **options)
        outcome = simulation.run()
        assert outcome.published == wanted(name), f"seed {seed}"
        resumed, replayed = resumed + outcome.resumed, replayed + simulation.checks.logged.replayed
    assert resumed
    assert replayed


@pytest.mark.parametrize("name", FLOWS)
def test_every_state_is_in_parts(name):
    layout, given = laid_out(name)
    simulation = Simulation(layout, PROTOCOLS["output-log"], given, 0, batching=Batching(BATCH_NS.get(name, 5), 2))
    simulation.run()
    partitions = [each for worker in simulation.workers for each in worker.partitions.values()]
    logged = {type(each.recorded.operator) for each in partitions if isinstance(each, LoggedPartition)}
    assert logged == KINDS.get(name, {PartedAggregate})
