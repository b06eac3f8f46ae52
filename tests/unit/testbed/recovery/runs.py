"""Simulated runs by batch under strategies, with faults that take several workers and give them back at any time."""

from random import Random

from testbed.core.by_batch.cutting import Batching
from testbed.operators import Delivery
from testbed.protocols import PROTOCOLS
from testbed.recovery import STRATEGIES
from testbed.simulation import CrashMoment, Fault, Simulation
from tests.unit.testbed.runs import oracle
from tests.unit.testbed.small_flows import laid_out

FLOWS = ("chain", "joined", "windowed", "fused", "spread")
MOMENTS = (CrashMoment.ANY, CrashMoment.ANY, CrashMoment.STORING, CrashMoment.RESTORING, CrashMoment.RESTORING)
WITHIN = {"tiny": 550, "chain": 1000, "joined": 1500, "windowed": 1500, "fused": 700, "spread": 1500}
UNSTORED = {flow: 3 * steps // 5 for flow, steps in WITHIN.items()}  # a run that stores nothing has fewer steps


def faults(flow, seed, most=4, from_sources=False):
    """Some faults, some of them all at once, most with a replacement that comes late.

    A run that recovers from its sources stores nothing: a fault that waited for that would hold back those behind it.
    """
    random, within = Random(seed), (UNSTORED if from_sources else WITHIN)[flow]
    moments = [each for each in MOMENTS if each is not CrashMoment.STORING or not from_sources]
    drawn = [Fault(CrashMoment.ANY, random.randrange(within), random.random() < 0.2, late=True)]
    for _ in range(random.randrange(most)):
        moment = random.choice(moments)
        after = random.choice((0, random.randrange(within if moment is CrashMoment.ANY else 12)))
        drawn.append(Fault(moment, after, random.random() < 0.2, late=random.random() < 0.7))
    return drawn


def simulated(flow, strategy, seed, delivery=Delivery.EXACTLY_ONCE, **options):
    """A run, not yet begun, with the faults of its seed unless others are given."""
    layout, inputs = laid_out(flow, delivery)
    struck = faults(flow, seed, from_sources=STRATEGIES[strategy].from_sources)
    options = {"faults": struck, "slots": 2 + seed % 2, "batching": Batching(5, 1 + seed % 2), **options}
    options.setdefault("expected", oracle(flow))
    return Simulation(layout, PROTOCOLS["batch-aligned"], inputs, seed, recovery=STRATEGIES[strategy](), **options)
