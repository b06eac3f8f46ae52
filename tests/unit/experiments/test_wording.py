"""What is told of a value or a failure: one line, short, and nothing in it acts on a terminal."""

import re
import sys

import pytest

from experiments.errors import AftershockError, BadInput, EnvironmentFailure, in_file
from experiments.wording import LONGEST_MESSAGE, exact, on_one_line, shown

HOSTILE = ["a\nb", "a\r\nb", "\x1b[31ma", "a\u202eb", "a\x00b", "a\ud800b", "a\u2028b", "\x9b31m", "a\tb", "\udcff"]


@pytest.mark.parametrize("text", HOSTILE)
def test_every_part_of_an_error_is_made_safe(text):
    for error in (
        BadInput(text, 1, "a number"),
        BadInput("a", text, "a number"),
        BadInput("a", {text: [text]}, "a number"),
        BadInput("a", 1, f"one of {text}"),
        BadInput("a", 1, "a number", text),
        EnvironmentFailure(text, text),
        AftershockError(text),
    ):
        assert str(error).isprintable(), repr(str(error))
        str(error).encode("utf-8")
    failure = EnvironmentFailure(text, text)
    assert (failure.cause + failure.remedy).isprintable(), "each is told by itself, too"
    with pytest.raises(BadInput) as told, in_file(text):
        raise BadInput("a", text, "a number")
    assert str(told.value).isprintable()
    assert (told.value.value, told.value.source) == (text, text)


def test_every_kind_of_error_that_the_project_has_is_made_safe():
    """Also those that know nothing of it: it is done where all of them begin."""

    class Another(AftershockError):
        def __init__(self, path):
            super().__init__(f"cannot read {path}")

    assert str(Another("a\x1b[2Jb")) == "cannot read a\\x1b[2Jb"


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("usual: 'text', 3 é ✓ 中", "usual: 'text', 3 é ✓ 中"),
        ("a\nb", "a\\nb"),
        ("a\x1b[31mb", "a\\x1b[31mb"),
        ("a\u202eb", "a\\u202eb"),
        ("a\ud800b", "a\\ud800b"),
        ("\U000e0001", "\\U000e0001"),
    ],
)
def test_only_what_acts_on_a_terminal_is_spelt_out(text, safe):
    assert on_one_line(text) == safe


@pytest.mark.parametrize("text", ["a" * 100_000, "\n" * 100_000, "é" * 100_000])
def test_a_long_message_is_shown_by_its_ends(text):
    assert len(on_one_line(f"beginning {text} end")) <= LONGEST_MESSAGE + 5
    assert re.fullmatch(r"beginning .* \.\.\. .* end", on_one_line(f"beginning {text} end"))


def test_a_value_that_cannot_be_written_out_is_still_told():
    itself = []
    itself.append(itself)
    deep = []
    for _ in range(2 * sys.getrecursionlimit()):
        deep = [deep]
    for value in (itself, deep, 10**5000, -(10**5000), {"a": itself}, list(range(10**6)), {i: i for i in range(10**5)}):
        assert len(str(BadInput("a", value, "a number"))) < 300
    assert shown(list(range(10**6))) == "a list of 1,000,000"
    assert shown([1, {"a": "b"}]) == "[1, {'a': 'b'}]"


def test_a_field_whose_name_is_long_does_not_show_the_secret_in_it():
    name = "a" * 300 + "password=hunter2" + "b" * 300
    assert "hunter2" not in str(BadInput(name, 1, "no such field"))
    assert "hunter2" not in str(BadInput("a", "x" * 20_000 + " password=hunter2", "a number"))


@pytest.mark.parametrize(
    ("bound", "told"),
    [
        *((0.001, "0.001"), (240.0, "240"), (262_144, "262144"), (10**9, "1e+09"), (1e9, "1e+09")),
        *((1_048_576, "1,048,576"), (86_400.25, "86,400.25"), (2**63, "9,223,372,036,854,775,808")),
    ],
)
def test_a_bound_keeps_every_digit_so_that_who_copies_it_is_not_refused(bound, told):
    assert exact(bound) == told
    assert float(told.replace(",", "")) == bound
