"""The commands about a topology, on the example of docs/reference/topologies.md."""

import json
import re
from pathlib import Path

import pytest

from aftershock.cli import recovery, replication
from experiments.wording import significant
from models.topology import load_topology

AB = [{"name": "a", "parallelism": 1}, {"name": "b", "parallelism": 1}]
DOCUMENTED = Path(__file__).parents[4] / "docs" / "examples" / "topology.json"


def link(source, target, partitioning="full"):
    return {"from": source, "to": target, "partitioning": partitioning}


@pytest.fixture
def document():
    """The topology that the documentation shows."""
    return json.loads(DOCUMENTED.read_text(encoding="utf-8"))


@pytest.fixture
def topology(tmp_path, document):
    path = tmp_path / "topology.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def test_predict_fidelity(as_json, call, topology):
    """users.1 is 2/5 of its stream, which the join multiplies; of 6 kinds of processing it costs what it carries."""
    found = as_json(f"predict fidelity {topology} --failed users.1")
    assert found["output_fidelity"] == pytest.approx(3 / 5)
    without, lost = 300 + 50 + (300 + 50) + 2, 20 + 20 + 1 * (10 / 125) + 1 * (10 / 225)
    assert found["internal_completeness"] == pytest.approx(1 - lost / without)
    code, out, err = call(f"predict fidelity {topology} --failed users.1")
    assert (code, err) == (0, "")
    assert re.search(r"1 of 7 tasks failed\noutput fidelity +0\.6\n", out)


@pytest.mark.parametrize(("failed", "fidelity"), [(",", 1.0), ("top.0", 2 / 3), ("clicks.0,clicks.1", 0.0)])
def test_predict_fidelity_at_its_ends(as_json, topology, failed, fidelity):
    assert as_json(f"predict fidelity {topology} --failed {failed}")["output_fidelity"] == pytest.approx(fidelity)


@pytest.mark.parametrize("algorithm", replication.ALGORITHMS)
def test_plan_replication(as_json, call, topology, algorithm):
    """Five tasks buy one task of the join whole, and half of top: half of the output at best."""
    words = f"plan replication {topology} --budget 5 --algorithm {algorithm}"
    found = as_json(words)
    assert len(found["tasks"]) == 5
    failed = ",".join(task for task in load_topology(topology).tasks if task not in found["tasks"])
    quality = as_json(f"predict fidelity {topology} --failed {failed}")
    assert found == {"tasks": found["tasks"], **quality, "optimal": algorithm in ("exact", "dp")}
    assert found["output_fidelity"] == pytest.approx(0.4 if algorithm == "greedy" else 0.5)
    text = call(words)[1]
    assert "replicate 5 of 7 tasks (budget 5):" in text
    assert f"output fidelity          {significant(found['output_fidelity'])}" in text
    assert "  join    join." in text


@pytest.mark.parametrize(("budget", "fidelity"), [(0, 0.0), (2, 0.0), (3, 0.2), (7, 1.0), (100, 1.0)])
def test_plan_replication_at_its_ends(as_json, topology, budget, fidelity):
    found = as_json(f"plan replication {topology} --budget {budget} --algorithm exact")
    assert (found["output_fidelity"], found["optimal"]) == (pytest.approx(fidelity), True)
    assert len(found["tasks"]) <= budget


@pytest.mark.parametrize("algorithm", recovery.ALGORITHMS)
def test_plan_recovery(as_json, call, topology, algorithm):
    """With room for four partitions join.0 can come back, which takes one of clicks and both of users."""
    words = f"plan recovery {topology} --failed all --capacity 4 --algorithm {algorithm}"
    found = as_json(words)
    by_query = algorithm != "operator-centric"
    assert found["queries"] == (["join.0"] if by_query else [])
    assert found["priority"] == (5 if by_query else 0)
    assert found["optimal"] is (algorithm in ("exact", "dp"))
    if by_query:
        assert found["partitions"] == ["clicks.0", "users.0", "users.1", "join.0"]
    assert len(found["partitions"]) == 4
    text = call(words)[1]
    assert "recover 4 of 7 failed partitions (cost 4 of a capacity of 4):" in text
    assert f"priority    {found['priority']:g} of 7" in text


def test_plan_recovery_of_some_partitions(as_json, topology):
    """join.0 still runs, so only what join.1 and top.0 need has failed."""
    found = as_json(f"plan recovery {topology} --failed join.1,top.0 --capacity 1 --algorithm exact")
    assert found == {"partitions": ["join.1"], "queries": ["join.1"], "priority": 1.0, "optimal": True}
    nothing = as_json(f"plan recovery {topology} --failed , --capacity 1 --algorithm exact")
    assert nothing == {"partitions": [], "queries": [], "priority": 0.0, "optimal": True}


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("plan replication TOPOLOGY --budget -1 --algorithm exact", "budget: -1"),
        ("plan replication TOPOLOGY --budget 1.5 --algorithm exact", "'1.5'"),
        ("plan replication TOPOLOGY --budget 1", "--algorithm"),
        ("plan replication TOPOLOGY --budget 1 --algorithm best", "'best'"),
        ("plan recovery TOPOLOGY --failed join.9 --capacity 1 --algorithm dp", "--failed: 'join.9'"),
        ("plan recovery TOPOLOGY --failed all --capacity -1 --algorithm dp", "capacity: -1.0"),
        ("plan recovery TOPOLOGY --failed all --capacity nan --algorithm dp", "capacity: nan"),
        ("predict fidelity TOPOLOGY", "--failed"),
        ("predict fidelity TOPOLOGY --failed join.2", "--failed: 'join.2'"),
        ("predict fidelity no/such.json --failed a.0", "'no/such.json'"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(call, topology, words, named):
    code, out, err = call(words.replace("TOPOLOGY", str(topology)) + " --json")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert named in err


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"operators": []}, "operators: []"),
        ({"nonsense": 1}, "nonsense: 1"),
        ({"streams": [link("clicks", "nobody")]}, "'nobody'"),
        ({"streams": [link("clicks", "top", "split")]}, "streams.clicks > top.partitioning"),
        ({"operators": AB, "streams": [link("a", "b"), link("b", "a")]}, "'a > b > a' is not usable"),
    ],
)
def test_a_topology_that_cannot_be_used_is_named(call, topology, document, change, named):
    topology.write_text(json.dumps(document | change), encoding="utf-8")
    code, out, err = call(f"predict fidelity {topology} --failed clicks.0 --json")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"aftershock: {topology}: ")
    assert named in err
