"""The cyclic query is refused where its graph would get so many links that the number of paths explodes."""

import pytest

from experiments.errors import BadInput
from experiments.spec import load
from experiments.workloads import FEWEST_STEADY_NODES

STEADY = "workload={name: reachability, steady: true"


@pytest.mark.parametrize(
    ("override", "field", "allowed"),
    [
        ("workload.nodes=80000", "workload.nodes", "at least .*, half as many as events may come"),
        ("load.rate=30000", "workload.nodes", "at least .*, half as many as events may come"),
        ("load={mode: saturating}", "load.mode", "rate with reachability: only then is known before how large"),
        (f"{STEADY}, nodes: {FEWEST_STEADY_NODES - 1}}}", "workload.nodes", "at least 57600 with steady"),
    ],
)
def test_what_would_make_too_many_links_is_named_in_one_line(override, field, allowed):
    with pytest.raises(BadInput, match=rf"{field}: .*{allowed}"):
        load("dataflow-reachability", [override])


def test_a_steady_graph_bears_any_number_of_events():
    graph = f"{STEADY}, nodes: {FEWEST_STEADY_NODES}}}"
    assert load("dataflow-reachability", [graph, "window_s=3000"]).workload.steady
