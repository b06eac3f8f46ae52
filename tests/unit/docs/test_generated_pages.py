"""The committed reference pages are those that the code makes; every table, check, command and field is on them."""

import dataclasses

import pytest

from aftershock.cli.program import parser
from aftershock.reference import command_line
from aftershock.reference import tables as tables_page
from aftershock.reference.pages import FOLDER, PAGES
from results.tables.comparison import COMPARISON_TABLES
from results.tables.schema import RUN_TABLES

COLUMNS = [
    pytest.param(column, id=f"{name}.{column.name}")
    for name, table in (RUN_TABLES | COMPARISON_TABLES).items()
    for column in table.columns
]


@pytest.mark.parametrize("name", PAGES)
def test_a_committed_page_is_the_generated_one(name):
    assert (FOLDER / name).read_text(encoding="utf-8") == PAGES[name](), "run `make docs`"


def test_another_meaning_of_a_column_makes_another_page(monkeypatch):
    faults = RUN_TABLES["faults"]
    first = dataclasses.replace(faults.columns[0], description="something else")
    changed = dataclasses.replace(faults, columns=(first, *faults.columns[1:]))
    monkeypatch.setitem(tables_page.RUN_TABLES, "faults", changed)
    assert PAGES["tables.md"]() != (FOLDER / "tables.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("column", COLUMNS)
def test_a_column_says_what_it_is(column):
    assert column.description
    assert column.label[0].isupper()
    assert not column.name.endswith(("_ns", "_s", "_bytes")) or column.unit


def test_a_label_leaves_the_unit_to_its_own_place():
    labels = {column.name: column.label for column in RUN_TABLES["recoveries"].columns}
    assert (labels["death_ns"], labels["catch_up_s"]) == ("Death", "Catch up")


def test_every_field_of_an_experiment_says_what_it_is():
    rows = [line for line in PAGES["experiment.md"]().splitlines() if line.startswith("| `")]
    unsaid = [row for row in rows if row.endswith("|  |") and "see there" not in row and ".name`" not in row]
    assert len(rows) > 60
    assert unsaid == []


def test_every_option_says_what_it_is():
    rows = [line for line in PAGES["command-line.md"]().splitlines() if line.startswith("| `")]
    assert len(rows) > 50
    assert [row for row in rows if row.endswith("|  |")] == []


def test_the_commands_without_json_are_those_that_the_page_names():
    without = {name for name, each in parser()._subparsers._group_actions[0].choices.items() if not takes_json(each)}
    told = command_line.TEXT.partition("Every command but ")[2].partition(" also takes `--json`")[0]
    assert set(told.replace("`", "").split(" and ")) == without


def takes_json(found):
    below = [each for each in found._actions if isinstance(each.choices, dict)]
    return "--json" in found._option_string_actions or any(
        map(takes_json, (c for g in below for c in g.choices.values()))
    )
