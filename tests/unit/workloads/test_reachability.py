"""The generator of the cyclic workload: the same events however they are made, in the paper's shares."""

from collections import Counter

import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.workloads.catalogue import STEADY_GROUP, STEADY_LINKS, ReachabilitySpec
from workloads.reachability.input import CYCLE, LINKS, SOURCES, events_of, mix_of, reachable

SPEC = ReachabilitySpec(nodes=300, stream_seed=7)
STEADY = ReachabilitySpec(nodes=36_000, stream_seed=7, steady=True)


def group_events(spec):
    return CYCLE * mix_of(spec).group


@pytest.mark.parametrize("spec", [SPEC, STEADY])
@pytest.mark.parametrize("kind", ["links", "sources"])
@settings(deadline=None)
@given(st.integers(0, 1000), st.integers(0, 300), st.integers(0, 300))
def test_the_same_events_in_any_pieces(spec, kind, start, first, second):
    start += max(0, group_events(spec) - 500)  # before and after the first deletions
    whole, first_part, second_part = (
        events_of(spec, kind, start + begin, start + end).to_pylist()
        for begin, end in ((0, first + second), (0, first), (first, first + second))
    )
    assert whole == first_part + second_part


def shares(spec):
    counts, events = Counter(), group_events(spec)
    for kind in ("links", "sources"):
        changes = events_of(spec, kind, events, 4 * events)["change"].to_pylist()
        counts += Counter((kind, change) for change in changes)
    return {what: count / (3 * events) for what, count in counts.items()}


def test_the_shares_are_those_of_the_paper():
    assert shares(SPEC) == {("links", 1): 0.60, ("sources", 1): 0.15, ("links", -1): 0.20, ("sources", -1): 0.05}


def test_a_steady_graph_deletes_as_much_as_it_creates():
    assert shares(STEADY) == {("links", 1): 0.40, ("sources", 1): 0.10, ("links", -1): 0.40, ("sources", -1): 0.10}


def test_a_steady_graph_keeps_its_size():
    for events in (group_events(STEADY), 5 * group_events(STEADY) + 4000):
        links, sources = (pc.sum(events_of(STEADY, kind, 0, events)["change"]).as_py() for kind in ("links", "sources"))
        assert links == pytest.approx(STEADY_LINKS, abs=CYCLE)
        assert sources == pytest.approx(2 * STEADY_GROUP, abs=CYCLE)


@pytest.mark.parametrize("spec", [SPEC, STEADY])
@pytest.mark.parametrize(("kind", "schema"), [("links", LINKS), ("sources", SOURCES)])
def test_a_deletion_takes_what_was_created_before_and_once(spec, kind, schema):
    alive, gone = set(), set()
    batch = events_of(spec, kind, 0, 5 * group_events(spec))
    assert batch.schema == schema
    for *what, change in zip(*(column.to_pylist() for column in batch.columns), strict=True):
        if change > 0:
            assert tuple(what) not in alive
            assert tuple(what) not in gone
            alive.add(tuple(what))
        else:
            alive.remove(tuple(what))
            gone.add(tuple(what))
    assert gone


def test_another_seed_gives_other_events():
    other = SPEC.model_copy(update={"stream_seed": 8})
    assert events_of(SPEC, "links", 0, 100) != events_of(other, "links", 0, 100)


def test_what_can_be_reached_in_a_graph_that_can_be_drawn():
    """Three nodes: every path has at most three of them, and none comes twice in a path."""
    found = reachable(ReachabilitySpec(nodes=3), 60)
    paths = [[int(node) for node in path.split(">")] for _, _, path in found]
    assert {len(path) for path in paths} == {2, 3}
    assert all(len(set(path)) == len(path) for path in paths)
    assert all(path[-1] == end for path, (_, end, _) in zip(paths, found, strict=True))
