"""The page of failed checks says of every check what to do, and names no check that there is not."""

import re
from fnmatch import fnmatchcase
from pathlib import Path

from results.checks.catalogue import CHECKS

PAGE = (Path(__file__).parents[3] / "docs" / "guides" / "failed-checks.md").read_text(encoding="utf-8")
NAMES = [check.name for check in CHECKS]


def patterns(page):
    """The checks in the first column of the page's table, some as patterns."""
    rows = re.findall(r"^\| ([^|]+) \|[^|]+\|[^|]+\|$", page, re.MULTILINE)
    return [name for cell in rows for name in re.findall(r"`([\w.*]+)`", cell)]


def untold(page):
    """The checks that no row covers, and the names in rows that fit no check."""
    found = patterns(page)
    without = [name for name in NAMES if not any(fnmatchcase(name, each) for each in found)]
    return without, [each for each in found if not any(fnmatchcase(name, each) for name in NAMES)]


def test_every_check_has_a_row():
    assert untold(PAGE) == ([], [])


def test_a_check_without_a_row_and_a_row_without_a_check_are_noticed():
    assert untold(PAGE.replace("`clock.steady`", "`clock.stedy`")) == (["clock.steady"], ["clock.stedy"])
