"""Topologies: who sends to whom, and what is refused."""

import json
import tracemalloc

import numpy as np
import pytest

from experiments.errors import BadInput
from models.topology import InputCorrelation, load_topology, parse_topology
from tests.unit.models.small_topologies import build, document

STREAM = {"from": "A", "to": "B", "partitioning": "full"}


def links(up, partitioning, down):
    """Pairs of the numbers of tasks within their operators."""
    topology = build({"A": up, "B": down}, f"A {partitioning} B")
    sources, targets = topology.links(topology.streams[0])
    return list(zip(sources.tolist(), (targets - up).tolist(), strict=True))


def test_one_to_one_links_equal_indices():
    assert links(3, "one-to-one", 3) == [(0, 0), (1, 1), (2, 2)]


def test_merge_sends_i_to_the_floor_of_i_n2_over_n1():
    assert links(5, "merge", 2) == [(0, 0), (1, 0), (2, 0), (3, 1), (4, 1)]


def test_split_receives_j_from_the_floor_of_j_n1_over_n2():
    assert links(2, "split", 5) == [(0, 0), (0, 1), (0, 2), (1, 3), (1, 4)]


def test_full_links_all_to_all():
    assert links(2, "full", 3) == [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2)]


def test_operators_are_sorted_from_sources_to_sinks_and_otherwise_as_given():
    topology = build({"sink": 1, "b": 2, "a": 3, "mid": 1}, "a full mid", "b full mid", "mid full sink")
    assert [o.name for o in topology.operators] == ["b", "a", "mid", "sink"]
    assert topology.tasks == ("b.0", "b.1", "a.0", "a.1", "a.2", "mid.0", "sink.0")
    assert topology.span["a"] == slice(2, 5)
    assert [o.name for o in topology.sources] == ["b", "a"]
    assert [o.name for o in topology.sinks] == ["sink"]


def test_an_operator_whose_output_is_wanted_is_a_sink_too():
    topology = build({"A": {"parallelism": 1, "output": True}, "B": 1}, "A full B")
    assert [o.name for o in topology.sinks] == ["A", "B"]


def test_rates_costs_and_priorities_default_to_one_and_inputs_to_independent():
    topology = build({"A": 2})
    for field in ("output_rates", "costs", "priorities"):
        assert topology.values(field).tolist() == [1.0, 1.0]
    assert topology.operators[0].inputs is InputCorrelation.INDEPENDENT


def test_masks_and_names_are_inverse():
    topology = build({"A": 2, "B": 2}, "A full B")
    mask = topology.mask(["B.1", "A.0"])
    assert mask.tolist() == [True, False, False, True]
    assert topology.names(mask) == ["A.0", "B.1"]


def test_loads_a_file(tmp_path):
    path = tmp_path / "topology.json"
    path.write_text(json.dumps(document({"A": 2, "B": 1}, "A merge B")))
    assert load_topology(path).tasks == ("A.0", "A.1", "B.0")


def refused(found):
    with pytest.raises(BadInput) as caught:
        parse_topology(found)
    assert "\n" not in str(caught.value)
    return caught.value


def test_refuses_a_cycle_and_names_it():
    error = refused(document({"A": 1, "B": 1, "C": 1}, "A full B", "B full C", "C full B"))
    assert error.field == "streams"
    assert set(error.value.split(" > ")) == {"B", "C"}


def test_refuses_a_stream_of_an_operator_to_itself():
    assert refused(document({"A": 1}, "A full A")).field == "streams"


@pytest.mark.parametrize(
    ("found", "field", "value"),
    [
        (document({"A": 1, "B": 1}, "A full C"), "streams.A > C", "C"),
        (document({"A": 1, "B": 1}, "C full B"), "streams.C > B", "C"),
        (document({"A": 1, "B": 1}, "A full B", "A full B"), "streams", "A > B"),
        ({"operators": [{"name": "A", "parallelism": 1}, {"name": "A", "parallelism": 2}]}, "operators", "A"),
        (document({"A": 2, "B": 3}, "A one-to-one B"), "streams.A > B.partitioning", "one-to-one from 2 to 3 tasks"),
        (document({"A": 2, "B": 3}, "A merge B"), "streams.A > B.partitioning", "merge from 2 to 3 tasks"),
        (document({"A": 3, "B": 3}, "A merge B"), "streams.A > B.partitioning", "merge from 3 to 3 tasks"),
        (document({"A": 3, "B": 2}, "A split B"), "streams.A > B.partitioning", "split from 3 to 2 tasks"),
        (
            document({"A": {"parallelism": 2, "output_rates": [1.0]}}),
            "operators.0.output_rates",
            "1 values",
        ),
        (document({"A": {"parallelism": 1, "costs": [1, 2]}}), "operators.0.costs", "2 values"),
        (document({"A": 60_000, "B": 60_000}), "operators", "120000 tasks"),
    ],
)
def test_refuses_what_does_not_fit_together(found, field, value):
    error = refused(found)
    assert (error.field, error.value) == (field, value)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("parallelism", 0),
        ("parallelism", 2.5),
        ("parallelism", 10**9),
        ("parallelism", "2"),
        ("parallelism", 2.0),
        ("parallelism", True),
        ("parallelism", None),
        ("inputs", "joined"),
        ("output_rates", [float("nan")]),
        ("output_rates", [0.0]),
        ("output_rates", [-1.0]),
        ("output_rates", [float("inf")]),
        ("output_rates", [1e200]),
        ("output_rates", ["1"]),
        ("output_rates", [True]),
        ("output", "yes"),
        ("output", 1),
        ("costs", [-1.0]),
        ("costs", ["1"]),
        ("priorities", [False]),
        ("priorities", [float("nan")]),
        ("name", ""),
        ("name", "a,b"),
        ("name", "a\nb"),
        ("name", "a\x00b"),
        ("name", "\ud800"),
        ("colour", "red"),
    ],
)
def test_refuses_bad_fields_of_an_operator(field, value):
    operator = {"name": "A", "parallelism": 1} | {field: value}
    assert refused({"operators": [operator]}).field.removeprefix("operators.0.").removesuffix(".0") == field


def test_whole_numbers_are_rates_too():
    operator = {"name": "A", "parallelism": 2, "output_rates": [1, 2], "costs": [0, 3], "priorities": [5, 1]}
    assert parse_topology({"operators": [operator]}).values("output_rates").tolist() == [1.0, 2.0]


def test_refuses_names_of_streams_that_no_operator_can_have():
    assert refused(document({"A": 1, "B": 1}, "A full B") | {"streams": [STREAM | {"from": "A\n"}]}).field == (
        "streams.0.from"
    )


def test_refuses_unknown_partitionings_and_no_operators():
    assert refused(document({"A": 1, "B": 1}, "A some B")).field == "streams.0.partitioning"
    assert refused({"operators": []}).field == "operators"


def test_refuses_unknown_tasks():
    topology = build({"A": 2})
    for task in ("A.2", "B.0", "A", ""):
        with pytest.raises(BadInput) as caught:
            topology.mask(["A.0", task], "failed")
        assert (caught.value.field, caught.value.value) == ("failed", task)


@pytest.mark.parametrize(
    ("task", "allowed"),
    [
        ("users.2", "users.0 to users.1"),
        ("users", "users.0 to users.1"),
        ("users.00", "users.0 to users.1"),
        ("top.1", "top.0"),
        ("a.b.7", "a.b.0 to a.b.2"),
        ("clicks.0", "a task of one of the operators users, a.b, top"),
        ("", "a task of one of the operators users, a.b, top"),
    ],
)
def test_says_which_tasks_an_unknown_one_may_have_meant(task, allowed):
    topology = build({"users": 2, "a.b": 3, "top": 1})
    with pytest.raises(BadInput) as caught:
        topology.mask([task])
    assert caught.value.allowed == allowed


def test_every_task_takes_part_in_every_stream():
    for up in range(1, 8):
        for down in range(1, 8):
            natural = "one-to-one" if up == down else "split" if up < down else "merge"
            for partitioning in (natural, "full"):
                pairs = np.array(links(up, partitioning, down))
                assert set(pairs[:, 0]) == set(range(up))
                assert set(pairs[:, 1]) == set(range(down))


def test_a_small_document_cannot_ask_for_a_large_topology():
    """Refused before rates, costs and priorities of three hundred million tasks are filled in."""
    operators = [{"name": f"o{i}", "parallelism": 100_000} for i in range(1000)]
    tracemalloc.start()
    with pytest.raises(BadInput, match="100000000 tasks"):
        parse_topology({"operators": operators})
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 10_000_000
