"""The commands about a topology, on the example of docs/topologies.md."""

import json
import re
from pathlib import Path

import pytest

AB = [{"name": "a", "parallelism": 1}, {"name": "b", "parallelism": 1}]
DOCUMENTED = Path(__file__).parents[3] / "docs" / "topologies.md"


def link(source, target, partitioning="full"):
    return {"from": source, "to": target, "partitioning": partitioning}


@pytest.fixture
def document():
    """The topology that the documentation shows."""
    lines = [line for line in DOCUMENTED.read_text(encoding="utf-8").splitlines() if line.startswith("    ")]
    return json.loads("\n".join(lines))


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
    assert re.search(r"1 of 7 tasks failed\noutput fidelity +0\.6000\n", out)


@pytest.mark.parametrize(("failed", "fidelity"), [(",", 1.0), ("top.0", 0.0), ("clicks.0,clicks.1", 0.0)])
def test_predict_fidelity_at_its_ends(as_json, topology, failed, fidelity):
    assert as_json(f"predict fidelity {topology} --failed {failed}")["output_fidelity"] == fidelity


@pytest.mark.parametrize(
    ("words", "named"),
    [
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
    assert named in err
