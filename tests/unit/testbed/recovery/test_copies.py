"""Active copies under faults: nothing lost, doubled or wrong, and no restore where everything has a copy."""

from dataclasses import replace

import pytest

from experiments.errors import BadInput
from testbed.core.by_batch.muted import WithheldOutput
from testbed.core.checkpoints import initial_line
from testbed.core.control import Dismiss, Passed, Promote, Ready, Restore, Stored
from testbed.core.coordinator.coordinator import Coordinator
from testbed.core.effects import Publish, Sweep, SweepCopy, Tell
from testbed.core.partition.partition import PartitionLimits
from testbed.operators import Delivery
from testbed.protocols import PROTOCOLS
from testbed.recovery import PartiallyActive
from testbed.simulation import CrashMoment, Fault
from tests.unit.testbed.campaigns import first_and_rest, parts, quick
from tests.unit.testbed.lone_partitions import lone_by_batch
from tests.unit.testbed.recovery.coordinators import running
from tests.unit.testbed.recovery.copied_runs import copied
from tests.unit.testbed.recovery.orders import addressed_orders_of
from tests.unit.testbed.recovery.runs import FLOWS
from tests.unit.testbed.recovery.small_layouts import chain
from tests.unit.testbed.runs import oracle
from tests.unit.testbed.small_flows import laid_out

SHARE = 125


@pytest.mark.parametrize("flow", quick(FLOWS, ["fused"]))
def test_every_kind_of_dataflow_with_copies_of_all_or_of_some(flow):
    compared = promoted = 0
    for seed in range(4):
        run = copied(flow, seed, ratio=(1.0, 0.5)[seed % 2], refusals=0.1 * (seed % 2))
        outcome = run.run()
        assert outcome.published == oracle(flow), f"seed {seed}"
        compared += run.checks.copies.compared
        promoted += outcome.promoted
    assert promoted
    assert compared > 100


@pytest.mark.parametrize("seeds", first_and_rest(range(60), 4))
def test_what_a_worker_with_copies_does_not_take_waits_and_comes_back(seeds):
    outcomes = []
    for seed in seeds:
        outcome = copied("tiny", seed, ratio=0.5, standby_room=0).run()
        assert outcome.published == oracle("tiny"), f"seed {seed}"
        outcomes.append(outcome)
    assert sum(each.promoted for each in outcomes)
    assert sum(each.restored for each in outcomes)


@pytest.mark.extended
@pytest.mark.parametrize("ratio", [1.0, 0.5])
@pytest.mark.parametrize("part", parts(12))
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


@pytest.mark.parametrize("seeds", first_and_rest(range(12), 4))
def test_where_everything_has_a_copy_one_loss_restores_nothing(seeds):
    promoted = 0
    for seed in seeds:
        loss = [Fault(CrashMoment.ANY, 250 + 10 * seed, suspicion=seed % 3 == 0)]
        outcome = copied("tiny", seed, faults=loss, slots=2, standby=2).run()
        assert outcome.published == oracle("tiny"), f"seed {seed}"
        assert not outcome.restored, f"seed {seed}"
        promoted += outcome.promoted
    assert promoted > len(seeds) / 2


def test_copies_are_made_again_after_they_have_taken_over():
    run = copied("tiny", 1, faults=[Fault(CrashMoment.ANY, 150)], slots=2, standby=2, timers=0.0)
    run.run()
    assert run.coordinator.copies.of.keys() == {0, 1, 2, 3}


@pytest.mark.parametrize("flow", quick(["tiny", "joined"], ["tiny"]))
def test_one_record_a_message_and_one_frame_of_credit(flow):
    limits = PartitionLimits(frames_in_flight=1, records_per_message=1, changes_per_full=2)
    assert copied(flow, 4, limits=limits).run(60_000).published == oracle(flow)


@pytest.mark.parametrize("seeds", first_and_rest(range(3), 1))
def test_a_plain_sink_with_copies_loses_nothing(seeds):
    for seed in seeds:
        run = copied("joined", seed, delivery=Delivery.PLAIN, expected=None)
        assert run.run().written >= oracle("joined"), f"seed {seed}"


def test_a_copy_of_a_source_does_not_run_away():
    run = copied("tiny", 0, faults=[], slots=2, standby=2, spare_lines=0)
    run.run()
    ahead = [
        each._snapshots.last - each.sending.retained.number
        for worker in run.workers
        for each in worker.partitions.values()
        if each.muted and not each.inputs
    ]
    assert ahead
    assert max(ahead) <= 3


def with_copies(line=0):
    """A chain of source 0, operator 1 and sink 2 on one slot, with copies on a second worker, all at this line."""
    coordinator = running(chain(0, 0, 0), PartiallyActive(1.0), 1, standby=1, lives=(1, 2), spare_lines=0)
    for initial in coordinator.history.line if line else ():
        taken = {"number": line, "epoch": 1, "state_keys": (f"{initial.partition}/state-{line}-1",)}
        coordinator.on_message(Stored(1, replace(initial, **taken)))
    return coordinator


def test_a_lost_partition_is_replaced_by_its_copy_at_once():
    coordinator = with_copies()
    coordinator.take_effects()
    coordinator.on_lost("w0")
    assert addressed_orders_of(coordinator, Promote, Restore) == [("w1", number, Promote(3)) for number in range(3)]
    assert (coordinator.lives, coordinator.down) == ([3, 3, 3], frozenset())


def test_what_a_primary_has_stored_is_not_undone_as_far_as_its_copy_has_come():
    """A promoted copy does not take again what it has passed. If it were the last checkpoint, the line would stick."""
    coordinator = with_copies()
    initial = initial_line(chain(0, 0, 0))
    for number in (0, 1):
        found = replace(initial[number], number=1, epoch=1, state_keys=(f"{number}/state-1-1",), last=True)
        coordinator.on_message(Stored(1, found))
    coordinator.on_message(Passed(0, 2, 1))
    coordinator.on_lost("w0")
    assert [[each.number for each in of] for of in coordinator.history.taken] == [[0, 1], [0], [0]]
    for number in (1, 2):
        coordinator.on_message(Stored(3, replace(initial[number], number=1, epoch=3)))
    assert [each.number for each in coordinator.history.line] == [1, 1, 1]


def test_of_what_is_spilled_only_that_of_the_copy_stays_when_it_is_promoted():
    """The life of the copy tells it from what the primary has spilled, of which nobody would hear again."""
    coordinator = with_copies()
    coordinator.take_effects()
    coordinator.on_lost("w0")
    (sweep,) = (each for each in coordinator.take_effects() if isinstance(each, Sweep))
    assert sweep.promoted == {each.name: 2 for each in chain(0, 0, 0).partitions}
    name = chain(0, 0, 0).partitions[1].name
    assert [key for key in (f"{name}/sent-1-1", f"{name}/sent-1-2") if sweep.takes(key)] == [f"{name}/sent-1-1"]


def test_what_a_copy_has_spilled_goes_when_its_worker_is_lost():
    """No recovery begins that would sweep it away."""
    coordinator = with_copies()
    coordinator.take_effects()
    coordinator.on_lost("w1")
    swept = [each for each in coordinator.take_effects() if isinstance(each, SweepCopy)]
    assert swept == [SweepCopy(each.name, 2) for each in chain(0, 0, 0).partitions]


def test_copies_that_are_lost_are_made_again_at_once_where_there_is_room():
    """Until then their primaries are without protection. The stable line may not move for a checkpoint interval."""
    coordinator = with_copies()
    coordinator.on_joined("w2", "w2")
    assert {copy.worker for copy in coordinator.copies.of.values()} == {"w1"}
    coordinator.on_lost("w1")
    assert {number: copy.worker for number, copy in coordinator.copies.of.items()} == dict.fromkeys(range(3), "w2")


def test_a_copy_behind_the_line_does_not_replace_its_primary():
    coordinator = with_copies(line=1)
    for number in (0, 1):
        coordinator.on_message(Passed(number, 2, 1))
    coordinator.take_effects()
    coordinator.on_lost("w0")
    orders = addressed_orders_of(coordinator, Promote, Restore, Dismiss)
    assert orders[:3] == [("w1", 2, Dismiss(2)), ("w1", 0, Promote(3)), ("w1", 1, Promote(3))]
    assert [(worker, number, message.checkpoint.number) for worker, number, message in orders[3:]] == [("w1", 2, 1)]


def test_a_copy_is_neither_on_the_host_nor_in_the_domain_of_its_primary():
    coordinator = Coordinator(chain(0, 0, 0), PROTOCOLS["batch-aligned"], 1, 0, PartiallyActive(1.0))
    for name, host, domains in (("w0", "h0", ["a", "x"]), ("w1", "h0", ["a"]), ("w2", "h1", ["b", "a"])):
        coordinator.on_joined(name, host, domains)
    for number in range(3):
        coordinator.on_message(Ready(number, 1))
    assert not coordinator.copies.of
    coordinator.on_joined("w3", "h2", ["b"])
    assert {copy.worker for copy in coordinator.copies.of.values()} == {"w3"}


def test_withheld_output_is_let_go_by_batch_and_put_out_in_order():
    withheld = WithheldOutput()
    for batch in range(4):
        assert withheld.hold(batch, [Publish(batch + 1, ()), Tell(Ready(0, 1))]) == [Tell(Ready(0, 1))]
    withheld.trim(2)
    assert withheld.take() == [Publish(3, ()), Publish(4, ())]
    assert not withheld.take()


def taken(partition, number):
    """What taking a checkpoint has for effects."""
    partition.take_effects()
    partition.checkpoint(number)
    return partition.take_effects()


def test_a_copy_takes_no_checkpoints_and_its_first_one_after_promotion_is_full():
    layout = chain(0, 0, 0)
    primary, copy = (lone_by_batch(layout, layout.partitions[1]) for _ in range(2))
    primary.restore(Restore(1, initial_line(layout)[1], ()), {})
    (store,) = taken(primary, 1)
    objects = {key: b"".join(map(bytes, content())) for key, content in store.objects.items()}
    copy.restore(Restore(2, store.checkpoint, (), muted=True), objects)
    assert taken(copy, 2) == [Tell(Passed(1, 2, 2))]
    copy.on_order(Promote(3))
    (first,), (second,) = taken(copy, 3), taken(copy, 4)
    assert [len(each.checkpoint.state_keys) for each in (first, second)] == [1, 2]
    assert first.checkpoint.epoch == 3


BAD = [
    ({"ratio": 1.5}, "replication_ratio"),
    ({"ratio": -0.1}, "replication_ratio"),
    ({"ratio": 0.5, "planner": "best"}, "replication_planner"),
]


def test_partitions_that_are_named_have_a_copy_and_no_others():
    layout = chain(0, 0, 0)
    strategy = PartiallyActive(named=("b.0", "c.0", "c.0"))
    assert {layout.partitions[number].name for number in strategy.copied(layout)} == {"b.0", "c.0"}
    assert strategy.budget(layout) == 2
    with pytest.raises(BadInput, match=r"copied.*b.9.*partitions of the dataflow, of which it has 3: a.0, b.0, c.0"):
        PartiallyActive(named=("c.0", "b.9")).copied(layout)


@pytest.mark.parametrize(("given", "field"), BAD)
def test_a_plan_that_cannot_be_is_refused(given, field):
    with pytest.raises(BadInput, match=field):
        PartiallyActive(**given)


def test_a_planner_that_finds_no_plan_is_refused():
    """No tree from a source to the sink has so few partitions."""
    with pytest.raises(BadInput, match="structure-aware finds no use for 1 copies in chain"):
        PartiallyActive(0.3).copied(chain(0, 0, 0))


@pytest.mark.parametrize("planner", ["exact", "dp", "structure-aware", "greedy"])
def test_every_planner_plans_for_a_dataflow(planner):
    layout, _ = laid_out("tiny")
    chosen = PartiallyActive(0.75, planner).copied(layout)
    assert {0, 3} <= chosen, "the only source and the only sink"
    assert len(chosen) == 3
