"""The cyclic query under faults: what the changes that come out add up to is what a search finds in the graph."""

from collections import Counter

import pytest

from experiments.errors import BadInput
from experiments.workloads.catalogue import ReachabilitySpec
from testbed.core.dataflow.layout import lay_out
from testbed.core.partition.partition import Partition
from testbed.operators import Delivery
from testbed.protocols import PROTOCOLS
from testbed.queries.reachability import reachability
from testbed.simulation import CrashMoment, Fault, Simulation
from tests.unit.testbed.campaigns import paired
from workloads.reachability.input import events_of, reachable

SPEC = ReachabilitySpec(nodes=700, stream_seed=3)
EVENTS, BATCH, PARTITIONS = 800, 100, 2
ACYCLIC_ONLY = "coordinated"
DENSE, INTERVAL = SPEC.model_copy(update={"nodes": 150}), 800
FAULTS = (
    Fault(CrashMoment.ANY, 150),
    Fault(CrashMoment.STORING, 20),
    Fault(CrashMoment.RESTORING, 3),
    Fault(CrashMoment.ANY, 200),
)


def inputs(spec=SPEC, batch=BATCH):
    """Blocks of events by turns to each partition, as the runtime has them: a deletion may overtake its creation."""
    return {
        kind: [
            [events_of(spec, kind, at, at + batch) for at in range(p * batch, EVENTS, PARTITIONS * batch)]
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


def of_the_join(protocol, apart):
    """The numbers of the newest checkpoints of both partitions of the join, and of those in the line, after a while.

    Both slots take checkpoints every `INTERVAL` steps, the second slot `apart` steps after the first.
    """
    layout = lay_out(reachability(DENSE, PARTITIONS, Delivery.EXACTLY_ONCE))
    simulation = Simulation(layout, PROTOCOLS[protocol], inputs(DENSE, batch=10), seed=1, timers=0.0)
    for step in range(3 * INTERVAL):
        event, *arguments = simulation._random.choice(simulation._possible())
        event(*arguments)
        for place, worker in enumerate(simulation.workers):
            for number in worker.partitions if (step - place * apart) % INTERVAL == INTERVAL // 2 else ():
                simulation._at(worker, number, Partition.on_timer)
    history, joins = simulation.coordinator.history, [p.number for p in layout.partitions if p.operator == "join"]
    return [history.taken[number][-1].number for number in joins], [history.line[number].number for number in joins]


def test_slots_out_of_step_have_no_line_on_a_cycle_unless_checkpoints_are_forced():
    """The domino effect, with one clock for all partitions of a slot: between any two checkpoints of a slot, each has
    sent the other something."""
    apart = INTERVAL // 2
    assert min(of_the_join("uncoordinated", 0)[1]) > 1
    taken, line = of_the_join("uncoordinated", apart)
    assert min(taken) > 1
    assert line == [0, 0]
    assert min(of_the_join("communication-induced", apart)[1]) > 1
