"""Recovery query by query: at each arrival what the models plan goes back, and puts out all that it can."""

import math
import re
from random import Random
from types import SimpleNamespace

import numpy as np
import pytest

from experiments import waiting
from experiments.errors import AftershockError, BadInput
from models.recovery import within_limits
from models.recovery.planners import PLANNERS
from models.recovery.problem import recovery_problem
from testbed.core.recovery import World
from testbed.recovery import Blocking, QueryCentric, packing, query_partitions
from testbed.recovery.query_partitions import problem_of, queries_of
from tests.unit.testbed.campaigns import parts, quick
from tests.unit.testbed.queries.hashtag_queries import FIFTEEN, TWO, laid_out
from tests.unit.testbed.recovery.bursts import (
    PARTITIONS_EACH,
    WORKERS,
    BurstSimulation,
    Late,
    Overloaded,
    arrivals_after,
    burst,
    fifteen_in_bursts,
    planned,
    topology_of,
)

FAVOURED = {"q14": 10, "q8": 5}  # whole numbers, as experiments have them
SHARE = 125


def test_a_query_has_all_that_it_reads():
    layout = laid_out(FIFTEEN)
    names = {layout.partitions[number].name for number in queries_of(layout)["q9.0"]}
    assert names == {"q9.0", "o9.0", "o4.0", "o5.0", "o0.0", "o1.0", "tweets.0"}


def test_the_problem_is_the_one_of_the_models():
    layout = laid_out(FIFTEEN)
    random = Random(4)
    for _ in range(20):
        failed = sorted(random.sample(range(31), random.randrange(1, 31)))
        ours = problem_of(layout, failed, 5.0, FAVOURED)
        theirs = recovery_problem(
            topology_of(layout, FAVOURED), [f"{layout.partitions[n].name}.0" for n in failed], 5.0
        )
        needs = {name: ours.needs.toarray()[i].sum() for i, name in enumerate(ours.queries)}
        assert needs == {name[:-2]: theirs.needs.toarray()[i].sum() for i, name in enumerate(theirs.queries)}
        priorities = dict(zip(ours.queries, ours.priorities.tolist(), strict=True))
        assert priorities == {n[:-2]: p for n, p in zip(theirs.queries, theirs.priorities.tolist(), strict=True)}


def schedule_differs(planner, seed, priorities=None):
    """Whether the queries after some arrival are not those of the model."""
    layout, random = laid_out(FIFTEEN), Random(seed)
    lost = random.sample(range(WORKERS), random.randrange(2, WORKERS))
    down, found = arrivals_after(layout, QueryCentric(PARTITIONS_EACH, planner, priorities), WORKERS, lost)
    times = planned(layout, down, WORKERS - len(lost), PARTITIONS_EACH, len(lost), PLANNERS[planner], priorities)
    spared = set(queries_of(layout)) - set(times)
    wanted = [spared | {name for name, at_s in times.items() if at_s <= step} for step in range(len(lost) + 1)]
    assert all(map(math.isfinite, times.values()))
    return found != wanted


@pytest.mark.parametrize(
    ("planner", "seeds"),
    [
        ("best-density", range(4)),
        ("exact", range(3)),
        pytest.param("best-density", range(4, 12), marks=pytest.mark.extended),
    ],
)
def test_the_queries_after_each_arrival_are_those_of_the_model(planner, seeds):
    assert not any(schedule_differs(planner, seed, FAVOURED if seed % 2 else None) for seed in seeds)


@pytest.mark.parametrize("planner", ["exact", "dp"])
def test_the_optimal_planners_recover_no_query_later_in_sum(planner):
    layout = laid_out(FIFTEEN)
    sums = {}
    for name in (planner, "best-density", "operator-centric"):
        _, found = arrivals_after(layout, QueryCentric(PARTITIONS_EACH, name), WORKERS, range(2, 10))
        sums[name] = [len(each) for each in found]
    assert sums[planner][1] >= sums["best-density"][1] >= sums["operator-centric"][1]
    assert sums[planner][-1] == 15


def test_a_cluster_that_stays_too_small_keeps_the_queries_with_the_highest_priorities():
    layout = laid_out(FIFTEEN)
    _, found = arrivals_after(layout, QueryCentric(PARTITIONS_EACH, "exact", FAVOURED), WORKERS, range(10))
    first = next(each for each in found if each)
    assert "q14.0" in first or "q8.0" in first
    order = [next(i for i, each in enumerate(found) if f"{name}.0" in each) for name in ("q8", "q14", "q13")]
    assert order == sorted(order)


def test_after_a_complete_failure_nobody_waits_for_the_last_worker():
    _, found = arrivals_after(laid_out(FIFTEEN), QueryCentric(PARTITIONS_EACH), WORKERS, range(10))
    assert [len(each) for each in found[:2]] == [0, 1]
    assert len(found[-1]) == 15


def test_blocking_waits_for_the_last_worker_and_keeps_what_survivors_have():
    _, found = arrivals_after(laid_out(FIFTEEN), Blocking(by_room=True), WORKERS, range(8))
    assert [len(each) for each in found[1:]] == [len(found[0])] * 7 + [15]
    assert len(found[0]) < 15


@pytest.mark.parametrize("seed", range(3))
def test_blocking_by_room_loses_nothing(seed):
    simulation = BurstSimulation(TWO, seed, 5, 1, None, burst(seed, 5, 80), recovery=Blocking(by_room=True))
    assert simulation.run().published == simulation.wanted
    assert simulation.outcome.crashes >= 2


@pytest.mark.parametrize("seed", quick(range(12), range(4)))
def test_at_no_arrival_are_more_queries_back_by_blocking_than_query_by_query(seed):
    lost = Random(seed).sample(range(WORKERS), 8)
    _, by_query = arrivals_after(laid_out(FIFTEEN), QueryCentric(PARTITIONS_EACH), WORKERS, lost)
    _, blocking = arrivals_after(laid_out(FIFTEEN), Blocking(by_room=True), WORKERS, lost)
    assert all(len(one) >= len(other) for one, other in zip(by_query, blocking, strict=True))
    assert any(len(one) > len(other) for one, other in zip(by_query, blocking, strict=True))


def simulated(spec, seed, planner="best-density"):
    if spec is TWO:
        return BurstSimulation(spec, seed, 5, 1, planner, burst(seed, 5, 80))
    return fifteen_in_bursts(seed, planner)


@pytest.mark.parametrize(
    ("spec", "seeds"),
    [
        (TWO, range(4)),
        (FIFTEEN, range(2)),
        pytest.param(TWO, range(4, 12), marks=pytest.mark.extended),
    ],
)
def test_bursts_lose_nothing_and_recovered_queries_put_out_all_before_the_next_arrival(spec, seeds):
    early = 0
    for seed in seeds:
        simulation = simulated(spec, seed)
        assert simulation.run().published == simulation.wanted, f"seed {seed}"
        assert len(simulation.arrivals) == simulation.outcome.crashes >= 2
        early += simulation.is_early
    assert early


@pytest.mark.extended
@pytest.mark.parametrize("part", parts(8))
def test_a_thousand_bursts(part):
    crashes = early = 0
    for seed in range(part * SHARE, (part + 1) * SHARE):
        simulation = simulated(TWO, seed, list(PLANNERS)[seed % len(PLANNERS)])
        assert simulation.run().published == simulation.wanted, f"seed {seed}"
        crashes, early = crashes + simulation.outcome.crashes, early + simulation.is_early
    assert crashes > 2 * SHARE
    assert early > SHARE / 4


def room_for_one_more(strategy, world, real=QueryCentric._room):
    room = real(strategy, world)
    return type(room)({worker: places + 1 for worker, places in room.items()})


def only_the_emptiest(strategy, world, real=QueryCentric._room):
    room = real(strategy, world)
    emptiest = max(room, key=room.__getitem__)
    return type(room)({emptiest: room[emptiest]})


def survivors_too(strategy, world, real=QueryCentric.plan):
    found = real(strategy, world)
    return found and {**dict(world.hosts), **found}


def the_last_is_awaited(strategy, world, real=QueryCentric.plan):
    return {} if len(world.workers) < world.slots else real(strategy, world)


def without_what_it_reads(layout):
    return {each.name: frozenset({each.number}) for each in layout.partitions if each.operator.startswith("q")}


PLANTS = {
    "a worker takes one too many": (QueryCentric, "_room", room_for_one_more, "Overloaded"),
    "survivors go back, too": (QueryCentric, "plan", survivors_too, "is restored and was not lost"),
    "the last worker is awaited": (QueryCentric, "plan", the_last_is_awaited, "nobody was early"),
}


@pytest.mark.parametrize("plant", PLANTS)
def test_an_error_in_bursts_is_noticed(plant, monkeypatch):
    owner, name, wrong, expected = PLANTS[plant]
    monkeypatch.setattr(owner, name, wrong)
    found = []
    for seed in range(12):
        simulation = None
        try:
            simulation = simulated(TWO, seed)
            simulation.run()
        except (AftershockError, Late, Overloaded) as error:
            found.append(repr(error))
            break
        found += ["somebody was early"] * simulation.is_early
    found += ["nobody was early"] * ("somebody was early" not in found)
    assert re.search(expected, " ".join(found)), found


PLANTS_IN_PLANS = {
    "room of workers that were there before is forgotten": (QueryCentric, "_room", only_the_emptiest),
    "what a query reads is forgotten": (query_partitions, "queries_of", without_what_it_reads),
}


@pytest.mark.parametrize("plant", PLANTS_IN_PLANS)
def test_an_error_in_plans_is_noticed(plant, monkeypatch):
    owner, name, wrong = PLANTS_IN_PLANS[plant]
    monkeypatch.setattr(owner, name, wrong)
    assert any(schedule_differs("best-density", seed) for seed in range(6))


@pytest.mark.parametrize(
    ("arguments", "field", "allowed"),
    [
        ((1, "exact", None, 0.0), "planner_limit_s", "more than 0"),
        ((0,), "capacity", "1 or more"),
        ((1, "quickest"), "planner", "exact, dp, best-density, density-beam, operator-centric"),
    ],
)
def test_what_cannot_work_is_refused_in_one_line(arguments, field, allowed):
    with pytest.raises(BadInput, match=allowed) as mistake:
        QueryCentric(*arguments)
    assert mistake.value.field == field


def burst_of_eight(strategy):
    return arrivals_after(laid_out(FIFTEEN), strategy, WORKERS, range(2, 10))[1]


def test_a_planner_without_a_proof_in_time_is_helped_by_a_quick_one(monkeypatch):
    def gives_up(problem, limit_s):
        assert 0 < limit_s <= 0.25
        return problem.plan(np.zeros(problem.costs.size, dtype=bool), optimal=False)

    monkeypatch.setattr(within_limits, "exact", gives_up)
    strategy = QueryCentric(PARTITIONS_EACH, "exact", limit_s=0.25)
    assert burst_of_eight(strategy) == burst_of_eight(QueryCentric(PARTITIONS_EACH, "density-beam"))
    notes = strategy.take_notes()
    assert set(notes) == {"the better plan of exact and density-beam: exact had no proof in time"}
    assert strategy.take_notes() == []


def test_a_planner_that_refuses_so_many_queries_is_replaced(monkeypatch):
    monkeypatch.setitem(PLANNERS, "dp", refuses)
    strategy = QueryCentric(PARTITIONS_EACH, "dp")
    assert burst_of_eight(strategy) == burst_of_eight(QueryCentric(PARTITIONS_EACH, "density-beam"))
    assert re.fullmatch(r"planner density-beam instead of dp: \d+ failed queries, at most 20", strategy.take_notes()[0])


def refuses(problem, *, alone=False):
    raise BadInput("failed", f"{len(problem.queries)} failed queries", "at most 20")


@pytest.mark.parametrize("planner", ["dp", "exact", "density-beam"])
def test_where_the_quick_planner_refuses_too_nothing_is_planned(planner, monkeypatch):
    monkeypatch.setitem(PLANNERS, "dp", refuses)
    monkeypatch.setattr(within_limits, "exact", lambda problem, limit_s: refuses(problem))
    monkeypatch.setattr(within_limits, "density_beam", refuses)
    strategy = QueryCentric(PARTITIONS_EACH, planner)
    found = burst_of_eight(strategy)
    assert found == [found[0]] * len(found)
    assert strategy.take_notes()[-1].startswith("density-beam plans nothing: ")


class Clock:
    """Every plan takes 0.15 s, and has one query."""

    def __init__(self):
        self.now_s, self.limits_s = 100.0, []

    def exact(self, problem, limit_s):
        self.limits_s.append(limit_s)
        self.now_s += 0.15
        return problem.plan(problem.union(np.arange(len(problem.queries)) == 0), optimal=True)


def test_a_whole_plan_has_one_deadline_though_it_may_be_planned_again(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(waiting, "time", SimpleNamespace(monotonic=lambda: clock.now_s))
    monkeypatch.setattr(within_limits, "exact", clock.exact)
    monkeypatch.setattr(packing.Packing, "place", lambda *_: False)
    strategy = QueryCentric(planner="exact", limit_s=0.25)
    layout, everyone = laid_out(FIFTEEN), frozenset(range(31))
    assert strategy.plan(World(31, everyone, everyone, True, frozenset({"a"}), layout=layout)) == {}
    assert clock.limits_s == pytest.approx([0.25, 0.1])
    assert not strategy.take_notes(), "no other planner takes over: queries are tried alone"


def test_a_planner_that_plans_in_time_is_left_alone():
    strategy = QueryCentric(PARTITIONS_EACH, "exact", limit_s=30)
    burst_of_eight(strategy)
    assert strategy.take_notes() == []


def test_nothing_goes_back_before_all_have_come_for_the_first_time():
    layout = laid_out(TWO)
    everyone = frozenset(range(5))
    world = World(5, everyone, frozenset({0}), started=False, workers=frozenset({"a"}), layout=layout, slots=2)
    assert QueryCentric(5).plan(world) == {}
    assert set(QueryCentric(5).plan(World(5, everyone, everyone, True, frozenset({"a"}), layout=layout))) == everyone
