"""Simulated runs whose drivers die, under every protocol and strategy, with workers that die as well."""

from random import Random

from testbed.core.by_batch.cutting import Batching
from testbed.operators import Delivery
from testbed.protocols import PROTOCOLS
from testbed.recovery import STRATEGIES, PartiallyActive
from testbed.simulation import CrashMoment, Fault
from testbed.simulation.driver_deaths import DriverDeath, DriverDeaths, DriverMoment
from tests.unit.testbed import runs as by_record
from tests.unit.testbed.output_log import protocol_runs
from tests.unit.testbed.queries.average_prices import SPECS
from tests.unit.testbed.queries.average_prices import laid_out as prices_laid_out
from tests.unit.testbed.recovery import runs as by_batch
from tests.unit.testbed.small_flows import laid_out

MOMENTS = (DriverMoment.ANY, DriverMoment.ANY, DriverMoment.WRITING, DriverMoment.RESTORING)
PRICES = "filtered"
# A moment, and the number of its steps within which the driver dies.
AT_ONCE = (DriverMoment.ANY, 1)  # the first step: no slot knows this driver yet
AMID_ABSENCE = (DriverMoment.TENTATIVE, 40), (DriverMoment.CORRECTING, 40), (DriverMoment.PROMOTING, 12)
NEXT = (AT_ONCE, AT_ONCE, (DriverMoment.WRITING, 3), (DriverMoment.RESTORING, 8), *AMID_ABSENCE)
LONG_ABSENCE = 0.004  # share of steps at which a worker that is away may come
RATIOS = 0.5, 0.75, 1.0  # of partitions that have a copy


def deaths(seed, within):
    """One driver or more that dies, a third of them only taken for dead."""
    random = Random(f"deaths {seed}")
    found = [DriverDeath(DriverMoment.ANY, random.randrange(within), random.random() < 0.3)]
    for _ in range(random.randrange(3)):
        moment = random.choice(MOMENTS)
        after = random.randrange(within // 2 if moment is DriverMoment.ANY else 6)
        found.append(DriverDeath(moment, after, random.random() < 0.3))
    return found


def deaths_amid_absence(seed, copies):
    """A driver dies while input is missing, is made up for, or is about to come from a copy; one or two follow it."""
    random, first = Random(f"amid absence {seed}"), AMID_ABSENCE[: 2 + copies]
    drawn = [first[seed % len(first)], *random.choices(NEXT if copies else NEXT[:-1], k=1 + random.randrange(2))]
    return [DriverDeath(moment, random.randrange(within), random.random() < 0.3) for moment, within in drawn]


def bursts(flow, seed):
    """Three times two workers are lost, one soon after the other. Their replacements come late."""
    random, within = Random(f"bursts {seed}"), by_batch.WITHIN[flow] // 2
    found = []
    for earliest, spread in ((within, within), (0, within // 2), (0, within // 2)):
        first = Fault(CrashMoment.ANY, earliest + random.randrange(spread), random.random() < 0.2, late=True)
        moment = random.choice((CrashMoment.ANY, CrashMoment.RESTORING))
        found += [first, Fault(moment, random.randrange(20), random.random() < 0.2, late=True)]
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
    ratio, room = options.pop("ratio", 1.0), options.pop("standby_room", None)
    recovery = PartiallyActive(ratio, planner="greedy", standby_room=room) if copies else STRATEGIES[strategy]()
    struck = by_batch.faults(flow, seed, most=2, from_sources=recovery.from_sources)
    options = {"faults": struck, "slots": 2 + seed % 2, "batching": Batching(5, 1 + seed % 2), **options}
    steps = (by_batch.UNSTORED if recovery.from_sources else by_batch.WITHIN)[flow]
    options.setdefault("deaths", deaths(seed, steps))
    options |= {"expected": by_record.oracle(flow), "recovery": recovery}
    options.setdefault("standby", 2 * copies)
    return DriverDeaths(layout, PROTOCOLS["batch-aligned"], inputs, seed, **options)


def going_on(flow, strategy, seed, **options):
    """A run by batches in which survivors go on without absent input. Drivers die amid that."""
    copies = strategy == PartiallyActive.name
    given = {"faults": bursts(flow, seed), "deaths": deaths_amid_absence(seed, copies), "tentative": True}
    given |= {"returns": (LONG_ABSENCE, 0.02)[seed % 2], "refusals": 0.1 * (seed % 2), "spare_lines": seed % 3}
    if copies:
        given |= {"ratio": RATIOS[seed // 3 % 3], "standby": 1 + seed % 3, "standby_room": (None, 0)[seed // 2 % 2]}
    return recovering_parts(flow, strategy, seed, **(given | options))


def logging(strategy, seed, **options):
    """A run of protocol `output-log`, as above."""
    options = {"faults": protocol_runs.faults(seed), "deaths": deaths(seed, 600), "refusals": 0.05, **options}
    options |= {"batching": protocol_runs.BATCHING, "recovery": STRATEGIES[strategy]()}
    options |= {"policy": protocol_runs.POLICIES["targets"], "expected": protocol_runs.wanted(PRICES)}
    given = prices_laid_out(SPECS[PRICES], protocol_runs.SOURCES), PROTOCOLS["output-log"]
    return DriverDeaths(*given, protocol_runs.given(PRICES), seed, **options)
