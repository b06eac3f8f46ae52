"""The gate of documents: what is within the limits is read as it stands, what is beyond them is refused."""

import os
from pathlib import Path

import pytest
import yaml

from experiments.documents import gate, plain_json, plain_yaml
from experiments.documents.gate import LONGEST_NUMBER, LONGEST_TEXT, MOST_DEPTH, Limits, NotPlain
from experiments.documents.parsing import read_json, read_mapping
from experiments.errors import BadInput
from experiments.faults import FaultSpec
from experiments.trace import with_trace


def nested(depth):
    return "[" * depth + "]" * depth


@pytest.mark.parametrize("load", [plain_yaml.load, plain_json.load], ids=["yaml", "json"])
def test_depth_is_counted_to_the_limit(load):
    gate.require_plain(load(nested(MOST_DEPTH)), "a")
    with pytest.raises((NotPlain, BadInput), match="not nested this deeply"):
        gate.require_plain(load(nested(MOST_DEPTH + 1)), "a")


def test_depth_is_that_of_what_aliases_stand_for():
    half = MOST_DEPTH // 2
    fine = f"a: &a {nested(half)}\nb: {'[' * (half - 1)}*a{']' * (half - 1)}"
    assert plain_yaml.load(fine)["b"] is not None
    with pytest.raises(NotPlain, match="not nested this deeply"):
        plain_yaml.load(f"a: &a {nested(half)}\nb: {'[' * half}*a{']' * half}")


def test_values_are_counted_to_the_limit_and_those_of_aliases_too():
    limits = Limits(size=1000, values=20)
    assert plain_yaml.load("a: &a [1, 2, 3, 4]\nb: *a\nc: 1", limits) == {"a": [1, 2, 3, 4], "b": [1, 2, 3, 4], "c": 1}
    with pytest.raises(NotPlain, match="at most 20 values"):
        plain_yaml.load("a: &a [1, 2, 3, 4]\nb: *a\nc: *a\nd: 1", limits)
    with pytest.raises(NotPlain, match="at most 20 values"):
        plain_json.load("[" + "1," * 30 + "1]", limits)


def test_what_an_alias_brings_is_a_value_of_its_own():
    found = plain_yaml.load("a: &a {b: [1]}\nc: *a")
    found["a"]["b"].append(2)
    assert found["c"] == {"b": [1]}


@pytest.mark.parametrize("load", [plain_yaml.load, plain_json.load], ids=["yaml", "json"])
def test_a_number_has_at_most_so_many_characters(load):
    assert load("9" * LONGEST_NUMBER) == int("9" * LONGEST_NUMBER)
    with pytest.raises((NotPlain, yaml.YAMLError), match="a number of at most"):
        load("9" * (LONGEST_NUMBER + 1))


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ({"a": {"b": ["x" * (LONGEST_TEXT + 1)]}}, "a.b.0"),
        ({"a": [{"b": "\0"}]}, "a.0.b"),
        ({"a": {"\ud800": 1}}, "a.\ud800"),
        ({"a": 10**5000}, "a"),
        ({"a": 2**1401}, "a"),
    ],
)
def test_what_came_otherwise_than_by_a_file_is_told_by_its_place(value, field):
    with pytest.raises(BadInput) as told:
        gate.require_plain(value, "whole")
    assert told.value.field == field
    assert str(told.value).isprintable()


def test_values_that_came_otherwise_are_counted_too():
    gate.require_plain({"a": [1, {"b": 2}]}, "whole", most_values=5)
    with pytest.raises(BadInput, match="a document of at most 5 values"):
        gate.require_plain({"a": [1, {"b": 2}, 3]}, "whole", most_values=5)


def test_plain_values_pass():
    gate.require_plain({"a": [1, 2.5, None, True, "x" * LONGEST_TEXT, ("é", float("nan"))], 3: "中"}, "whole")


@pytest.mark.parametrize(
    "text",
    [
        "a: [1, 0x1F, 0, -1, 1.5e+3, .5, 2., .inf, -.Inf, .NaN, ~, null, yes, Off, 'no', \"\\x41\"]",
        "a: &a {b: 1, c: 2}\nd: {<<: *a, b: 3}\ne: {<<: [{b: 4}, *a], f: 5}",
        "a: |\n  b\n  c\nd: >-\n  e\n  f\n? g\n: - h\n  - {i: j}",
        "{3: a, 2.5: b, true: c, ~: d, e: f}",
        "a: !!str 1\nb: !!float 1\nc: !!int '1'\nd: !!seq [!!map {}]\ne: ! 2",
        "# nothing\n",
        "--- {a: 1}\n...\n",
        "\ufeffa: 1",
    ],
)
def test_plain_yaml_is_read_as_pyyaml_reads_it(text):
    assert repr(plain_yaml.load(text)) == repr(yaml.safe_load(text))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1:30", "1:30"),
        ("12:30:00", "12:30:00"),
        ("1:30.5", "1:30.5"),
        ("010", 10),
        ("-017", -17),
        ("08", 8),
        ("0o17", 15),
        ("0x1f", 31),
        ("1e3", 1000.0),
        ("-2.5E-1", -0.25),
        ("010.5", 10.5),
        ("0b11", "0b11"),
        ("1_000", "1_000"),
        (".", "."),
        ("!!int 010", 10),
        ("!!float 010", 10.0),
    ],
)
def test_numbers_are_those_of_yaml_1_2(text, value):
    found = plain_yaml.load(text)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize("text", ["!!int 1:30", "!!float 1:30.5", "!!int 1_000", "!!float 0o17", "!!float 0x1f"])
def test_a_tag_makes_no_number_of_what_is_a_text(text):
    with pytest.raises(yaml.YAMLError, match="a value that its tag does not fit"):
        plain_yaml.load(text)


def test_events_that_end_where_a_value_begins_are_refused():
    events = iter([yaml.StreamStartEvent(), yaml.DocumentStartEvent(), yaml.DocumentEndEvent()])
    with pytest.raises(yaml.YAMLError, match="no value where a value begins"):
        plain_yaml._Builder(events, gate.YAML.values).document()


def test_a_file_that_is_as_large_as_may_be(tmp_path):
    path = tmp_path / "document.yaml"
    path.write_bytes(b"a: 1\n" + b"#" * (gate.YAML.size - 5))
    assert read_mapping(path, "faults", "document.yaml") == {"a": 1}
    path.write_bytes(b"a: 1\n" + b"#" * (gate.YAML.size - 4))
    with pytest.raises(BadInput, match="a file of at most 1,048,576 bytes"):
        read_mapping(path, "faults", "document.yaml")


def test_a_trace_may_be_larger_than_a_spec(tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text("at,targets,kind,cause\n" + f"1,h,kill,{'x' * 150}\n" * 8000)
    assert path.stat().st_size > gate.YAML.size
    assert len(with_trace(FaultSpec(duration=5, hosts={"h": ()}, trace=str(path))).events) == 8000


def test_of_a_trace_with_too_many_rows_no_more_than_those_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr("experiments.trace.MOST_FAULTS", 10)
    path = tmp_path / "trace.csv"
    path.write_text("at,targets\n" + "1,h\n" * 11)
    with pytest.raises(BadInput, match="at most 10 faults"):
        with_trace(FaultSpec(duration=5, hosts={"h": ()}, trace=str(path)))
    path.write_text("at,targets\n" + "1,h\n" * 10)
    assert len(with_trace(FaultSpec(duration=5, hosts={"h": ()}, trace=str(path))).events) == 10


def test_a_column_that_is_there_twice(tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text("at,targets,at\n1,h,2\n")
    with pytest.raises(BadInput, match="the columns at, targets"):
        with_trace(FaultSpec(duration=5, hosts={"h": ()}, trace=str(path)))


def test_a_pipe_is_read_and_one_that_nobody_writes_to_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BadInput, match="no process writes to this pipe"):
        read_json(tmp_path / "pipe", "topology")
    reading, writing = os.pipe()
    os.write(writing, b'{"a": 1}')
    os.close(writing)
    try:
        assert read_json(f"/dev/fd/{reading}", "topology") == {"a": 1}
    finally:
        os.close(reading)


@pytest.mark.parametrize(("path", "kind"), [(".", "a folder"), ("/dev/zero", "a device")])
def test_what_is_no_file_is_told_as_what_it_is(path, kind):
    with pytest.raises(BadInput, match=f"a readable JSON file .this is {kind}"):
        read_json(Path(path), "topology")
