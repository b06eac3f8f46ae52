"""The page of failed checks says of every check what to do, and names no check that there is not."""

import re
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from results.checks.catalogue import CHECKS
from results.runs import store
from results.verdict import Verdict
from results.views.terminal import summary
from tests.unit.docs.fences import fenced

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "guides" / "failed-checks.md").read_text(encoding="utf-8")
PRACTICE = "soak-docker-20261130-173545-6a81"
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


@pytest.fixture
def repository(home, monkeypatch):
    monkeypatch.setenv("AFTERSHOCK_PUBLISHED", str(ROOT / "published"))
    monkeypatch.chdir(ROOT)


@pytest.mark.usefixtures("repository")
def test_the_run_to_practise_on_says_what_the_page_shows(capsys):
    (code,), (verdict, printed) = fenced(PAGE, "python"), fenced(PAGE, "text")
    said = summary(store.readable(PRACTICE))
    assert "\n".join(verdict) in said
    assert re.search(r"Programs outside[^*]*window\.", PAGE)[0].replace("\n", " ") in said.replace("\n", " ")
    exec("\n".join(code), {})
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == printed


@pytest.mark.usefixtures("repository")
def test_the_page_names_every_published_run_with_a_check_that_did_not_pass():
    practice = PAGE.partition("## Practise on a published run")[2]
    tables = {run.run_id: run.table("verdicts") for run in store.all_published()}
    found = {name: table.loc[table["verdict"] != Verdict.PASS, "check"].tolist() for name, table in tables.items()}
    checks = {name: found[name] for name in found if found[name]}
    assert set(re.findall(r"`([a-z0-9-]+-\d{8}-\d{6}-[0-9a-f]{4})`", practice)) == set(checks)
    assert [check for named in checks.values() for check in named if check not in practice] == []
