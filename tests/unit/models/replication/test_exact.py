"""The exact planner: what it proves is what trying every plan finds."""

import time
from itertools import count, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.errors import BadInput
from models.fidelity import Scorer, worst_case
from models.replication.elimination import Elimination, OutOfTime
from models.replication.exact import plan
from models.replication.fidelity_expression import NodeKind, fidelity_expression
from models.replication.greedy import plan as greedy_plan
from models.replication.parts import PartKind
from models.replication.random_topologies import TopologySpec, generate
from models.replication.structure_aware import plan as structure_aware_plan
from tests.unit.models.small_topologies import build, optima, topologies


def fidelity(topology, replicated):
    return float(Scorer(topology).output_fidelity(worst_case(replicated)))


def requires_the_optimum(topology, **options):
    for budget, best in enumerate(optima(topology)):
        found = plan(topology, budget, time_limit_s=1e6, **options)
        assert found.optimal
        assert found.replicated.sum() <= budget
        assert fidelity(topology, found.replicated) == pytest.approx(best, rel=1e-12)
        assert best * (1 - 1e-12) <= found.upper_bound <= best * (1 + 1e-11)


def test_a_merge_takes_the_heaviest_inputs_of_the_heavier_sink():
    """C reads B at 6 and 2; of B.0's inputs A.0 is 4 of 5, of B.1's A.2 is all."""
    topology = build({"A": [4.0, 1.0, 2.0], "B": [6.0, 2.0], "C": 1}, "A merge B", "B merge C")
    found = {budget: fidelity(topology, plan(topology, budget).replicated) for budget in range(7)}
    assert found == pytest.approx({0: 0, 1: 0, 2: 0, 3: 0.75 * 0.8, 4: 0.75, 5: 0.75 * 0.8 + 0.25, 6: 1.0})


def test_a_full_chain_balances_its_operators():
    """Each operator with one of its two equal tasks halves the output."""
    topology = build({"A": 2, "B": 2, "C": 2}, "A full B", "B full C")
    found = [fidelity(topology, plan(topology, budget).replicated) for budget in range(7)]
    assert found == pytest.approx([0, 0, 0, 1 / 8, 1 / 4, 1 / 2, 1])


@pytest.mark.extended
@settings(max_examples=120, deadline=None)
@given(topologies(operators=6, parallelism=4, tasks=9, fan_out=3))
def test_finds_what_trying_every_plan_finds(topology):
    requires_the_optimum(topology)


@pytest.mark.extended
@settings(max_examples=60, deadline=None)
@given(topologies(operators=6, parallelism=3, tasks=8, fan_out=3), st.integers(1, 60))
def test_finds_it_also_by_branch_and_bound(topology, most_cells):
    """Hardly any memory, so that everything shared has to be branched on."""
    requires_the_optimum(topology, most_cells=most_cells)


@pytest.mark.extended
@settings(max_examples=150, deadline=None)
@given(topologies(operators=7, parallelism=5, tasks=24), st.floats(0.2, 0.8), st.integers(30, 300))
def test_on_larger_topologies_branch_and_bound_and_elimination_agree(topology, share, most_cells):
    budget = int(share * len(topology.tasks))
    found = plan(topology, budget, time_limit_s=0.5)
    other = plan(topology, budget, time_limit_s=0.5, most_cells=most_cells)
    assert fidelity(topology, found.replicated) <= other.upper_bound * (1 + 1e-12)
    assert fidelity(topology, other.replicated) <= found.upper_bound * (1 + 1e-12)


def test_an_expensive_shared_node_does_not_hide_the_cheap_plans_without_it():
    """B and C need all six of the chain; until they are affordable, S, B and E alone are best: half of B's output."""
    chain = [f"A{i}" for i in range(6)]
    topology = build(
        {**dict.fromkeys(chain, 1), "S": 1, "B": 1, "C": 1, "E": 1},
        *(f"{up} full {down}" for up, down in pairwise(chain)),
        *("A5 full B", "S full B", "A5 full C", "B full E", "C full E"),
    )
    assert optima(topology)[3:8].tolist() == pytest.approx([1 / 4] * 5)
    requires_the_optimum(topology)


def test_a_shared_node_that_is_decided_but_not_used():
    joined = {"inputs": "correlated"}
    topology = build(
        {
            "O0": {"parallelism": 3, "output_rates": [5, 5, 7.5], "output": True},
            "O2": [3.0, 2.0, 3.0],
            "O1": [5.0, 1.0, 3.0],
            "O3": [3.0, 2.0],
            "O4": {"parallelism": 4, "output_rates": [3, 5, 2, 7.5], **joined},
            "O5": [2.0, 5.0],
            "O6": [7.5, 2.0, 7.5],
        },
        *("O0 one-to-one O1", "O1 merge O3", "O2 merge O3", "O2 split O4", "O3 split O4", "O4 merge O5", "O5 full O6"),
    )
    branched, eliminated = (plan(topology, 13, 1e6, most_cells) for most_cells in (40, 10**6))
    assert branched.optimal
    assert eliminated.optimal
    assert fidelity(topology, branched.replicated) == pytest.approx(fidelity(topology, eliminated.replicated))


@settings(max_examples=60, deadline=None)
@given(topologies(operators=6, parallelism=3, tasks=9, fan_out=3), st.integers(0, 9), st.integers(1, 60))
def test_out_of_time_the_bound_still_holds(topology, budget, most_cells):
    best = optima(topology)[min(budget, len(topology.tasks))]
    found = plan(topology, budget, time_limit_s=0.0, most_cells=most_cells)
    reached = fidelity(topology, found.replicated)
    assert found.replicated.sum() <= budget
    assert reached <= best * (1 + 1e-12)
    assert best <= found.upper_bound * (1 + 1e-12)
    assert not found.optimal or reached == pytest.approx(best, rel=1e-12)


@pytest.mark.extended
@pytest.mark.parametrize("kind", PartKind)
@pytest.mark.parametrize("joins", [0.0, 0.5])
def test_is_never_below_a_heuristic_on_the_papers_random_topologies(kind, joins):
    spec, rng = TopologySpec(kind=kind, join_share=joins), np.random.default_rng(14)
    for _ in range(6):
        topology = generate(rng, spec)
        for share in (0.2, 0.5, 0.8):
            budget = int(share * len(topology.tasks))
            found = plan(topology, budget)
            assert found.optimal
            for heuristic in (greedy_plan, structure_aware_plan):
                below = fidelity(topology, heuristic(topology, budget).replicated)
                assert below <= fidelity(topology, found.replicated) * (1 + 1e-12)


def test_proves_nothing_that_it_has_no_time_for():
    """Four streams of 12 tasks that one operator feeds, joined: as many shared nodes as tasks, and all of them open."""
    joined = {"parallelism": 1, "inputs": "correlated"}
    topology = build(
        {"A": list(range(1, 13)), "B": 12, "C": 12, "D": 12, "J": joined},
        *("A one-to-one B", "A one-to-one C", "A one-to-one D", "B full J", "C full J", "D full J"),
    )
    found = plan(topology, 20, time_limit_s=0.0, most_cells=1000)
    assert not found.optimal
    assert fidelity(topology, found.replicated) < found.upper_bound <= 1.0


def stopping_after(ticks):
    """A clock that shows 0 for a given number of calls, and then 1."""
    looks = count()
    return lambda: float(next(looks) >= ticks)


def diamond(width):
    joined = {"parallelism": 1, "inputs": "correlated"}
    return build(
        {"A": [1.0 + i for i in range(width)], "B": width, "C": width, "D": width, "J": joined},
        *("A one-to-one B", "A one-to-one C", "A one-to-one D", "B full J", "C full J", "D full J"),
    )


@pytest.mark.extended
def test_stops_wherever_the_deadline_comes_and_its_bound_holds():
    """So little memory that it branches: the deadline comes within the first bound, later ones, and never."""
    topology = diamond(4)
    best = optima(topology)[9]
    proofs, bounds = [], []
    for ticks in (1, 2, 5, *range(10, 800, 7)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(time, "monotonic", stopping_after(ticks))
            found = plan(topology, 9, time_limit_s=0.5, most_cells=10)
        reached = fidelity(topology, found.replicated)
        assert found.replicated.sum() <= 9
        assert 0 < reached <= best * (1 + 1e-12)
        assert best <= found.upper_bound * (1 + 1e-12)
        assert not found.optimal or reached == pytest.approx(best, rel=1e-12)
        proofs.append(found.optimal)
        bounds.append(found.upper_bound)
    assert proofs == sorted(proofs)
    assert bounds == sorted(bounds, reverse=True)
    assert (proofs[0], proofs[-1], bounds[0]) == (False, True, 1.0)
    assert len(set(bounds)) > 3


def test_a_bound_that_is_not_there_in_time_is_no_bound():
    nodes = fidelity_expression(diamond(3))
    with pytest.raises(OutOfTime):
        Elimination(nodes, 6, deadline_s=0.0).solve({})
    assert Elimination(nodes, 6).solve({}).value == pytest.approx(optima(diamond(3))[6])


@settings(max_examples=60, deadline=None)
@given(topologies(operators=6, parallelism=4, tasks=12, fan_out=3), st.integers(0, 2**12 - 1))
def test_the_expression_is_the_output_fidelity(topology, bits):
    """Where an operator counts its tasks by rank, the plan has to take them in that order."""
    replicated = (bits >> np.arange(len(topology.tasks)) & 1).astype(bool)
    values = []
    for node in fidelity_expression(topology):
        parts = [values[part] for part in node.parts]
        match node.kind:
            case NodeKind.TASK:
                values.append((parts[0] if parts else 1.0) * replicated[node.tasks[0]])
            case NodeKind.RANKED:
                values.append(sum(w for w, task in zip(node.weights, node.tasks, strict=True) if replicated[task]))
            case NodeKind.SUM:
                values.append(np.dot(node.weights, parts))
            case NodeKind.PRODUCT:
                values.append(np.prod(parts))
    assert values[-1] == pytest.approx(fidelity(topology, replicated), rel=1e-12)


@settings(max_examples=40, deadline=None)
@given(topologies(operators=5, parallelism=3, tasks=9, fan_out=3), st.integers(0, 9))
def test_relaxing_a_shared_node_never_lowers_the_bound(topology, budget):
    best = optima(topology)[min(budget, len(topology.tasks))]
    nodes = fidelity_expression(topology)
    uses = np.bincount([part for node in nodes for part in node.parts], minlength=len(nodes))
    for shared in np.flatnonzero(uses > 1).tolist():
        bound = Elimination(nodes, budget).solve({shared: (0, budget)}).value
        assert bound >= best * (1 - 1e-12)


def test_a_budget_beyond_all_tasks_replicates_what_helps():
    topology = build({"A": 3, "B": 2}, "A merge B")
    found = plan(topology, 100)
    assert found.replicated.all()
    assert found.upper_bound == 1.0


@pytest.mark.parametrize(
    ("budget", "time_limit_s", "field"),
    [
        (-1, 1.0, "budget"),
        (float("nan"), 1.0, "budget"),
        (1.5, 1.0, "budget"),
        (1, float("nan"), "time_limit_s"),
        (1, -1.0, "time_limit_s"),
    ],
)
def test_refuses_a_bad_budget_and_a_bad_time_limit(budget, time_limit_s, field):
    with pytest.raises(BadInput) as caught:
        plan(build({"A": 1}), budget, time_limit_s)
    assert caught.value.field == field
