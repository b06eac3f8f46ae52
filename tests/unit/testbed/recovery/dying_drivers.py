"""Simulated runs whose drivers die, under every protocol and strategy, with workers that die as well."""

from random import Random

from testbed.core.by_batch.cutting import Batching
from testbed.operators import Delivery
from testbed.protocols import PROTOCOLS
from testbed.recovery import STRATEGIES, PartiallyActive
from testbed.simulation.driver_deaths import DriverDeath, DriverDeaths, DriverMoment
from tests.unit.testbed import runs as by_record
from tests.unit.testbed.average_prices import SPECS
from tests.unit.testbed.average_prices import laid_out as prices_laid_out
from tests.unit.testbed.output_log import protocol_runs
from tests.unit.testbed.recovery import runs as by_batch
from tests.unit.testbed.small_flows import laid_out

MOMENTS = (DriverMoment.ANY, DriverMoment.ANY, DriverMoment.WRITING, DriverMoment.RESTORING)
PRICES = "filtered"


def deaths(seed, within, most=3):
    """One driver or more that dies, a third of them only taken for dead."""
    random = Random(f"deaths {seed}")
    found = [DriverDeath(DriverMoment.ANY, random.randrange(within), random.random() < 0.3)]
    for _ in range(random.randrange(most)):
        moment = random.choice(MOMENTS)
        after = random.randrange(within // 2 if moment is DriverMoment.ANY else 6)
        found.append(DriverDeath(moment, after, random.random() < 0.3))
    return found


def recovering_all(flow, protocol, seed, **options):
    """A run of strategy `global`, not yet begun; faults and deaths are those of its seed unless they are given."""
    layout, inputs = laid_out(flow, options.pop("delivery", Delivery.EXACTLY_ONCE))
    options.setdefault("faults", by_record.faults(flow, protocol, seed, most=2))
    timers = 0.4 if flow == "tiny" else 0.2  # with more, larger flows do nothing but checkpoints
    options = {"deaths": deaths(seed, 2 * by_record.WITHIN[flow]), "timers": timers, **options}
    return DriverDeaths(layout, PROTOCOLS[protocol], inputs, seed, **options)


def recovering_parts(flow, strategy, seed, **options):
    """A run by batches, as above."""
    layout, inputs = laid_out(flow, Delivery.EXACTLY_ONCE)
    copies = strategy == PartiallyActive.name
    recovery = PartiallyActive(1.0, planner="greedy") if copies else STRATEGIES[strategy]()
    struck = by_batch.faults(flow, seed, most=2, from_sources=recovery.from_sources)
    options = {"faults": struck, "slots": 2 + seed % 2, "batching": Batching(5, 1 + seed % 2), **options}
    steps = (by_batch.UNSTORED if recovery.from_sources else by_batch.WITHIN)[flow]
    options.setdefault("deaths", deaths(seed, steps))
    options |= {"expected": by_record.oracle(flow), "recovery": recovery, "standby": 2 * copies}
    return DriverDeaths(layout, PROTOCOLS["batch-aligned"], inputs, seed, **options)


def logging(strategy, seed, policy="targets", **options):
    """A run of protocol `output-log`, as above."""
    options = {"faults": protocol_runs.faults(seed), "deaths": deaths(seed, 600), "refusals": 0.05, **options}
    options |= {"batching": protocol_runs.BATCHING, "recovery": STRATEGIES[strategy]()}
    options |= {"policy": protocol_runs.POLICIES[policy], "expected": protocol_runs.wanted(PRICES)}
    given = prices_laid_out(SPECS[PRICES], protocol_runs.SOURCES), PROTOCOLS["output-log"]
    return DriverDeaths(*given, protocol_runs.given(PRICES), seed, **options)
