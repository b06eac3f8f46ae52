"""Published tables are judged again by the checks of today; what is known of how they were made stays."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from experiments.errors import BadInput
from reproductions import reproduce as module
from reproductions.catalogue import CATALOGUE
from reproductions.judge_again import judge_again
from reproductions.reproduce import reproduce
from reproductions.reproduction import Reproduction, holds
from results.checks.rules import between
from results.publication import publish_results
from results.runs.store import write_json
from results.views.gallery import published_reproduction
from tests.unit.reproductions.verdicts import NOTHING

FIGURE, OTHER = "utilization/fig-04", "utilization/fig-14"
NAME = "utilization-fig-04"


@pytest.fixture(autouse=True)
def place(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the only result that is published; the installation that made it is gone."""
    monkeypatch.setenv("AFTERSHOCK_PUBLISHED", str(tmp_path / "published"))
    reproduce(FIGURE)
    publish_results([FIGURE])
    shutil.rmtree(home)
    return tmp_path / "published" / "reproductions" / FIGURE


@pytest.fixture
def stricter(monkeypatch: pytest.MonkeyPatch) -> Reproduction:
    """The figure with a check that its table does not meet, and told in other words."""
    least = holds(
        "least",
        lambda rows: rows[["utilization"]],
        [between("utilization", 1, None)],
        lambda rows: f"{rows['utilization'].min():.1f}",
        "1 everywhere",
        NOTHING,
    )
    changed = replace(CATALOGUE[FIGURE], checks=(least,), what="utilization, told otherwise")
    monkeypatch.setattr(module, "CATALOGUE", {FIGURE: changed, OTHER: CATALOGUE[OTHER]})
    return changed


def contents(place: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in place.iterdir()}


def test_the_same_checks_change_no_file(place):
    before = {path: path.stat().st_ino for path in place.iterdir()}
    done = judge_again([FIGURE])
    assert (done.changed, done.unchanged) == ([], [FIGURE])
    assert {path: path.stat().st_ino for path in place.iterdir()} == before


def test_other_checks_make_other_verdicts_and_leave_how_the_table_was_made(place, stricter):
    about, before = json.loads((place / "published.json").read_text()), contents(place)
    assert published_reproduction(FIGURE).verdict == "pass"
    done = judge_again([FIGURE, FIGURE])
    assert (done.changed, done.unchanged) == ([FIGURE], [])
    found = published_reproduction(FIGURE)
    assert (found.verdict, found.what, found.lack) == ("fail", stricter.what, None)
    assert [(row.check, row.verdict) for row in found.verdicts] == [("least", "fail")]
    now = json.loads((place / "published.json").read_text())
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", now["judged_again"])
    changed = {name for name, digest in now["files"].items() if about["files"][name] != digest}
    assert changed == {f"{NAME}.verdicts.json"}
    assert now | {"judged_again": None, "files": None} == about | {"judged_again": None, "files": None}
    assert {name for name, content in contents(place).items() if before[name] != content} == changed | {
        "published.json"
    }
    assert judge_again([FIGURE]).unchanged == [FIGURE]


def test_a_table_that_lacks_what_a_check_needs_is_unknown(place, stricter, monkeypatch):
    later = replace(stricter.checks[0], subject=lambda evidence: evidence.rows()[["luck"]])
    monkeypatch.setattr(module, "CATALOGUE", {FIGURE: replace(stricter, checks=(later,))})
    judge_again([FIGURE])
    (row,) = published_reproduction(FIGURE).verdicts
    assert row.verdict == "unknown"
    assert "luck" in row.detail


@pytest.mark.parametrize("id", [OTHER, "utilization/fig-99", "run-1", "../x", ""])
def test_what_has_no_published_table_is_refused_in_one_line_and_nothing_is_changed(id, place, stricter):
    before = contents(place)
    with pytest.raises(BadInput) as refused:
        judge_again([FIGURE, id])
    assert "\n" not in str(refused.value)
    assert contents(place) == before


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda place: (place / f"{NAME}.parquet").unlink(), "of which a table is published"),
        (lambda place: write_json(place / "published.json", {"format": 99}), "format 99"),
        (
            lambda place: pd.DataFrame({"utilization": [1.0]}).to_parquet(place / f"{NAME}.parquet"),
            f"{NAME}.parquet is not the file that was published",
        ),
        (lambda place: (place / f"{NAME}.svg").write_text("<svg/>"), f"{NAME}.svg is not the file"),
        (lambda place: (place / "more.txt").write_text(""), "more.txt is not the file"),
    ],
    ids=["no table", "another format", "another table", "another plot", "another file"],
)
def test_a_result_that_is_not_as_it_was_published_is_refused(spoil, told, place, stricter):
    spoil(place)
    before = contents(place)
    with pytest.raises(BadInput, match=told) as refused:
        judge_again([FIGURE])
    assert "\n" not in str(refused.value)
    assert contents(place) == before
