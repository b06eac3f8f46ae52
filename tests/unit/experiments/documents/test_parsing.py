"""Documents that cannot be read are named in one line, for any error in them."""

import pytest

from experiments.documents.parsing import read_csv, read_json, read_mapping
from experiments.errors import BadInput


@pytest.fixture
def document(tmp_path):
    def write(text):
        path = tmp_path / "document"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


@pytest.mark.parametrize(
    ("text", "field", "allowed"),
    [
        ('{"a": 1, "b": {"c": 1, "c": 2}}', "c", "each field once"),
        ("[" * 100_000, "topology", "not nested this deeply"),
        ("[1]", "topology", "a JSON object of fields"),
        ('{"a": ', "topology", "valid JSON"),
        (b"\xff\xfe{}", "topology", "valid JSON"),
        ("", "topology", "valid JSON"),
    ],
)
def test_json(document, text, field, allowed):
    with pytest.raises(BadInput) as error:
        read_json(document(text), "topology")
    assert error.value.field == field
    assert str(document(text)) in str(error.value)
    assert allowed in error.value.allowed
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "field", "allowed"),
    [
        ("a: 1\nb: {c: 1, c: 2}\n", "c", "each field once (here on line 2)"),
        ("c: 1\nb:\n  - {c: 2}\n  - d: 1\n    c: 3\n    d: 4\n", "d", "each field once (here on lines 4 and 6)"),
        ("1: 1\n1: 2\n", "1", "each field once"),
        ("[" * 100_000, "faults", "not nested this deeply"),
        ("[1]", "faults", "a YAML mapping of fields"),
        ("# none", "faults", "a YAML mapping of fields; {} is one without fields"),
        ("a: [", "faults", "valid YAML"),
        ("a:\n\tb: 1\n", "faults", "line 2, column 1: a tab, where YAML takes spaces only"),
        (b"\xff\xfe\xfd", "faults", "valid YAML"),
    ],
)
def test_yaml(document, text, field, allowed):
    with pytest.raises(BadInput) as error:
        read_mapping(document(text), "faults", "document")
    assert error.value.field == field
    assert "document" in str(error.value)
    assert allowed in error.value.allowed
    assert "\n" not in str(error.value)


def test_a_byte_order_mark_is_no_part_of_a_document(document):
    assert read_json(document('\ufeff{"a": 1}'), "topology") == {"a": 1}
    assert read_mapping(document("\ufeffa: 1"), "faults", "document") == {"a": 1}
    columns, rows = read_csv(document("\ufeffat,targets\n3,a\n"), "trace", most_rows=9)
    assert (columns, rows) == (["at", "targets"], [{"at": "3", "targets": "a"}])


def test_what_is_there_is_read(document):
    assert read_json(document('{"a": {"b": [1, 2.5, null]}}'), "topology") == {"a": {"b": [1, 2.5, None]}}
    assert read_mapping(document("a: {b: [1, 2.5, null]}\nc: &x {d: 1}\ne: {<<: *x, f: 2}"), "faults", "document") == {
        "a": {"b": [1, 2.5, None]},
        "c": {"d": 1},
        "e": {"d": 1, "f": 2},
    }
    assert read_mapping(document("{}"), "faults", "document") == {}
    assert read_mapping(document("# none"), "faults", "document", may_be_empty=True) == {}


def test_a_long_value_is_shown_by_its_ends():
    text = str(BadInput("depth", 10**400, "a whole number"))
    assert len(text) < 300
    assert text.startswith("depth: 1000")
    assert " ... 000" in text
