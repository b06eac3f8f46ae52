"""The page of claims has every row of the catalogue, and says of none more than its published checks do."""

import re
from pathlib import Path

import pytest

from reproductions.ids import IDS
from results.views import gallery

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "lab" / "claims.md").read_text(encoding="utf-8")
WORDS = ("agrees", "agree", "disagrees", "undecided", "not measured", "partly measured")
LIMITED = re.compile(r"disagree|undecided|except|needs a limit|not measured|in part")
FIGURES = sorted(f"{path.parent.name}/{path.name}" for path in (ROOT / "published" / "reproductions").glob("*/*"))


def verdicts(page):
    """By id, the verdicts of the rows that name it."""
    found = {}
    for row in re.findall(r"^\| (`[^|]+) \|(?:[^|]*\|){2} ([^|]+) \|$", page, re.MULTILINE):
        for id in re.findall(r"`([^`]+)`", row[0]):
            found.setdefault(id, []).append(row[1])
    return found


def unlimited(page, id, published):
    """Whether the page says without a limit that a figure agrees of whose published checks not all passed."""
    return published != "pass" and not any(LIMITED.search(verdict) for verdict in verdicts(page)[id])


def refuted(page, id, published):
    """Whether the page says that a figure disagrees whose published checks, with these verdicts, are all unknown."""
    told = any("disagree" in verdict and "undecided" not in verdict for verdict in verdicts(page)[id])
    return told and set(published) == {"unknown"}


def test_every_row_of_the_catalogue_has_a_verdict():
    told = verdicts(PAGE)
    assert set(IDS) - set(told) == set()
    assert all(any(word in verdict for word in WORDS) for found in told.values() for verdict in found)


@pytest.mark.parametrize("id", FIGURES)
def test_the_page_says_no_more_than_the_published_checks(id, monkeypatch):
    monkeypatch.setenv("AFTERSHOCK_PUBLISHED", str(ROOT / "published"))
    published = gallery.published_reproduction(id)
    assert not unlimited(PAGE, id, published.verdict)
    assert not refuted(PAGE, id, [row.verdict for row in published.verdicts])


def test_a_verdict_that_says_too_much_is_noticed():
    page = "| `a/1` | claims | found | agrees |\n| `a/2` | claims | found | agrees, except for one: a slip |\n"
    assert unlimited(page, "a/1", "fail")
    assert not unlimited(page, "a/1", "pass")
    assert not unlimited(page, "a/2", "fail")


def test_a_disagreement_that_no_check_has_found_is_noticed():
    page = "| `a/1` | claims | found | disagrees with the size |\n| `a/2` | claims | found | undecided |\n"
    assert refuted(page, "a/1", ["unknown", "unknown"])
    assert not refuted(page, "a/1", ["unknown", "fail"])
    assert not refuted(page, "a/2", ["unknown"])
