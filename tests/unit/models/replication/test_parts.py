"""How a topology is cut into structured and full parts."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.replication.parts import PartKind, part, sub_topologies
from models.topology import Partitioning, Topology, parse_topology
from tests.unit.models.replication.mixed_topologies import mixed_topology, topology_of

FULL = Partitioning.FULL


def names(parts):
    return [{o.name for o in found.topology.operators} for found in parts]


def test_two_chains_with_full_between_as_in_figure_4():
    """The figure is lost; its parts are those of the text."""
    topology = topology_of(
        {"O1": 4, "O2": 4, "O3": 2, "O4": 2, "O5": 2, "O6": 1},
        ["O1 one-to-one O2", "O2 merge O3", "O3 full O4", "O4 one-to-one O5", "O5 merge O6"],
    )
    found = sub_topologies(topology)
    assert names(found) == [{"O4", "O5", "O6"}, {"O1", "O2", "O3"}]
    assert [p.kind for p in found] == [PartKind.STRUCTURED] * 2


def test_a_structured_and_a_full_topology_are_one_part_each():
    structured = topology_of({"O1": 4, "O2": 2, "O3": 2}, ["O1 merge O2", "O2 one-to-one O3"])
    full = topology_of({"O1": 4, "O2": 2, "O3": 2}, ["O1 full O2", "O2 full O3"])
    assert [p.kind for p in sub_topologies(structured)] == [PartKind.STRUCTURED]
    assert [p.kind for p in sub_topologies(full)] == [PartKind.FULL]
    assert names(sub_topologies(structured)) == names(sub_topologies(full)) == [{"O1", "O2", "O3"}]


def test_an_operator_goes_with_its_structured_neighbour_so_that_full_is_between():
    """O2 > O3 is Full, and so would fit with O3 and O4; but then O1 > O2, which is Merge, would be between parts."""
    topology = topology_of({"O1": 4, "O2": 2, "O3": 3, "O4": 2}, ["O1 merge O2", "O2 full O3", "O3 full O4"])
    assert names(sub_topologies(topology)) == [{"O3", "O4"}, {"O1", "O2"}]


def test_one_full_stream_between_parts_is_enough():
    """O1 has a Full stream to O3 and one that is not Full to O2, which go together."""
    topology = topology_of({"O1": 4, "O2": 2, "O3": 2}, ["O1 merge O2", "O2 one-to-one O3", "O1 full O3"])
    assert names(sub_topologies(topology)) == [{"O2", "O3"}, {"O1"}]


def test_several_sinks_that_one_source_feeds_are_one_part():
    topology = topology_of({"O1": 4, "O2": 2, "O3": 2}, ["O1 merge O2", "O1 merge O3"])
    assert names(sub_topologies(topology)) == [{"O1", "O2", "O3"}]


def test_a_part_is_a_topology_of_its_own():
    """O2 gives output to the part below and is read inside; O3's other input, from O1, is left out."""
    topology = topology_of(
        {"O1": 2, "O2": 3, "O3": 3, "O4": 1}, ["O1 full O3", "O2 one-to-one O3", "O2 full O4", "O3 full O4"]
    )
    found = part(topology, {"O2", "O3"})
    assert [s.name for s in found.topology.streams] == ["O2 > O3"]
    assert {o.name for o in found.topology.sinks} == {"O2", "O3"}
    assert [topology.tasks[i] for i in found.tasks] == list(found.topology.tasks)


def pure(topology: Topology, operators):
    inside = {s.partitioning is FULL for s in topology.streams if s.source in operators and s.target in operators}
    return len(inside) < 2


def full_between_neighbours(topology: Topology, parts):
    between = [[s for s in topology.streams if {s.source, s.target} & a and {s.source, s.target} & b
                and not {s.source, s.target} <= a and not {s.source, s.target} <= b]
               for a, b in combinations(parts, 2)]  # fmt: skip
    return all(any(s.partitioning is FULL for s in streams) for streams in between if streams)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**6), st.booleans())
def test_parts_are_pure_cover_all_and_have_full_between_them(seed, tree):
    topology = mixed_topology(np.random.default_rng(seed), most_operators=7, tree=tree)
    parts = names(sub_topologies(topology))
    assert sorted(name for found in parts for name in found) == sorted(topology.operator)
    assert all(pure(topology, found) for found in parts)
    assert full_between_neighbours(topology, parts)
    tasks = np.concatenate([found.tasks for found in sub_topologies(topology)])
    assert sorted(tasks.tolist()) == list(range(len(topology.tasks)))


def partitions(items):
    """Every way to put items into groups."""
    if not items:
        yield []
        return
    for rest in partitions(items[1:]):
        yield [{items[0]}, *rest]
        for i, group in enumerate(rest):
            yield [*rest[:i], group | {items[0]}, *rest[i + 1 :]]


def connected(topology: Topology, operators):
    reached, size = {min(operators)}, 0
    while len(reached) > size:
        size = len(reached)
        for s in topology.streams:
            if {s.source, s.target} <= operators and {s.source, s.target} & reached:
                reached |= {s.source, s.target}
    return reached == operators


@pytest.mark.parametrize("seed", range(40))
def test_a_tree_is_cut_into_as_few_parts_as_can_be(seed):
    topology = mixed_topology(np.random.default_rng(seed), most_operators=7, tree=True)
    fewest = min(
        len(groups)
        for groups in partitions(list(topology.operator))
        if all(pure(topology, g) and connected(topology, g) for g in groups)
        and full_between_neighbours(topology, groups)
    )
    assert len(sub_topologies(topology)) == fewest


def test_parts_of_parts_are_parsed_alike():
    """A part's document is a valid topology by itself."""
    topology = mixed_topology(np.random.default_rng(1), most_operators=7, tree=False)
    for found in sub_topologies(topology):
        document = {
            "operators": [o.model_dump() for o in found.topology.operators],
            "streams": [s.model_dump(by_alias=True) for s in found.topology.streams],
        }
        assert parse_topology(document) == found.topology
