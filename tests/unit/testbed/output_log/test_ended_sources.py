"""The recovery line of `output-log` once the input of some partitions has come to its end.

Of two chains of average prices in one dataflow one is out of input soon, its first source before its second.
"""

from functools import cache

import pytest

from experiments.workloads.cec_prices import CecPricesSpec
from testbed.core.checkpoints import last_common
from testbed.core.coordinator import history
from testbed.core.dataflow.graph import Dataflow
from testbed.core.dataflow.layout import lay_out
from testbed.operators import Delivery
from testbed.operators.count_windows import CountWindows
from testbed.output_log.snapshots import LogSnapshots
from testbed.protocols.batch_aligned import BatchAligned
from testbed.protocols.output_logged import OutputLogged
from testbed.queries.cec_prices import AT, ITEM
from testbed.recovery import STRATEGIES
from testbed.simulation import CrashMoment, Fault, Simulation
from tests.unit.testbed.campaigns import first_and_rest, quick
from tests.unit.testbed.output_log.planted import input_from_own_border, is_noticed
from tests.unit.testbed.output_log.protocol_runs import BATCHING, EVENTS, POLICIES, RATE, READ, SOURCES
from tests.unit.testbed.queries.average_prices import exact, inputs
from workloads.cec_prices.input import PRICE, PRICES
from workloads.json_records import PLACE

SPEC = CecPricesSpec(items=15, window_records=4, stream_seed=3)
SOON, AFTER = 3, 650  # reads of the source that ends second; steps after which the short chain has mostly ended
SEEDS = 6


@cache
def laid_out():
    flow = Dataflow("two chains")
    for name in ("short", "long"):
        windows = CountWindows(ITEM, PRICE, SPEC.window_records, (PLACE, AT))
        purchases = flow.source(name, PRICES, SOURCES, due=AT)
        flow.operator(f"average-{name}", windows, purchases).sink(f"out-{name}", Delivery.EXACTLY_ONCE)
    return lay_out(flow)


@cache
def given():
    reads = inputs(SPEC, EVENTS, RATE, READ, SOURCES)["prices"]
    return {"short": [reads[0][: SOON // 2], reads[1][:SOON]], "long": reads}


@cache
def wanted():
    return sum((exact(SPEC, {"prices": each}) for each in given().values()), start=exact(SPEC, {"prices": []}))


def simulated(seed, strategy="passive", policy="eager", faults=(), protocol=OutputLogged, **options):
    given_and_wanted = {"policy": POLICIES[policy], "expected": wanted(), "batching": BATCHING}
    options = {"slots": 3, "faults": faults, "recovery": STRATEGIES[strategy](), **given_and_wanted, **options}
    return Simulation(laid_out(), protocol, given(), seed, **options)


def late_faults(seed):
    """A worker is lost once the short chain has ended, and perhaps another one while that is restored."""
    first = Fault(CrashMoment.ANY, AFTER + 40 * seed, late=True)
    return [first, Fault(CrashMoment.RESTORING if seed % 2 else CrashMoment.ANY, 8, late=bool(seed % 3))]


def line_of(simulation):
    line = simulation.coordinator.history.line
    return {each.name: line[each.number] for each in simulation.layout.partitions}


class WithoutAnEnd(OutputLogged):
    """As it was: who passes no more borders has no more checkpoints."""

    def on_end(self, checkpoint):
        return


class CommonOnly(OutputLogged):
    """The line has no use for last checkpoints."""

    find_line = staticmethod(lambda taken, channels: last_common(taken, channels))


@pytest.mark.parametrize(("protocol", "goes_on"), [(OutputLogged, True), (WithoutAnEnd, False), (CommonOnly, False)])
def test_the_line_goes_on_as_long_as_any_source_does(protocol, goes_on):
    simulation = simulated(1, protocol=protocol)
    assert simulation.run().published == wanted()
    found = line_of(simulation)
    assert (found["average-long.0"].number > found["average-short.0"].number + 2) is goes_on
    assert found["average-short.0"].last is goes_on


@pytest.mark.parametrize("policy", quick(["opens", "eager"], ["opens"]))
@pytest.mark.parametrize("strategy", quick(["global", "blocking", "passive"], ["passive"]))
@pytest.mark.parametrize("seeds", first_and_rest(range(SEEDS), 4))
def test_whoever_has_ended_is_restored_and_nothing_is_lost_or_doubled(strategy, policy, seeds):
    resumed = replayed = ended = 0
    for seed in seeds:
        simulation = simulated(seed, strategy, policy, late_faults(seed), refusals=0.05)
        outcome = simulation.run()
        assert outcome.published == wanted(), f"seed {seed}"
        resumed, replayed = resumed + outcome.resumed, replayed + simulation.checks.logged.replayed
        ended += line_of(simulation)["average-short.0"].last
    assert resumed
    assert replayed > len(seeds)
    assert ended


@pytest.mark.extended
@pytest.mark.parametrize("strategy", ["global", "blocking", "passive"])
@pytest.mark.parametrize("damage", ["spoils", "ruins"])
def test_a_damaged_object_at_that_time_costs_no_result(damage, strategy):
    fallbacks = 0
    for seed in range(SEEDS):
        faults = [Fault(CrashMoment.ANY, AFTER - 150 + 45 * seed, **{damage: True}), Fault(CrashMoment.ANY, 20)]
        outcome = simulated(seed, strategy, "opens", faults[: 1 + seed % 2]).run()
        assert outcome.published == wanted(), f"seed {seed}"
        fallbacks += outcome.fallbacks
    assert fallbacks


def positions_at_the_end(simulation):
    simulation.run()
    history = simulation.coordinator.history
    at_end = zip(history.covered(history.line), simulation.layout.partitions, strict=True)
    return {of.name: at.position for at, of in at_end if of.operator in given()}


def test_a_source_that_goes_back_for_others_is_told_of_at_its_end():
    simulation = simulated(1, policy="opens")
    positions = positions_at_the_end(simulation)
    assert line_of(simulation)["short.1"].position < SOON
    assert (positions["short.0"], positions["short.1"]) == (SOON // 2, SOON)


def test_such_a_source_would_be_told_of_too_early(monkeypatch):
    monkeypatch.setattr(history, "at_border", lambda of, number: {each.number: each for each in of}.get(number))
    assert positions_at_the_end(simulated(1, policy="opens"))["short.1"] < SOON


def noticed(seed):
    faults = [Fault(CrashMoment.ANY, 150 + 60 * seed, late=True), *late_faults(seed)]
    return is_noticed(simulated(seed, "passive", "opens", faults).run, wanted())


@pytest.mark.extended
def test_that_a_last_checkpoint_needs_no_input_is_noticed(monkeypatch):
    assert not any(map(noticed, range(8)))
    monkeypatch.setattr(LogSnapshots, "_input_from", input_from_own_border)
    assert any(map(noticed, range(8)))


def test_both_protocols_take_the_checkpoint_at_the_end_in_one_way():
    assert OutputLogged.on_end is BatchAligned.on_end
