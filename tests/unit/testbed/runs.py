"""Simulated runs of the small dataflows under faults drawn from a seed."""

from functools import cache
from random import Random

from testbed.operators import Delivery
from testbed.protocols import PROTOCOLS
from testbed.simulation import CrashMoment, Fault, Simulation
from tests.unit.testbed.small_flows import laid_out

FAULT_TOLERANT = ("coordinated", "uncoordinated", "communication-induced")
WITHIN = {"tiny": 160, "chain": 200, "joined": 400, "windowed": 400, "fused": 200, "spread": 400, "cyclic": 600}
CASES = [
    (flow, protocol)
    for flow in ("chain", "joined", "windowed", "fused", "spread", "cyclic")
    for protocol in FAULT_TOLERANT
    if (flow, protocol) != ("cyclic", "coordinated")
]


@cache
def oracle(flow):
    """The output of a run without faults and without checkpoints."""
    layout, inputs = laid_out(flow, Delivery.PLAIN)
    return Simulation(layout, PROTOCOLS["none"], inputs, seed=0).run().written


def faults(flow, protocol, seed, most=4):
    """One fault or more, of every kind; the first at a moment that comes for certain."""
    random = Random(seed)
    special = CrashMoment.ALIGNING if protocol == "coordinated" else CrashMoment.REPLAYING
    drawn = [Fault(CrashMoment.ANY, random.randrange(WITHIN[flow]), random.random() < 0.2)]
    for _ in range(random.randrange(most)):
        moment = random.choice(
            (CrashMoment.ANY, CrashMoment.STORING, CrashMoment.RESTORING, CrashMoment.RESTORING, special)
        )
        after = random.randrange(WITHIN[flow] if moment is CrashMoment.ANY else 12)
        drawn.append(Fault(moment, after, random.random() < 0.2))
    return drawn


def simulated(flow, protocol, seed, delivery=Delivery.EXACTLY_ONCE, **options):
    """A run, not yet begun, with the faults of its seed unless others are given."""
    layout, inputs = laid_out(flow, delivery)
    options.setdefault("faults", faults(flow, protocol, seed))
    observer = options.get("observer")
    kind = observer.recording(PROTOCOLS[protocol]) if observer else PROTOCOLS[protocol]
    return Simulation(layout, kind, inputs, seed, **options)
