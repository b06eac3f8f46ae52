"""The tree of `ppa` figure 6 under loads that favour some of its sources."""

from experiments.workloads.window_tree import WindowTreeSpec
from models.fidelity import score
from testbed.core.dataflow.layout import lay_out
from testbed.operators import Delivery
from testbed.queries import dataflow
from testbed.topology import topology_of

LAYOUT = lay_out(dataflow(WindowTreeSpec(), 16, Delivery.EXACTLY_ONCE))
BUDGET = 10


def rates(weights):
    """Of all partitions, if each source emits as many records as its weight says and everything is passed on."""
    found = [0.0] * len(LAYOUT.partitions)
    for each in LAYOUT.partitions:
        if not each.inputs:
            found[each.number] = weights[each.index]
        for route in each.routes:
            for channel in route.channels:
                found[channel.receiver] += found[each.number] / len(route.channels)
    return {each.name: found[each.number] for each in LAYOUT.partitions}


def skewed(hot, others=1.0):
    """Four neighbouring sources have most of the load."""
    return [8.0 if hot <= index < hot + 4 else others for index in range(16)]


def fidelity(plan, weights):
    """Output fidelity if everything fails that is not in the plan."""
    topology = topology_of(LAYOUT, rates(weights))
    names = {LAYOUT.partitions[number].name for number in plan}
    return score(topology, topology.mask(n for n in topology.tasks if n not in names)).output_fidelity
