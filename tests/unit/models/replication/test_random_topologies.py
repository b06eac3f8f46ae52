"""Random topologies fit their specification, and the same seed keeps what the specification does not change."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.errors import BadInput
from models.replication.parts import PartKind
from models.replication.random_topologies import TopologySpec, generate
from models.topology import InputCorrelation, Partitioning

specs = st.builds(
    lambda low, more, tasks, spread, kind, exponent, joins, two: TopologySpec(
        (low, low + more), (tasks, tasks + spread), kind, exponent, joins, two
    ),
    *(st.integers(1, 8), st.integers(0, 5), st.integers(1, 8), st.integers(0, 8), st.sampled_from(PartKind)),
    *(st.sampled_from([0.0, 0.1, 1.0, 10.0]), st.floats(0, 1), st.floats(0, 1)),
)
seeds = st.integers(0, 2**32)


def drawn(seed, **fields):
    return generate(np.random.default_rng(seed), TopologySpec(**fields))


@settings(max_examples=40, deadline=None)
@given(specs, seeds)
def test_fits_its_specification(spec, seed):
    topology = generate(np.random.default_rng(seed), spec)
    assert spec.operators[0] <= len(topology.operators) <= spec.operators[1]
    assert all(spec.parallelism[0] <= o.parallelism <= spec.parallelism[1] for o in topology.operators)
    assert all((s.partitioning is Partitioning.FULL) == (spec.kind is PartKind.FULL) for s in topology.streams)


@pytest.mark.extended
@settings(max_examples=40, deadline=None)
@given(specs, seeds)
def test_is_a_tree_to_one_sink(spec, seed):
    topology = generate(np.random.default_rng(seed), spec)
    sink = topology.operators[-1]
    assert [o.name for o in topology.sinks] == [sink.name] == [f"O{len(topology.operators)}"]
    assert all(len(topology.outputs_of[o.name]) == 1 for o in topology.operators if o is not sink)
    assert all(len(topology.inputs_of[o.name]) <= 2 for o in topology.operators)


@settings(max_examples=40, deadline=None)
@given(specs, seeds)
def test_as_many_operators_join_and_have_two_inputs_as_asked_and_possible(spec, seed):
    topology = generate(np.random.default_rng(seed), spec)
    count = len(topology.operators)
    two = [o for o in topology.operators if len(topology.inputs_of[o.name]) == 2]
    joins = [o for o in topology.operators if o.inputs is InputCorrelation.CORRELATED]
    assert len(two) == min(int(spec.two_input_share * count + 0.5), (count - 1) // 2)
    assert len(joins) == min(int(spec.join_share * count + 0.5), len(two))
    assert all(join in two for join in joins)


@settings(max_examples=40, deadline=None)
@given(specs, seeds)
def test_an_operator_emits_what_it_receives_and_shares_it_by_zipf(spec, seed):
    topology = generate(np.random.default_rng(seed), spec)
    for operator in topology.operators:
        received = [sum(topology.operator[s.source].output_rates) for s in topology.inputs_of[operator.name]]
        assert sum(operator.output_rates) == pytest.approx(sum(received) if received else operator.parallelism)
        heaviest_first = np.sort(operator.output_rates)[::-1]
        ranks = np.arange(1, operator.parallelism + 1)
        assert heaviest_first / heaviest_first[0] == pytest.approx(ranks**-spec.zipf_exponent)


def test_half_of_the_operators_of_the_paper_join_as_far_as_a_tree_has_room():
    counts = {}
    for seed in range(60):
        topology = drawn(seed, join_share=0.5)
        counts[len(topology.operators)] = sum(o.inputs is InputCorrelation.CORRELATED for o in topology.operators)
    assert counts == {5: 2, 6: 2, 7: 3, 8: 3, 9: 4, 10: 4}


def test_the_same_seed_draws_the_same():
    assert drawn(3, join_share=0.5) == drawn(3, join_share=0.5)
    assert drawn(3) != drawn(4)


def test_settings_are_compared_on_the_same_shapes():
    base = drawn(11)
    skeleton = [(o.name, o.parallelism) for o in base.operators], [s.name for s in base.streams]
    for other in (drawn(11, kind=PartKind.FULL), drawn(11, zipf_exponent=0.0), drawn(11, join_share=0.5)):
        assert ([(o.name, o.parallelism) for o in other.operators], [s.name for s in other.streams]) == skeleton


def test_the_joins_of_a_smaller_share_are_among_those_of_a_larger():
    joins = [
        {
            o.name
            for o in drawn(5, operators=(10, 10), join_share=share).operators
            if o.inputs is InputCorrelation.CORRELATED
        }
        for share in (0.0, 0.1, 0.2, 0.3, 0.4)
    ]
    assert [len(found) for found in joins] == [0, 1, 2, 3, 4]
    assert all(smaller < larger for smaller, larger in pairwise(joins))


def test_every_shape_is_as_likely():
    """Four operators, one with two inputs and one with one: 4! / (2! 4) = 3 ordered trees."""
    rng, draws = np.random.default_rng(0), 1500
    spec = TopologySpec(operators=(4, 4), parallelism=(1, 1), two_input_share=0.25)
    shapes = Counter(tuple(s.name for s in generate(rng, spec).streams) for _ in range(draws))
    assert len(shapes) == 3
    assert all(abs(count - draws / 3) < 4 * np.sqrt(draws * 2 / 9) for count in shapes.values())


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"operators": (0, 3)}, "operators.low"),
        ({"operators": (5, 4)}, "operators.high"),
        ({"parallelism": (2, 1)}, "parallelism.high"),
        ({"parallelism": (1.5, 2)}, "parallelism.low"),
        ({"kind": "full"}, "kind"),  # a name is not the kind
        ({"zipf_exponent": float("nan")}, "zipf_exponent"),
        ({"zipf_exponent": -0.1}, "zipf_exponent"),
        ({"join_share": 1.1}, "join_share"),
        ({"two_input_share": -1.0}, "two_input_share"),
    ],
)
def test_refuses_what_no_topology_fits(fields, field):
    with pytest.raises(BadInput) as refused:
        TopologySpec(**fields)
    assert refused.value.field == field
