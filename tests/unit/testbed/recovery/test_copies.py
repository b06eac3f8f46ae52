"""Active copies under faults: nothing lost, doubled or wrong, and no restore where everything has a copy."""

import pytest

from testbed.core.partition import PartitionLimits
from testbed.operators import Delivery
from testbed.simulation import CrashMoment, Fault
from tests.unit.testbed.recovery.copied_runs import copied
from tests.unit.testbed.recovery.runs import FLOWS
from tests.unit.testbed.runs import oracle

SHARE = 125


@pytest.mark.parametrize("flow", FLOWS)
def test_every_kind_of_dataflow_with_copies_of_all_or_of_some(flow):
    compared = promoted = 0
    for seed in range(6):
        run = copied(flow, seed, ratio=(1.0, 0.5)[seed % 2], refusals=0.1 * (seed % 2))
        outcome = run.run()
        assert outcome.published == oracle(flow), f"seed {seed}"
        compared += run.copy_invariants.compared
        promoted += outcome.promoted
    assert promoted
    assert compared > 500


@pytest.mark.extended
@pytest.mark.parametrize("ratio", [1.0, 0.5])
@pytest.mark.parametrize("part", range(12))
def test_thousands_of_schedules_with_correlated_kills(ratio, part):
    crashes = promoted = restored = 0
    for seed in range(part * SHARE, (part + 1) * SHARE):
        outcome = copied("tiny", seed, ratio).run()
        assert outcome.published == oracle("tiny"), f"seed {seed}"
        crashes, promoted = crashes + outcome.crashes, promoted + outcome.promoted
        restored += outcome.restored
    assert crashes > SHARE
    assert promoted > SHARE / 4
    assert restored > SHARE / 4


def test_where_everything_has_a_copy_one_loss_restores_nothing():
    promoted = 0
    for seed in range(12):
        loss = [Fault(CrashMoment.ANY, 250 + 10 * seed, suspicion=seed % 3 == 0)]
        outcome = copied("tiny", seed, faults=loss, slots=2, standby=2).run()
        assert outcome.published == oracle("tiny"), f"seed {seed}"
        assert not outcome.restored, f"seed {seed}"
        promoted += outcome.promoted
    assert promoted > 6


def test_copies_are_made_again_after_they_have_taken_over():
    run = copied("tiny", 1, faults=[Fault(CrashMoment.ANY, 150)], slots=2, standby=2, timers=0.0)
    run.run()
    assert run.coordinator.copies.of.keys() == {0, 1, 2, 3}


def test_one_record_a_message_and_one_frame_of_credit():
    limits = PartitionLimits(frames_in_flight=1, records_per_message=1, changes_per_full=2)
    for flow in ("tiny", "joined"):
        assert copied(flow, 4, limits=limits).run(60_000).published == oracle(flow), flow


def test_a_plain_sink_with_copies_loses_nothing():
    for seed in range(6):
        run = copied("joined", seed, delivery=Delivery.PLAIN, expected=None)
        assert run.run().written >= oracle("joined"), f"seed {seed}"


def test_a_copy_of_a_source_does_not_run_away():
    run = copied("tiny", 0, faults=[], slots=2, standby=2, spare_lines=0)
    run.run()
    ahead = [
        each.snapshots_ahead
        for worker in run.workers
        for each in worker.partitions.values()
        if each.muted and not each.inputs
    ]
    assert ahead
    assert max(ahead) <= 3
