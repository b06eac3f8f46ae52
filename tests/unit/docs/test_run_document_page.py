"""The page about the JSON document of a run names every field of it, and none that it does not have."""

import re
from pathlib import Path

import pandas as pd
import pytest

from results.tables.schema import RUN_TABLES
from results.views.document import document
from tests.unit.results import synthetic

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "run-document.md").read_text(encoding="utf-8")
WORDS = {"pass", "fail", "unknown", "quality.nothing_wrong"}  # of the page, that are no fields
SOMETIMES = {"fell_back"}  # fields that the run of these tests does not have
ALWAYS_THERE = ("check", "table", "verdict", "observed", "expected", "detail")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run with a verdict and with a query that came back."""
    made = synthetic.make_run(tmp_path_factory.mktemp("run"))
    verdict = dict.fromkeys(ALWAYS_THERE, "pass")
    synthetic.write_table(made, "verdicts", pd.DataFrame([verdict]))
    query = {column.name: 1 for column in RUN_TABLES["query_recoveries"].columns} | {"query": "q0", "priority": 1.0}
    synthetic.write_table(made, "query_recoveries", pd.DataFrame([query]))
    return made


def told(page):
    """By field the names that its row has, without those of values."""
    rows = re.findall(r"^\| `(\w+)` \| (.+) \|$", page, re.MULTILINE)
    return {field: set(re.findall(r"`([\w.-]+)`", content)) - WORDS for field, content in rows}


def fields(found):
    """By field the names below it; of a list, those of its first entry."""
    first = {name: value[0] if isinstance(value, list) else value for name, value in found.items()}
    return {name: set(value) if isinstance(value, dict) else set() for name, value in first.items()}


def test_the_page_has_the_fields_of_the_document(run):
    page = told(PAGE)
    assert {name: page[name] for name in page.keys() - SOMETIMES} == fields(document(run))


def test_a_field_that_is_not_told_and_one_that_is_not_there_are_noticed(run):
    less, more = PAGE.replace("`too_high`", "it"), PAGE.replace("`catch_up`", "`catch_up`, `gone`")
    assert told(less)["sustainable"] != fields(document(run))["sustainable"]
    assert told(more)["recoveries"] != fields(document(run))["recoveries"]
