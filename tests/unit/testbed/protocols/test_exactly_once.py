"""With crashes at any time nothing is lost or doubled: thousands of schedules against a run without faults."""

from dataclasses import replace

import pytest

from testbed.core.partition.partition import PartitionLimits
from testbed.operators import Delivery
from tests.unit.testbed.campaigns import first_and_rest, parts
from tests.unit.testbed.runs import CASES, FAULT_TOLERANT, faults, oracle, simulated

SHARE = 125
REFUSED = 1  # a seed with which the store refuses


@pytest.mark.extended
@pytest.mark.parametrize("part", parts(8, of_each_run=2))
@pytest.mark.parametrize("protocol", FAULT_TOLERANT)
def test_a_thousand_schedules_with_crashes(protocol, part):
    crashes = resumed = 0
    for seed in range(part * SHARE, (part + 1) * SHARE):
        outcome = simulated("tiny", protocol, seed).run()
        assert outcome.published == oracle("tiny"), f"seed {seed}"
        crashes, resumed = crashes + outcome.crashes, resumed + outcome.resumed
    assert crashes > SHARE
    assert resumed > SHARE / 4


@pytest.mark.parametrize("seeds", first_and_rest((REFUSED, 0, 2, 3, 4, 5, 6, 7), 1))
@pytest.mark.parametrize(("flow", "protocol"), CASES)
def test_every_kind_of_dataflow_with_crashes_and_a_store_that_refuses(flow, protocol, seeds):
    crashes = 0
    for seed in seeds:
        outcome = simulated(flow, protocol, seed, refusals=0.1 * (seed % 2), spare_lines=seed % 3).run()
        assert outcome.published == oracle(flow), f"seed {seed}"
        crashes += outcome.crashes
    assert crashes


@pytest.mark.parametrize("seeds", first_and_rest(range(2), 1))
@pytest.mark.parametrize(("flow", "protocol"), CASES)
def test_one_record_a_message_and_one_frame_of_credit(flow, protocol, seeds):
    limits = PartitionLimits(frames_in_flight=1, records_per_message=1, messages_in_range=1, changes_per_full=2)
    for seed in seeds:
        outcome = simulated(flow, protocol, seed, limits=limits).run()
        assert outcome.published == oracle(flow), f"seed {seed}"


@pytest.mark.parametrize("seeds", first_and_rest(range(60), 10))
@pytest.mark.parametrize("protocol", FAULT_TOLERANT)
def test_a_spoilt_checkpoint_costs_a_line_and_no_record(protocol, seeds):
    fallbacks = 0
    for seed in seeds:
        spoiling = [replace(fault, spoils=True) for fault in faults("tiny", protocol, seed)]
        outcome = simulated("tiny", protocol, seed, faults=spoiling, timers=0.4).run()
        assert outcome.published == oracle("tiny"), f"seed {seed}"
        fallbacks += outcome.fallbacks
    assert fallbacks > 3


@pytest.mark.parametrize("seeds", first_and_rest(range(8), 3))
@pytest.mark.parametrize("protocol", FAULT_TOLERANT)
def test_a_plain_sink_loses_nothing_but_repeats(protocol, seeds):
    repeated = 0
    for seed in seeds:
        outcome = simulated("joined", protocol, seed, Delivery.PLAIN).run()
        assert outcome.written >= oracle("joined"), f"seed {seed}"
        repeated += outcome.written != oracle("joined")
    assert repeated


def test_without_a_protocol_everything_begins_again():
    for seed in range(8):
        outcome = simulated("joined", "none", seed, Delivery.PLAIN).run()
        assert outcome.written >= oracle("joined"), f"seed {seed}"
        assert outcome.tally.checkpoints == 0


def test_the_same_seed_is_the_same_run():
    first, second = (simulated("joined", "uncoordinated", 7).run() for _ in range(2))
    assert (first.steps, first.tally, first.published) == (second.steps, second.tally, second.published)
