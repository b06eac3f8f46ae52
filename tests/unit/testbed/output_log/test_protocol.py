"""The protocol `output-log` on the testbed: output is exact after any crash, and what it can't protect is refused."""

import pytest

from experiments.errors import BadInput
from experiments.workloads.catalogue import NexmarkQuery, NexmarkSpec
from testbed.core.dataflow.layout import lay_out
from testbed.core.partition.partition import PartitionLimits
from testbed.operators import Delivery
from testbed.output_log.partition import LoggedPartition
from testbed.protocols import PROTOCOLS
from testbed.queries import dataflow
from testbed.recovery import STRATEGIES as STRATEGY_CLASSES
from testbed.simulation import CrashMoment, Fault
from tests.unit.testbed.campaigns import paired, parts, quick
from tests.unit.testbed.output_log.protocol_runs import POLICIES, simulated, wanted
from tests.unit.testbed.queries.average_prices import FEW, laid_out

STRATEGIES = ("global", "passive", "blocking", "query-centric")
SHARE = 125
OUTPUT_LOG = PROTOCOLS["output-log"]


@pytest.mark.parametrize("policy", quick(["opens", "targets"], ["opens"]))
@pytest.mark.parametrize(("name", "strategy"), paired(["rare", "slow", "filtered"], STRATEGIES))
def test_crashes_and_a_store_that_refuses_cost_no_result(name, strategy, policy):
    resumed = 0
    for seed in range(3):
        outcome = simulated(name, seed, strategy, policy).run()
        assert outcome.published == wanted(name), f"seed {seed}"
        resumed += outcome.resumed
    assert resumed


@pytest.mark.extended
@pytest.mark.parametrize("part", parts(8))
def test_a_thousand_schedules_with_crashes(part):
    crashes = resumed = replayed = 0
    for seed in range(part * SHARE, (part + 1) * SHARE):
        simulation = simulated("filtered", seed, STRATEGIES[seed % 4], list(POLICIES)[seed // 4 % 2])
        outcome = simulation.run()
        assert outcome.published == wanted("filtered"), f"seed {seed}"
        crashes, resumed = crashes + outcome.crashes, resumed + outcome.resumed
        replayed += simulation.checks.logged.replayed
    assert crashes > SHARE
    assert resumed > SHARE / 8
    assert replayed > SHARE


def test_windows_that_are_saved_where_it_pays_cost_no_result():
    outcome = simulated("slow", 1, "passive", "costs").run()
    assert outcome.published == wanted("slow")
    assert outcome.resumed


def test_one_record_a_message_and_one_frame_of_credit():
    limits = PartitionLimits(frames_in_flight=1, records_per_message=1)
    for name in ("slow", "filtered"):
        assert simulated(name, 3, limits=limits).run().published == wanted(name), name


@pytest.mark.extended
def test_a_spoilt_object_costs_a_line_and_no_record():
    fallbacks = 0
    for seed in range(12):
        spoiling = [Fault(CrashMoment.ANY, 500 + 20 * seed, spoils=True), Fault(CrashMoment.ANY, 20)]
        outcome = simulated("fast", seed, faults=spoiling, refusals=0).run()
        assert outcome.published == wanted("fast"), f"seed {seed}"
        fallbacks += outcome.fallbacks
    assert fallbacks


def test_a_checkpoint_needs_input_from_before_it_and_saved_parts_shorten_that():
    needed = {}
    for policy in ("opens", "eager", "costs"):
        simulation = simulated("slow", 1, policy=policy, faults=[], refusals=0)
        simulation.run()
        line = simulation.coordinator.history.line
        averages = [each.number for each in simulation.layout.partitions if each.operator == "average"]
        needed[policy] = sum(line[number].number - line[number].input_from for number in averages)
        # Upstream keeps what the windows lack.
        assert min(each.number for each in line) == min(line[number].input_from for number in averages)
    assert needed["opens"] > needed["eager"] + 1
    assert needed["opens"] > needed["costs"] + 1


def test_only_operators_with_parts_keep_a_log():
    simulation = simulated("filtered", 1, faults=[])
    simulation.run()
    partitions = [each for worker in simulation.workers for each in worker.partitions.values()]
    logged = {each.layout.operator for each in partitions if isinstance(each, LoggedPartition)}
    assert logged == {"average"}
    assert {each.layout.operator for each in partitions} == {"prices", "dear", "average", "out"}


def test_what_can_t_be_logged_is_refused():
    q3, q1 = (
        lay_out(dataflow(NexmarkSpec(query=query), 2, Delivery.EXACTLY_ONCE))
        for query in (NexmarkQuery.Q3, NexmarkQuery.Q1)
    )
    with pytest.raises(BadInput, match=r"output-log.*the state of pairs has no parts"):
        OUTPUT_LOG.check(q3)
    with pytest.raises(BadInput, match="no operator has a state in parts"):
        OUTPUT_LOG.check(q1)
    OUTPUT_LOG.check(laid_out(FEW))


def test_copies_are_refused():
    assert "not built" in (STRATEGY_CLASSES["partially-active"].check(OUTPUT_LOG) or "")
    assert STRATEGY_CLASSES["partially-active"].check(PROTOCOLS["batch-aligned"]) is None
