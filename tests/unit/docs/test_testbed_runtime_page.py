"""The page about the testbed's runtime names every entry of its journal, and none that it does not have."""

import re
from pathlib import Path

from journal.events.testbed import TESTBED

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "testbed-runtime.md").read_text(encoding="utf-8")


def entries(page):
    """The names in the table of the journal's entries, without what stands in brackets."""
    table = page.partition("| about | entries |")[2].partition("\n\n")[0]
    cells = re.findall(r"^\| [^|]+ \| (.+) \|$", table, re.MULTILINE)
    return set(re.findall(r"`([\w-]+)`", re.sub(r"\([^)]*\)", "", " ".join(cells))))


def test_the_page_has_every_entry_of_the_journal():
    assert entries(PAGE) == set(TESTBED.kinds)


def test_an_entry_that_is_not_told_and_one_that_is_not_there_are_noticed():
    assert entries(PAGE.replace("`costs-measured`", "costs")) == set(TESTBED.kinds) - {"costs-measured"}
    assert entries(PAGE.replace("`draining`", "`draining`, `drained`")) == set(TESTBED.kinds) | {"drained"}
