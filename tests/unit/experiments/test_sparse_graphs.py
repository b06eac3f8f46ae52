"""The cyclic query is refused where its graph would get so many links that the number of paths explodes."""

import pytest

from experiments.errors import BadInput
from experiments.spec import load


def steady(nodes, *overrides):
    return load("dataflow-reachability", [f"workload={{name: reachability, steady: true, nodes: {nodes}}}", *overrides])


@pytest.mark.parametrize(
    ("override", "field", "allowed"),
    [
        ("workload.nodes=239999", "workload.nodes", "at least 240000: the number of paths explodes"),
        ("load.rate=30000", "workload.nodes", "at least 2400000: the number of paths explodes"),
        ("engine.checkpoint_interval_s=60", "workload.nodes", "at least 510000: the number of paths explodes"),
        ("load={mode: saturating}", "load.mode", "rate with reachability: only then is the size of its graph known"),
    ],
)
def test_what_would_make_too_many_links_is_named_in_one_line(override, field, allowed):
    with pytest.raises(BadInput, match=rf"{field}: .*{allowed}"):
        load("dataflow-reachability", [override])


def test_a_steady_graph_bears_any_number_of_events():
    assert steady(42_000, "window_s=3000").workload.nodes == 42_000


@pytest.mark.parametrize(("nodes", "override"), [(41_999, "seed=1"), (42_000, "load.rate=3001")])
def test_a_steady_graph_has_room_for_a_partition_that_is_read_a_checkpoint_interval_ahead(nodes, override):
    with pytest.raises(BadInput, match=r"workload\.nodes: .* at least 4200[02]: the number"):
        steady(nodes, override)
