"""The cyclic query under faults: what the changes that come out add up to is what a search finds in the graph."""

from collections import Counter

import pytest

from experiments.errors import BadInput
from experiments.workloads.catalogue import ReachabilitySpec
from testbed.core.dataflow.layout import lay_out
from testbed.operators import Delivery
from testbed.protocols import PROTOCOLS
from testbed.queries.reachability import reachability
from testbed.simulation import CrashMoment, Fault, Simulation
from tests.unit.testbed.campaigns import paired
from workloads.reachability.input import events_of, reachable

SPEC = ReachabilitySpec(nodes=700, stream_seed=3)
EVENTS, BATCH, PARTITIONS = 800, 100, 2
ACYCLIC_ONLY = "coordinated"
FAULTS = (
    Fault(CrashMoment.ANY, 150),
    Fault(CrashMoment.STORING, 20),
    Fault(CrashMoment.RESTORING, 3),
    Fault(CrashMoment.ANY, 200),
)


def inputs():
    """Blocks of events by turns to each partition, as the runtime has them: a deletion may overtake its creation."""
    return {
        kind: [
            [events_of(SPEC, kind, at, at + BATCH) for at in range(p * BATCH, EVENTS, PARTITIONS * BATCH)]
            for p in range(PARTITIONS)
        ]
        for kind in ("links", "sources")
    }


def net(rows):
    """What changes (root, node, path, change) add up to."""
    found = Counter()
    for (*path, change), times in rows.items():
        found[tuple(path)] += change * times
    return Counter({path: times for path, times in found.items() if times})


@pytest.mark.parametrize(("protocol", "seed"), paired(["uncoordinated", "communication-induced"], range(3)))
def test_every_path_is_found_once_whatever_happens(protocol, seed):
    layout = lay_out(reachability(SPEC, PARTITIONS, Delivery.EXACTLY_ONCE))
    outcome = Simulation(layout, PROTOCOLS[protocol], inputs(), seed, faults=FAULTS).run(most_steps=60_000)
    assert outcome.crashes == len(FAULTS)
    assert outcome.resumed
    wanted = reachable(SPEC, EVENTS)
    assert len(wanted) > 100
    assert net(outcome.published) == wanted


def test_coordinated_checkpoints_are_refused():
    layout = lay_out(reachability(SPEC, PARTITIONS, Delivery.EXACTLY_ONCE))
    with pytest.raises(BadInput, match="on a cycle an operator would wait for its own marker"):
        Simulation(layout, PROTOCOLS[ACYCLIC_ONLY], inputs(), seed=1)
