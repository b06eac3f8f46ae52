"""Every relative link and anchor in README and docs points to something that exists, and links lead to every page."""

from itertools import pairwise
from pathlib import Path

import pytest

from tests.unit.docs.links import anchors, broken, within

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page):
    assert broken(page) == []


@pytest.mark.parametrize(
    "link", ["gone.md", "other.md#gone", "#gone", "other.txt#heading", "../gone/", "other.md#in-code"]
)
def test_a_link_to_nothing_is_noticed(tmp_path, link):
    (tmp_path / "other.md").write_text("# Heading\n\n```\n# In code\n```\n")
    (tmp_path / "other.txt").write_text("# Heading\n")
    page = tmp_path / "page.md"
    prose = f"[here]({link}) and [there](other.md#heading), [above](#page), `[code](nowhere.md)`"
    page.write_text(f"# Page\n\n{prose}\n\n    [code](nowhere.md)\n")
    assert broken(page) == [link]


def test_every_page_is_two_clicks_from_the_readme_at_most():
    assert set(PAGES) - within(ROOT / "README.md", 2) == set()


def test_a_page_that_takes_too_many_clicks_is_noticed(tmp_path):
    pages = [tmp_path / f"{name}.md" for name in ("first", "second", "third", "fourth")]
    for page, after in pairwise(pages):
        page.write_text(f"[first](first.md#), [next]({after.name}#there), `[code](fourth.md)`\n")
    pages[-1].write_text("# Fourth\n")
    assert within(pages[0], 2) == set(pages[:3])


def test_anchors_are_those_of_github(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# What `is` it, and how?\n## Two\n## Two\n### [A link](there.md) & more\n")
    assert anchors(page) == {"what-is-it-and-how", "two", "two-1", "a-link--more"}
