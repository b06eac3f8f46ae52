"""Lost output is made again from the sources on: which partitions start again, and that nothing is stored for it."""

import pytest

from experiments.errors import BadInput
from testbed.core.by_batch.cutting import Batching
from testbed.core.coordinator.coordinator import Coordinator
from testbed.core.dataflow.layout import Layout
from testbed.protocols import PROTOCOLS
from testbed.recovery import STRATEGIES, SourceReplay, World
from testbed.simulation import CrashMoment, Fault
from tests.unit.testbed.planting import assert_noticed, everyone_restored, notice_of
from tests.unit.testbed.recovery.runs import simulated
from tests.unit.testbed.recovery.small_layouts import chain, two_sources
from tests.unit.testbed.runs import oracle

LATE = [Fault(CrashMoment.ANY, 250, late=True)]


@pytest.mark.parametrize(
    ("layout", "down", "placed", "expected"),
    [
        (chain(0, 1, 2), {1}, {0, 1, 2}, {0, 1}),
        (chain(0, 1, 2), {0}, {0, 1, 2}, {0}),
        (chain(0, 1, 2), {2}, {0, 1, 2}, {0, 1, 2}),
        (chain(0, 1, 2), {1, 2}, {0, 1}, set()),
        (two_sources(0, 1, 2), {1}, {0, 1, 2}, {1}),
        (two_sources(0, 1, 2), {0, 2}, {0, 1, 2}, {0, 1, 2}),
        (chain(0, 1, 2), set(), {0, 1, 2}, set()),
    ],
)
def test_the_lost_and_all_upstream_of_them_begin_anew(layout, down, placed, expected):
    world = World(3, frozenset(down), frozenset(placed), layout=layout)
    assert SourceReplay().restored_now(world) == expected


def test_downstream_survivors_go_on_and_what_they_have_is_not_taken_twice():
    twice = kept = 0
    for seed in range(12):
        simulation = simulated("tiny", "source-replay", seed, faults=LATE, slots=3)
        outcome = simulation.run()
        assert outcome.published == oracle("tiny"), f"seed {seed}"
        twice += outcome.tally.duplicates
        kept += bool(outcome.recoveries) and min(simulation.coordinator.lives) == 1
    assert twice
    assert kept


def test_nothing_is_stored_and_nothing_is_kept_for_others():
    simulation = simulated("joined", "source-replay", 0)
    outcome = simulation.run()
    assert outcome.recoveries
    assert (simulation.store.keys(), outcome.tally.checkpoints) == ([], 0)
    assert not any(p.sending.retained.frames for worker in simulation.workers for p in worker.partitions.values())


def test_tentative_output_is_refused():
    with pytest.raises(BadInput, match="a partition that missed input has no checkpoint"):
        Coordinator(chain(0, 1, 2), PROTOCOLS["batch-aligned"], 3, recovery=SourceReplay(), tentative=True)


def only_the_lost(strategy, world):
    return STRATEGIES["blocking"]().restored_now(world)


def one_step_up(layout, numbers):
    senders = {channel.sender for number in numbers for channel in layout.partitions[number].inputs}
    return frozenset(numbers) | senders


def checkpoints_after_all(batching, batch):
    return batch if batch > 0 else None


PLANTS = {
    "only the lost begin anew": (SourceReplay, "restored_now", only_the_lost, "Stuck|ChannelGap|retains|unheard"),
    "everyone begins anew": (SourceReplay, "restored_now", everyone_restored, "was not lost"),
    "those two steps up do not begin anew": (Layout, "with_upstream", one_step_up, "Stuck|ChannelGap"),
    "partitions take checkpoints": (Batching, "checkpoint_at", checkpoints_after_all, "there should be none"),
}


def notice(seed):
    """What is wrong with a run; None if nothing is."""
    flow = ("joined", "tiny", "spread")[seed % 3]
    return notice_of(simulated(flow, "source-replay", seed, slots=3).run, flow, ValueError, KeyError)


@pytest.mark.parametrize("plant", PLANTS)
def test_an_error_in_it_is_noticed(plant, monkeypatch):
    assert_noticed(monkeypatch, PLANTS[plant], notice, range(12))
