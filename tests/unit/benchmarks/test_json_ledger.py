"""A ledger of a long measurement: nothing of it is lost, and no other file is taken for one."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from benchmarks.json_ledger import JsonLedger
from experiments.errors import BadInput
from tests.unit.interruptions import Interruption, at_every_change


@dataclass(frozen=True)
class Line:
    name: str
    count: int = 0


FIRST, SECOND, CUT = '{"name": "a", "count": 1}\n', '{"name": "b", "count": 2}\n', '{"name": "c", "co'
BEGUN = [Line("a", 1), Line("b", 2)]


@pytest.mark.parametrize("cut", ["", CUT, CUT[:1], CUT[:9]], ids=len)
def test_what_was_added_is_there_again_without_a_line_that_was_cut_short(cut, tmp_path):
    path = tmp_path / "ledger.jsonl"
    path.write_text(FIRST + SECOND + cut)
    ledger = JsonLedger(path, Line)
    assert ledger.lines == BEGUN
    ledger.add(Line("c", 3))
    assert ledger.lines == JsonLedger(path, Line).lines == [*BEGUN, Line("c", 3)]


@pytest.mark.parametrize("interruption", [Interruption.KILL, Interruption.TEAR, Interruption.FULL])
def test_whatever_strikes_while_a_cut_line_is_removed_spares_the_others(interruption, tmp_path):
    path = tmp_path / "ledger.jsonl"
    path.write_text(FIRST + SECOND + CUT)
    for _ in at_every_change(lambda: JsonLedger(path, Line), tmp_path, interruption):
        assert path.read_text().startswith(FIRST + SECOND)
        path.write_text(FIRST + SECOND + CUT)
    assert JsonLedger(path, Line).lines == BEGUN


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("name,count\na,1\n", "line 1 of "),
        (FIRST + '{"kind": "soak"}\n', "line 2 of "),
        (FIRST + "[1]\n", "line 2 of "),
        (FIRST + "some text", "the end of "),
        ('{"name":"a","version":"1.0"}', "the end of "),
    ],
)
def test_a_file_that_no_ledger_has_written_is_refused_in_one_line_and_stays(text, where, tmp_path):
    path = tmp_path / "other.jsonl"
    path.write_text(text)
    with pytest.raises(BadInput, match=f"--ledger: '{where}.*with name, count in each line$"):
        JsonLedger(path, Line)
    assert path.read_text() == text


@pytest.mark.parametrize("path", [".", "none/ledger.jsonl"])
def test_a_path_at_which_no_file_can_be_is_refused_before_anything_is_measured(path, tmp_path):
    with pytest.raises(BadInput, match=r"--ledger: .*a file, or a new one in a folder that exists"):
        JsonLedger(tmp_path / path, Line)
