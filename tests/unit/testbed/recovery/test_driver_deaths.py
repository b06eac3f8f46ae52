"""Drivers die at any moment, and others go on from their records: nothing is lost, doubled or wrong."""

import pytest

from experiments.errors import EnvironmentFailure
from testbed.core.coordinator.coordinator import Coordinator
from testbed.core.coordinator.line_record import decode_record
from testbed.operators import Delivery
from testbed.protocols import PROTOCOLS
from testbed.recovery import STRATEGIES
from testbed.simulation import CrashMoment, Fault
from testbed.simulation.driver_deaths import DriverDeath, DriverMoment
from testbed.stores.record_chain import RecordChain
from tests.unit.testbed.campaigns import first_and_rest, parts, quick
from tests.unit.testbed.output_log.protocol_runs import wanted
from tests.unit.testbed.recovery.dying_drivers import PRICES, logging, recovering_all, recovering_parts
from tests.unit.testbed.runs import CASES, FAULT_TOLERANT, oracle
from tests.unit.testbed.small_flows import laid_out

SHARE = 125
FROM_CHECKPOINTS = [name for name, strategy in STRATEGIES.items() if not strategy.from_sources]


@pytest.mark.parametrize("seeds", first_and_rest(range(40), 10))
@pytest.mark.parametrize("protocol", FAULT_TOLERANT)
def test_a_second_driver_goes_on_exactly_where_everybody_goes_back(protocol, seeds):
    died = resumed = fenced = 0
    for seed in seeds:
        run = recovering_all("tiny", protocol, seed, refusals=0.1 * (seed % 2), spare_lines=seed % 3)
        assert run.run().published == oracle("tiny"), f"seed {seed}"
        died, resumed, fenced = died + run.deaths.total(), resumed + run.resumed, fenced + run.fenced
    assert died > len(seeds)
    assert resumed > len(seeds) / 4
    assert fenced


@pytest.mark.extended
@pytest.mark.parametrize(("flow", "protocol"), CASES)
def test_a_second_driver_goes_on_exactly_with_every_kind_of_dataflow(flow, protocol):
    for seed in range(6):
        assert recovering_all(flow, protocol, seed).run().published == oracle(flow), f"seed {seed}"


@pytest.mark.parametrize("seeds", first_and_rest(range(24), 4))
@pytest.mark.parametrize("strategy", quick(STRATEGIES, ["query-centric", "blocking", "partially-active"]))
def test_a_second_driver_goes_on_exactly_where_parts_go_back(strategy, seeds):
    died = resumed = 0
    for seed in seeds:
        run = recovering_parts("tiny", strategy, seed, refusals=0.1 * (seed % 2), spare_lines=seed % 3)
        assert run.run().published == oracle("tiny"), f"seed {seed}"
        died, resumed = died + run.deaths.total(), resumed + run.resumed
    assert died >= len(seeds)
    assert bool(resumed) is (strategy in FROM_CHECKPOINTS)


@pytest.mark.parametrize("seeds", first_and_rest(range(12), 2))
@pytest.mark.parametrize("strategy", ["global", "passive"])
def test_a_second_driver_goes_on_exactly_with_output_logs(strategy, seeds):
    for seed in seeds:
        assert logging(strategy, seed).run().published == wanted(PRICES), f"seed {seed}"


@pytest.mark.slow
@pytest.mark.parametrize("part", parts(4))
@pytest.mark.parametrize("name", [*FAULT_TOLERANT, *STRATEGIES])
def test_five_hundred_schedules_in_which_drivers_die(name, part):
    run_of = recovering_all if name in FAULT_TOLERANT else recovering_parts
    for seed in range(part * SHARE, (part + 1) * SHARE):
        assert run_of("tiny", name, seed).run().published == oracle("tiny"), f"seed {seed}"


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["coordinated", "uncoordinated"])
def test_a_driver_may_die_at_every_single_step(protocol):
    """Of one run, without other faults, each step in turn."""
    steps = recovering_all("tiny", protocol, 1, faults=[], deaths=[]).run().steps
    for after in range(steps):
        run = recovering_all("tiny", protocol, 1, faults=[], deaths=[DriverDeath(DriverMoment.ANY, after)])
        assert run.run().published == oracle("tiny"), f"step {after}"
        assert run.deaths.total() == 1


@pytest.mark.parametrize("protocol", FAULT_TOLERANT)
def test_a_second_driver_knows_the_stable_line_of_the_first(protocol):
    run = recovering_all("tiny", protocol, 1, deaths=[])
    run.run()
    first, record = run.coordinator, decode_record(RecordChain(run.records).take_over())
    second = Coordinator(run.layout, run.protocol, 2, record=record)
    assert second.history.kept() == record.history
    assert (second.epoch, second.history.stable) == (first.epoch, first.history.stable)
    assert any(each.number for each in second.history.stable)
    assert second.down == frozenset(range(len(run.layout.partitions)))


def test_a_record_of_another_dataflow_is_refused():
    run = recovering_all("tiny", "coordinated", 1, deaths=[])
    run.run()
    record = decode_record(RecordChain(run.records).take_over())
    for other, protocol in ((run.layout, PROTOCOLS["uncoordinated"]), (laid_out("chain")[0], run.protocol)):
        with pytest.raises(EnvironmentFailure, match="of another dataflow"):
            Coordinator(other, protocol, 2, record=record)
    with pytest.raises(EnvironmentFailure, match="can't be read"):
        decode_record(record.encode()[:-1])


def test_a_plain_sink_loses_nothing_when_its_driver_dies():
    for seed in range(4):
        run = recovering_all("tiny", "coordinated", seed, delivery=Delivery.PLAIN)
        assert run.run().written >= oracle("tiny"), f"seed {seed}"


def test_an_object_that_is_spoilt_when_the_driver_dies_costs_a_line_and_no_record():
    fallbacks = 0
    for seed in range(12):
        spoilt = [Fault(CrashMoment.ANY, 90 + 4 * seed, spoils=True)]
        died = [DriverDeath(DriverMoment.ANY, 92 + 4 * seed)]
        run = recovering_all("tiny", "coordinated", seed, faults=spoilt, deaths=died, timers=0.4)
        assert run.run().published == oracle("tiny"), f"seed {seed}"
        fallbacks += run.outcome.fallbacks
    assert fallbacks
