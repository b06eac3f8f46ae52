"""Every strategy under faults: nothing lost, doubled or wrong, and survivors go on where the strategy says so."""

import pytest

from experiments.errors import BadInput
from testbed.core.coordinator.coordinator import Coordinator
from testbed.core.partition.partition import PartitionLimits
from testbed.operators import Delivery
from testbed.protocols import PROTOCOLS
from testbed.recovery import STRATEGIES, World, by_name
from testbed.simulation import CrashMoment, Fault
from tests.unit.testbed.campaigns import first_and_rest, paired, parts, quick
from tests.unit.testbed.recovery.runs import FLOWS, simulated
from tests.unit.testbed.runs import oracle
from tests.unit.testbed.small_flows import laid_out

PARTIAL = [name for name, strategy in STRATEGIES.items() if strategy.partial]
FROM_CHECKPOINTS = [name for name, strategy in STRATEGIES.items() if not strategy.from_sources]
SHARE = 125
RESUMED = 6  # a seed with which every flow goes back to a checkpoint


@pytest.mark.parametrize("seeds", first_and_rest((RESUMED, 0, 1, 2, 3, 4, 5, 7), 1))
@pytest.mark.parametrize(("flow", "strategy"), paired(FLOWS, STRATEGIES))
def test_every_kind_of_dataflow_with_crashes_and_a_store_that_refuses(flow, strategy, seeds):
    resumed = 0
    for seed in seeds:
        outcome = simulated(flow, strategy, seed, refusals=0.1 * (seed % 2), spare_lines=seed % 3).run()
        assert outcome.published == oracle(flow), f"seed {seed}"
        resumed += outcome.resumed
    if RESUMED in seeds or strategy not in FROM_CHECKPOINTS:
        assert bool(resumed) is (strategy in FROM_CHECKPOINTS)


@pytest.mark.extended
@pytest.mark.parametrize("part", parts(8))
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_thousand_schedules_with_crashes(strategy, part):
    crashes = resumed = 0
    for seed in range(part * SHARE, (part + 1) * SHARE):
        outcome = simulated("tiny", strategy, seed).run()
        assert outcome.published == oracle("tiny"), f"seed {seed}"
        crashes, resumed = crashes + outcome.crashes, resumed + outcome.resumed
    assert crashes > SHARE
    assert resumed > SHARE / 8 or strategy not in FROM_CHECKPOINTS


@pytest.mark.parametrize("flows", first_and_rest(FLOWS, 1))
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_one_record_a_message_and_one_frame_of_credit(strategy, flows):
    limits = PartitionLimits(frames_in_flight=1, records_per_message=1, changes_per_full=2)
    for flow in flows:
        assert simulated(flow, strategy, 3, limits=limits).run().published == oracle(flow), flow


@pytest.mark.parametrize("seeds", first_and_rest(range(60), 20))
@pytest.mark.parametrize("strategy", quick(FROM_CHECKPOINTS, ["passive"]))
def test_a_spoilt_checkpoint_costs_a_line_and_no_record(strategy, seeds):
    fallbacks = 0
    for seed in seeds:
        spoiling = [Fault(CrashMoment.ANY, 340 + 4 * seed, spoils=True), Fault(CrashMoment.ANY, 20)]
        outcome = simulated("tiny", strategy, seed, faults=spoiling).run()
        assert outcome.published == oracle("tiny"), f"seed {seed}"
        fallbacks += outcome.fallbacks
    assert fallbacks > 1


@pytest.mark.parametrize("seeds", first_and_rest(range(6), 1))
@pytest.mark.parametrize("strategy", quick(STRATEGIES, ["blocking", "source-replay"]))
def test_a_plain_sink_loses_nothing(strategy, seeds):
    for seed in seeds:
        assert simulated("joined", strategy, seed, Delivery.PLAIN).run().written >= oracle("joined"), f"seed {seed}"


@pytest.mark.parametrize("strategy", sorted({*PARTIAL} & {*FROM_CHECKPOINTS}))
def test_survivors_keep_their_life(strategy):
    simulation = simulated("joined", strategy, 0, faults=[Fault(CrashMoment.ANY, 900, late=True)])
    simulation.run()
    lives = simulation.coordinator.lives
    of_workers = [{lives[number] for number in worker.partitions} for worker in simulation.workers]
    assert sorted(of_workers, key=min) == [{1}, {2}]


def test_what_is_retained_is_let_go():
    simulation = simulated("joined", "passive", 0, faults=[], spare_lines=0)
    simulation.run()
    kept = sum(p.sending.retained.frames for worker in simulation.workers for p in worker.partitions.values())
    assert 0 < kept < simulation.network.numbered / 3


@pytest.mark.parametrize("protocol", ["none", "coordinated", "uncoordinated", "communication-induced"])
@pytest.mark.parametrize("strategy", PARTIAL)
def test_a_partial_recovery_needs_a_protocol_by_batch(strategy, protocol):
    layout, _ = laid_out("joined", Delivery.PLAIN)
    with pytest.raises(BadInput, match="protocol batch-aligned"):
        Coordinator(layout, PROTOCOLS[protocol], slots=2, recovery=STRATEGIES[strategy]())


def test_an_unknown_strategy_is_refused():
    with pytest.raises(BadInput, match="global, blocking, passive"):
        by_name("active")


WORLDS = {
    "all are down and one has no worker": (World(3, frozenset({0, 1, 2}), frozenset({0, 1})), set(), set(), set()),
    "all are down and have workers": (World(3, frozenset({0, 1, 2}), frozenset({0, 1, 2})), *[{0, 1, 2}] * 3),
    "two of three are down, one of them has a worker": (
        World(3, frozenset({1, 2}), frozenset({0, 1})),
        set(),
        set(),
        {1},
    ),
    "two of three are down and have workers": (
        World(3, frozenset({1, 2}), frozenset({0, 1, 2})),
        {0, 1, 2},
        {1, 2},
        {1, 2},
    ),
    "nobody is down": (World(3, frozenset(), frozenset({0, 1, 2})), set(), set(), set()),
}


@pytest.mark.parametrize("world", WORLDS)
def test_whom_a_strategy_restores(world):
    given, *wanted = WORLDS[world]
    found = [set(STRATEGIES[name]().restored_now(given)) for name in ("global", "blocking", "passive")]
    assert found == wanted
