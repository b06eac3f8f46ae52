"""Units and segments of structured topologies, on the examples of the paper's text and against MC-trees."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.errors import BadInput
from models.fidelity import Scorer
from models.replication.mc_trees import count_mc_trees
from models.replication.parts import PartKind, part, sub_topologies
from models.replication.random_topologies import TopologySpec, generate
from models.replication.units import boundaries, connected, units
from tests.unit.models.replication.mixed_topologies import mixed_topology, topology_of
from tests.unit.models.small_topologies import build


def cuts(topology):
    return [stream.name for stream in boundaries(topology)]


def segments(topology, unit):
    return [topology.names(row) for row in unit.segments]


def test_a_boundary_goes_before_an_operator_that_merges_and_splits():
    """Figure 3: between O1 and O2."""
    topology = topology_of({"O1": 4, "O2": 2, "O3": 4}, ["O1 merge O2", "O2 split O3"])
    assert cuts(topology) == ["O1 > O2"]
    assert [set(unit.operators) for unit in units(topology)] == [{"O1"}, {"O2", "O3"}]
    assert [len(unit.segments) for unit in units(topology)] == [4, 4]


def test_a_boundary_goes_before_a_join_on_its_merged_input():
    """Figure 3: O3 is a join; the boundary is between O1 and O3."""
    topology = topology_of({"O1": 4, "O2": 2, "O3": 2}, ["O1 merge O3", "O2 one-to-one O3"], joins=["O3"])
    assert cuts(topology) == ["O1 > O3"]
    assert [set(unit.operators) for unit in units(topology)] == [{"O1"}, {"O2", "O3"}]


def test_without_a_join_merged_input_needs_no_boundary():
    topology = topology_of({"O1": 4, "O2": 2, "O3": 2}, ["O1 merge O3", "O2 one-to-one O3"])
    assert cuts(topology) == []


def test_a_join_of_single_substreams_needs_no_boundary():
    topology = topology_of({"O1": 2, "O2": 2, "O3": 2}, ["O1 one-to-one O3", "O2 one-to-one O3"], joins=["O3"])
    assert cuts(topology) == []
    assert segments(topology, units(topology)[0]) == [["O1.0", "O2.0", "O3.0"], ["O1.1", "O2.1", "O3.1"]]


def test_a_join_of_one_stream_is_no_join():
    topology = topology_of({"O1": 4, "O2": 2}, ["O1 merge O2"], joins=["O2"])
    assert cuts(topology) == []


def test_a_unit_of_merges_has_a_segment_for_each_source_task():
    topology = topology_of({"O1": 8, "O2": 4, "O3": 2, "O4": 1}, ["O1 merge O2", "O2 merge O3", "O3 merge O4"])
    (unit,) = units(topology)
    assert len(unit.segments) == 8
    assert segments(topology, unit)[7] == ["O1.7", "O2.3", "O3.1", "O4.0"]


def test_merged_input_that_reaches_a_split_through_another_operator_is_cut_off_too():
    """The paper cuts only where one operator does both; O1 to O4 would have 8 * 4 MC-trees all the same."""
    topology = topology_of({"O1": 8, "O2": 2, "O3": 2, "O4": 8}, ["O1 merge O2", "O2 one-to-one O3", "O3 split O4"])
    assert cuts(topology) == ["O2 > O3"]
    assert [len(unit.segments) for unit in units(topology)] == [8, 8]


def test_both_ends_of_a_boundary_are_never_in_one_unit():
    """O2 > O3 must be cut; O1 and O3 are one unit, so O1 > O2 is cut too, as it would lead around that."""
    topology = topology_of(
        {"O1": 2, "O2": 4, "O3": 2}, ["O1 one-to-one O3", "O1 split O2", "O2 merge O3"], joins=["O3"]
    )
    assert cuts(topology) == ["O1 > O2", "O2 > O3"]
    assert [set(unit.operators) for unit in units(topology)] == [{"O1", "O3"}, {"O2"}]


def test_segments_come_best_first_and_ties_by_task():
    topology = topology_of({"O1": [1, 4, 2, 4], "O2": [3, 3]}, ["O1 merge O2"])
    (unit,) = units(topology)
    assert segments(topology, unit) == [["O1.1", "O2.0"], ["O1.3", "O2.1"], ["O1.2", "O2.1"], ["O1.0", "O2.0"]]


def test_segments_are_connected_where_a_substream_joins_them():
    """O2.0 reads from O1.0 and O1.1, O2.1 from O1.2 and O1.3; each splits in two."""
    topology = topology_of({"O1": 4, "O2": 2, "O3": 4}, ["O1 merge O2", "O2 split O3"])
    up, down = units(topology)
    (stream,) = boundaries(topology)
    expected = np.kron(np.eye(2), np.ones((2, 2))) > 0
    assert np.array_equal(connected(topology, stream, up, down), expected)


structured = st.builds(
    lambda seed, joins: generate(np.random.default_rng(seed), TopologySpec(parallelism=(1, 6), join_share=joins)),
    st.integers(0, 10**6),
    st.sampled_from([0.0, 0.2, 0.5]),
)


@settings(max_examples=60, deadline=None)
@given(structured)
def test_segments_are_the_mc_trees_of_their_unit(topology):
    """Each alone gives its unit output, and not without any of its tasks."""
    for unit in units(topology):
        own = part(topology, unit.operators)
        alone = unit.segments[:, own.tasks]
        scorer = Scorer(own.topology)
        assert len(np.unique(alone, axis=0)) == len(alone) == sum(count_mc_trees(own.topology).values())
        assert (scorer.output_fidelity(~alone) > 0).all()
        for row in alone:
            without_one = row & ~np.eye(row.size, dtype=bool)[row]
            assert not scorer.output_fidelity(~without_one).any()


@settings(max_examples=60, deadline=None)
@given(structured)
def test_a_unit_has_no_more_segments_than_its_sources_widest_paths(topology):
    """Few: a topology in one piece may have as many MC-trees as the product of its parallelisms."""
    for unit in units(topology):
        inside = part(topology, unit.operators).topology
        assert len(unit.segments) <= len(inside.sources) * max(o.parallelism for o in inside.operators)


@pytest.mark.parametrize("seed", range(60))
def test_units_part_the_operators_and_boundaries_are_all_streams_between_them(seed):
    for found in sub_topologies(mixed_topology(np.random.default_rng(seed), most_operators=7, tree=False)):
        if found.kind is PartKind.FULL:
            continue
        units_of = [unit.operators for unit in units(found.topology)]
        assert sorted(name for names in units_of for name in names) == sorted(found.topology.operator)
        between = {
            s.name for s in found.topology.streams if not any({s.source, s.target} <= names for names in units_of)
        }
        assert {s.name for s in boundaries(found.topology)} == between


def test_refuses_more_segments_than_fit_into_memory():
    """20,000 segments, A.i > B.i, over 40,000 tasks; half of either would do."""
    with pytest.raises(BadInput, match="20000 segments of MC-trees over 40000 tasks"):
        units(build({"A": 20_000, "B": 20_000}, "A one-to-one B"))
