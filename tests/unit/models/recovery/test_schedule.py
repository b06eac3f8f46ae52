"""The schedule of figure 2, and what a schedule says."""

import math

import numpy as np
import pytest

from experiments.errors import BadInput
from models.recovery.best_density import best_density
from models.recovery.density_beam import density_beam
from models.recovery.dynamic_programming import dynamic_programming
from models.recovery.exact import exact
from models.recovery.examples import FIGURE_2_FAILED, FIGURE_2_NODE_CAPACITY, FIGURE_2_QUERIES, figure_2_topology
from models.recovery.operator_centric import operator_centric
from models.recovery.problem import recovery_problem
from models.recovery.random_queries import QuerySpec, UniformSharing, random_queries
from models.recovery.schedule import Arrival, blocking_schedule, incremental_schedule
from models.topology import parse_topology

NODES = [Arrival(float(i), FIGURE_2_NODE_CAPACITY) for i in range(1, 6)]


def figure_2(capacity=0.0):
    return recovery_problem(figure_2_topology(), FIGURE_2_FAILED, capacity)


def times(schedule):
    return [schedule.recovered_at_s[FIGURE_2_QUERIES[q]] for q in ("Q1", "Q2", "Q3", "Q4")]


@pytest.mark.parametrize("planner", [best_density, dynamic_programming, exact])
def test_figure_2_query_centric(planner):
    schedule = incremental_schedule(figure_2(), NODES, planner)
    assert times(schedule) == [2, 3, 5, 5]
    names = figure_2_topology().names
    assert names(schedule.steps[2].plan.partitions) == ["p3.0", "p5.0", "p7.0", "p9.0"]
    assert names(schedule.steps[3].plan.partitions) == ["p4.0", "p10.0"]


def test_figure_2_operator_centric():
    schedule = incremental_schedule(figure_2(), NODES, operator_centric)
    assert times(schedule) == [4, 4, 5, 5]
    names = figure_2_topology().names
    assert [names(step.plan.partitions) for step in schedule.steps] == [
        [],
        *([f"p{i}.0", f"p{i + 1}.0"] for i in range(3, 13, 2)),
    ]


def test_blocking_waits_for_the_last_node():
    assert times(blocking_schedule(figure_2(), NODES)) == [5, 5, 5, 5]
    assert times(blocking_schedule(figure_2(), NODES[:4])) == [math.inf] * 4


def test_what_is_available_at_a_time():
    schedule = incremental_schedule(figure_2(), NODES[::-1], best_density)  # the order of the list does not matter
    assert schedule.available([0.0, 1.9, 2.0, 3.0, 4.9, 5.0, 9.0]).tolist() == [0, 0, 1, 2, 2, 4, 4]


def test_what_the_nodes_alive_can_take_is_recovered_at_time_0():
    assert times(incremental_schedule(figure_2(4.0), NODES, exact)) == [0, 1, 3, 3]


def test_no_query_is_recovered_twice_and_all_are_in_the_end():
    schedule = incremental_schedule(figure_2(), NODES, best_density)
    found = [query for step in schedule.steps for query in step.plan.queries]
    assert sorted(found) == sorted(FIGURE_2_QUERIES.values())
    assert np.sum([step.plan.partitions for step in schedule.steps], axis=0).max() == 1


@pytest.mark.parametrize(
    ("arrival", "field"),
    [(Arrival(-1.0, 1.0), "at_s"), (Arrival(1.0, -1.0), "capacity"), (Arrival(math.nan, 1.0), "at_s")],
)
def test_bad_arrivals_are_named(arrival, field):
    for schedule in (
        lambda: incremental_schedule(figure_2(), [arrival], exact),
        lambda: blocking_schedule(figure_2(), [arrival]),
    ):
        with pytest.raises(BadInput, match=rf"arrivals\.{field}"):
            schedule()


@pytest.mark.parametrize("schedule", [blocking_schedule, lambda *given: incremental_schedule(*given, exact)])
def test_capacities_have_a_finite_sum(schedule):
    with pytest.raises(BadInput, match=r"arrivals\.capacity: inf"):
        schedule(figure_2(), [Arrival(float(i), 1e308) for i in range(3)])
    assert times(schedule(figure_2(), [Arrival(1.0, 1.797e308)])) == [1, 1, 1, 1]


def operator_centric_order(costs, capacity, failed="all"):
    """A chain A > B beside a source C."""
    topology = parse_topology(
        {
            "operators": [{"name": n, "parallelism": 1, "costs": [c]} for n, c in zip("ABC", costs, strict=True)],
            "streams": [{"from": "A", "to": "B", "partitioning": "one-to-one"}],
        }
    )
    plan = operator_centric(recovery_problem(topology, failed, capacity))
    return topology.names(plan.partitions)


def test_operator_centric_takes_the_cheapest_partition_that_is_ready():
    assert operator_centric_order([2, 1, 4], 2) == ["A.0"]  # B is cheaper, but waits for A
    assert operator_centric_order([2, 1, 4], 3) == ["A.0", "B.0"]  # then B is ready, and cheaper than C
    assert operator_centric_order([4, 1, 2], 4) == ["C.0"]  # A does not fit any more
    assert operator_centric_order([4, 1, 2], 1, ["B.0"]) == ["B.0"]  # A is alive


def test_operator_centric_waits_for_every_sender_of_a_full_stream():
    topology = parse_topology(
        {
            "operators": [{"name": "A", "parallelism": 2, "costs": [5, 6]}, {"name": "B", "parallelism": 2}],
            "streams": [{"from": "A", "to": "B", "partitioning": "full"}],
        }
    )
    for capacity, expected in [(10, ["A.0"]), (11, ["A.0", "A.1"]), (12, ["A.0", "A.1", "B.0"])]:
        assert topology.names(operator_centric(recovery_problem(topology, "all", capacity)).partitions) == expected


@pytest.mark.parametrize("planner", [best_density, density_beam])
@pytest.mark.parametrize("seed", range(5))
def test_at_no_moment_is_the_best_case_behind_incremental_recovery_or_that_behind_blocking(seed, planner):
    rng = np.random.default_rng(seed)
    full = random_queries(QuerySpec(UniformSharing(3), queries=12), rng)
    hosts = 8
    arrivals = [Arrival(at_s, full.capacity / hosts) for at_s in rng.uniform(120, 360, hosts)]
    together = [Arrival(min(arrivals).at_s, arrival.capacity) for arrival in arrivals]
    nothing = full.with_capacity(0.0)
    times_s = np.linspace(0, 400, 801)
    best = incremental_schedule(nothing, together, planner).available(times_s)
    incremental = incremental_schedule(nothing, arrivals, planner).available(times_s)
    blocking = blocking_schedule(nothing, arrivals).available(times_s)
    assert np.all(best >= incremental)
    assert np.all(incremental >= blocking)
    assert np.any(best > incremental)
    assert np.any(incremental > blocking)
    assert best[-1] == incremental[-1] == blocking[-1] == full.priorities.sum()
