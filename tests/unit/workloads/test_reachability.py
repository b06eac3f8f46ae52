"""The generator of the cyclic workload: the same events however they are made, in the paper's shares."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.workloads import ReachabilitySpec
from workloads.reachability.input import CYCLE, GROUP, LINKS, SOURCES, events_of, reachable

SPEC = ReachabilitySpec(nodes=300, stream_seed=7)
GROUP_EVENTS = CYCLE * GROUP


@pytest.mark.parametrize("kind", ["links", "sources"])
@settings(deadline=None)
@given(st.integers(0, 1000), st.integers(0, 300), st.integers(0, 300))
def test_the_same_events_in_any_pieces(kind, start, first, second):
    whole, first_part, second_part = (
        events_of(SPEC, kind, start + begin, start + end).to_pylist()
        for begin, end in ((0, first + second), (0, first), (first, first + second))
    )
    assert whole == first_part + second_part


def test_the_shares_are_those_of_the_paper():
    counts = Counter()
    for kind in ("links", "sources"):
        changes = events_of(SPEC, kind, GROUP_EVENTS, 4 * GROUP_EVENTS)["change"].to_pylist()
        counts += Counter((kind, change) for change in changes)
    shares = {what: count / (3 * GROUP_EVENTS) for what, count in counts.items()}
    assert shares == {("links", 1): 0.60, ("sources", 1): 0.15, ("links", -1): 0.20, ("sources", -1): 0.05}


@pytest.mark.parametrize(("kind", "schema"), [("links", LINKS), ("sources", SOURCES)])
def test_a_deletion_takes_what_was_created_before_and_once(kind, schema):
    alive, gone = set(), set()
    batch = events_of(SPEC, kind, 0, 5 * GROUP_EVENTS)
    assert batch.schema == schema
    for *what, change in zip(*(column.to_pylist() for column in batch.columns), strict=True):
        if change > 0:
            assert tuple(what) not in alive | gone
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
