"""The recovery line of `batch-aligned` once the input of some partitions has come to its end."""

from dataclasses import replace

import pytest

from testbed.core.by_batch.cutting import LAST_BATCH, Batching
from testbed.core.checkpoints import NO_BATCH, Checkpoint, last_common, last_common_or_ended
from testbed.core.effects import Store
from testbed.core.partition.partition import Partition
from testbed.operators import Delivery
from testbed.protocols.batch_aligned import BatchAligned
from testbed.recovery import STRATEGIES
from testbed.simulation import CrashMoment, Fault, Simulation
from testbed.simulation.storage import Storage
from tests.unit.testbed.campaigns import first_and_rest, quick
from tests.unit.testbed.small_flows import events, laid_out

LONG = {"left": [events(1, 30)[:2], events(2, 30)], "right": [events(3, 30)]}  # left.0 is out of records soon


def checkpoints(partition, *numbers, last=None):
    """Those of one partition: the initial one, these, and perhaps one behind which nothing comes."""
    found = [Checkpoint(partition, number, 1, {}, {}) for number in (0, *numbers)]
    return [*found, *([Checkpoint(partition, last, 1, {}, {}, last=True)] if last is not None else [])]


@pytest.mark.parametrize(
    ("taken", "line"),
    [
        ([checkpoints(0, 1, 2, 3), checkpoints(1, 1, 2)], (2, 2)),
        ([checkpoints(0, 1, 2, 3), checkpoints(1, last=1)], (3, 1)),
        ([checkpoints(0, 1, 2, 3), checkpoints(1, 1, 2, last=5)], (2, 2)),  # not before what it stands for
        ([checkpoints(0, 1, last=2), checkpoints(1, 1, 2, 3, last=4)], (2, 4)),
        ([checkpoints(0), checkpoints(1, last=1)], (0, 0)),
        ([checkpoints(0, 3), [*checkpoints(1, 3), Checkpoint(1, 4, 1, {}, {}, last=True)]], (3, 3)),
    ],
)
def test_a_last_checkpoint_stands_for_later_ones_and_no_earlier_one(taken, line):
    assert tuple(each.number for each in last_common_or_ended(taken, ())) == line


@pytest.mark.parametrize(("batch", "number"), [(NO_BATCH, 1), (0, 1), (2, 1), (3, 2), (7, 3), (8, 3), (11, 4)])
def test_the_number_behind_a_batch_is_that_of_a_border_which_is_not_before_it(batch, number):
    batching = Batching(10, 4)
    assert batching.next_checkpoint(batch) == number
    assert batching.first_behind(number) > batch
    assert replace(batching, per_checkpoint=None).next_checkpoint(batch) is None
    assert batching.checkpoint_at(LAST_BATCH) is None


def simulated(strategy, seed, faults=(), protocol=BatchAligned):
    """Two sources go on long after the third has ended."""
    layout, _ = laid_out("joined", Delivery.EXACTLY_ONCE)
    options = {"slots": 3, "faults": faults, "batching": Batching(5, 2), "recovery": STRATEGIES[strategy]()}
    return Simulation(layout, protocol, LONG, seed, **options)


class StuckLine(BatchAligned):
    """As it was: a partition that passes no more borders has no more checkpoints, so there is no newer line."""

    @staticmethod
    def find_line(taken, channels):
        return last_common(taken, channels)


def lines_in(simulation):
    """The last numbers of the line at the end, by the partition's name."""
    simulation.run()
    line = simulation.coordinator.history.line
    return {each.name: line[each.number].number for each in simulation.layout.partitions}


@pytest.mark.parametrize(("protocol", "goes_on"), [(BatchAligned, True), (StuckLine, False)])
def test_the_line_goes_on_as_long_as_any_source_does(protocol, goes_on):
    found = lines_in(simulated("passive", 1, protocol=protocol))
    assert (found["left.1"] > found["left.0"]) is goes_on
    assert (found["left.1"] > 5) is goes_on


def test_the_store_is_asked_again_for_a_last_checkpoint_that_it_refuses(monkeypatch):
    """No later checkpoint makes up for it: without it the line would never go on."""
    refused = set()

    def refusing_once(storage, asked, real=Storage.carry_out):
        if isinstance(asked, Store) and asked.checkpoint.last and asked.checkpoint.partition not in refused:
            refused.add(asked.checkpoint.partition)
            return Partition.on_store_failed, (asked.checkpoint.epoch, asked.checkpoint.number)
        return real(storage, asked)

    monkeypatch.setattr(Storage, "carry_out", refusing_once)
    found = lines_in(simulated("passive", 1))
    assert len(refused) > 1
    assert found["left.1"] > max(found["left.0"], 5)


@pytest.mark.parametrize("seeds", first_and_rest(range(6), 1))
@pytest.mark.parametrize("strategy", quick(["global", "blocking", "passive"], ["passive"]))
def test_whoever_has_ended_is_restored_and_nothing_is_lost_or_doubled(strategy, seeds):
    exact = simulated(strategy, 0).run().published
    resumed = ended = 0
    for seed in seeds:
        faults = [Fault(CrashMoment.ANY, 1400 + 150 * seed, late=True), Fault(CrashMoment.ANY, 40, late=bool(seed % 2))]
        simulation = simulated(strategy, seed, faults)
        outcome = simulation.run()
        assert outcome.published == exact, f"seed {seed}"
        resumed += outcome.resumed
        ended += any(each.last for each in simulation.coordinator.history.line)
    assert resumed >= len(seeds) + (0 in seeds), "and some of the first runs more than once"
    assert ended
