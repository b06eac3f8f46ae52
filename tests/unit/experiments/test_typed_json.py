"""Dataclasses as JSON: what is written comes back as it was, and what is not of the fields' types is refused."""

import json
from dataclasses import dataclass, field
from enum import StrEnum

import pytest

from experiments.typed_json import TypedJson
from experiments.workloads.catalogue import InputSpec, NexmarkSpec, OwnJobSpec, WordCountSpec, WorkloadSpec


class Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True)
class Part:
    name: str
    weights: tuple[float, ...] = ()


@dataclass(frozen=True)
class Whole(TypedJson):
    secret: str
    colour: Colour
    count: int
    parts: dict[str, Part] = field(default_factory=dict)
    limit_s: float | None = None


@dataclass(frozen=True)
class Told(TypedJson):
    workload: WorkloadSpec


OWN_JOB = OwnJobSpec(program="a.py", inputs={"orders": InputSpec(file="orders.jsonl")})
WHOLE = Whole("c0ffee", Colour.RED, 2, {"a": Part("a", (1.0, 2.5))}, 3.0)
DOCUMENT = {
    "secret": "c0ffee",
    "colour": "red",
    "count": 2,
    "parts": {"a": {"name": "a", "weights": [1.0, 2.5]}},
    "limit_s": 3.0,
}


def test_a_dataclass_comes_back_as_it_was(tmp_path):
    assert json.loads(json.dumps(WHOLE.to_json())) == DOCUMENT
    found = Whole.from_json(DOCUMENT)
    assert found == WHOLE
    assert (type(found.colour), type(found.parts["a"])) == (Colour, Part)
    (tmp_path / "whole.json").write_text(json.dumps(DOCUMENT), encoding="utf-8")
    assert Whole.read(tmp_path / "whole.json") == WHOLE


@pytest.mark.parametrize("workload", [WordCountSpec(), NexmarkSpec(), OWN_JOB])
def test_a_workload_comes_back_as_the_spec_that_it_was(workload):
    assert Told.from_json(Told(workload).to_json()) == Told(workload)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"count": "2"}, "count"),
        ({"count": True}, "count"),
        ({"count": 2.5}, "count"),
        ({"colour": "c0ffee"}, "colour"),
        ({"secret": None}, "secret"),
        ({"parts": {"a": {"name": 7}}}, "parts.a.name"),
        ({"parts": {"a": {"name": "a", "size": 7}}}, "parts.a.size"),
        ({"size": "c0ffee"}, "size"),
    ],
)
def test_a_document_that_does_not_fit_is_refused_by_the_name_of_its_field(change, field):
    with pytest.raises(ValueError, match=f"^{field} is not as it should be: ") as failure:
        Whole.from_json(DOCUMENT | change)
    assert "c0ffee" not in str(failure.value), "a value may be secret"
    assert "\n" not in str(failure.value)


@pytest.mark.parametrize("document", [None, [], "c0ffee", {}])
def test_what_is_no_such_document_at_all_is_refused(document):
    with pytest.raises(ValueError, match=" is not as it should be: ") as failure:
        Whole.from_json(document)
    assert "c0ffee" not in str(failure.value)
