"""Every operator that the testbed has does for a range what it does for its messages one by one."""

import pytest

from experiments.workloads.catalogue import NexmarkQuery, NexmarkSpec
from testbed.core.dataflow.layout import lay_out
from testbed.core.partition.partition import PartitionLimits
from testbed.operators import Delivery, Source
from testbed.protocols import PROTOCOLS
from testbed.queries import QUERIES, dataflow
from testbed.runtime.connectors.sources import maker_of
from testbed.simulation import CrashMoment, Fault
from tests.unit.testbed.campaigns import paired
from tests.unit.testbed.queries import average_prices, hashtag_queries, ppa_queries, test_reachability, window_trees
from tests.unit.testbed.ranges.lockstep import LockstepSimulation
from workloads.schedule import Schedule

LIMITS = PartitionLimits(frames_in_flight=2, records_per_message=1, messages_in_range=16)
FAULTS = (Fault(CrashMoment.ANY, 40), Fault(CrashMoment.STORING, 10))
BLOCK = 250


def nexmark(query):
    """A query with two blocks of events for each partition of a source."""
    spec = NexmarkSpec(query=NexmarkQuery(query), window_s=2.0, slide_s=1.0)
    layout = lay_out(dataflow(spec, 2, Delivery.EXACTLY_ONCE))
    inputs = {}
    for partition in layout.partitions:
        if isinstance(partition.element, Source):
            make, first = maker_of(spec, Schedule(0, 1000.0, 2), partition), partition.index * BLOCK
            blocks = [make(at, at + BLOCK) for at in (first, first + 2 * BLOCK)]
            inputs.setdefault(partition.operator, []).append(blocks)
    return layout, inputs


def others(name):
    """A query of another workload with its input."""
    prices, tags, tree, site = average_prices.MANY, hashtag_queries.TWO, window_trees.SMALL, ppa_queries.SITE
    made = {
        "cec-prices": lambda: (average_prices.laid_out(prices, 2), average_prices.inputs(prices, 120, 20.0, 30, 2)),
        "hashtags": lambda: (hashtag_queries.laid_out(tags), hashtag_queries.inputs(tags, 60, 20.0, 20)),
        "window-tree": lambda: (window_trees.laid_out(tree), window_trees.inputs(tree, 160, 20.0, 20)),
        "top-100": lambda: (ppa_queries.laid_out(site), ppa_queries.inputs(site, 160, 20.0, 20)),
        "reachability": lambda: (
            lay_out(dataflow(test_reachability.SPEC, 2, Delivery.EXACTLY_ONCE)),
            {kind: [each[:2] for each in of] for kind, of in test_reachability.inputs().items()},
        ),
    }
    return made[name]()


@pytest.mark.parametrize(
    ("name", "protocol"),
    paired(
        [*(each.value for each in QUERIES), "cec-prices", "hashtags", "window-tree", "top-100", "reachability"],
        ["uncoordinated", "communication-induced"],
    ),
)
def test_a_query_does_for_ranges_what_it_does_for_single_messages(name, protocol):
    layout, inputs = nexmark(name) if name.startswith("q") else others(name)
    run = LockstepSimulation(layout, PROTOCOLS[protocol], inputs, 1, limits=LIMITS, faults=FAULTS, timers=0.05)
    assert run.run(most_steps=60_000).published
    assert max(each.longest for each in run.made) > 4
