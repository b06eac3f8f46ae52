"""Simulated runs of average prices under the protocol `output-log`, with faults drawn from a seed."""

from functools import cache
from random import Random

from testbed.core.by_batch.cutting import Batching
from testbed.output_log.policies import CostBenefit, Costs, OpensOnly, Targets
from testbed.protocols import PROTOCOLS
from testbed.recovery import STRATEGIES
from testbed.simulation import CrashMoment, Fault, Simulation
from tests.unit.testbed.queries.average_prices import SPECS, exact, inputs, laid_out

EVENTS, RATE, READ, SOURCES = 160, 20.0, 10, 2
BATCHING = Batching(500_000_000, 2)
POLICIES = {
    "opens": OpensOnly(),
    "targets": Targets(12, 30),
    "eager": Targets(1, 1),
    "costs": CostBenefit(0.01, Costs(entry_s=0.1, record_s=0.1, check_s=0.15, records_per_s=1)),
}
MOMENTS = (CrashMoment.ANY, CrashMoment.ANY, CrashMoment.STORING, CrashMoment.RESTORING)


@cache
def given(name):
    return inputs(SPECS[name], EVENTS, RATE, READ, SOURCES)


@cache
def wanted(name):
    return exact(SPECS[name], given(name))


def faults(seed):
    """One fault or more, the first one once there may be a checkpoint."""
    random = Random(seed)
    drawn = [Fault(CrashMoment.ANY, random.randrange(100, 900), random.random() < 0.2, late=True)]
    for _ in range(random.randrange(3)):
        moment = random.choice(MOMENTS)
        after = random.randrange(300 if moment is CrashMoment.ANY else 12)
        drawn.append(Fault(moment, after, random.random() < 0.2, late=random.random() < 0.7))
    return drawn


def simulated(name, seed, strategy="passive", policy="targets", **options):
    """A run, not yet begun; a twentieth of what is written to the store is refused."""
    options = {"faults": faults(seed), "batching": BATCHING, "refusals": 0.05, **options}
    options |= {"recovery": STRATEGIES[strategy](), "policy": POLICIES[policy], "expected": wanted(name)}
    return Simulation(laid_out(SPECS[name], SOURCES), PROTOCOLS["output-log"], given(name), seed, **options)
