"""Whatever is in the files of a run or comparison, it is shown or said to be damaged; all others are shown as ever."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from random import Random
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from experiments.errors import BadInput
from plugins import present
from plugins.present import time_text
from results import charts, index, reading, side_by_side, store
from results.damage import Damaged
from results.document import document
from results.findings import headline, surroundings
from results.listing import entry, listing
from results.regression import history, records, wording
from results.retention import removable
from results.schema import FLAG, REGRESSION_TABLES, TABLES, TEXT, WHOLE, WORDS
from results.selection import SORTS, Selection, choices, select
from results.terminal import summary
from tests.unit.results.damaging import REGRESSION, Damage, make_store

INPUTS = int(os.environ.get("AFTERSHOCK_FUZZ_INPUTS", "1000"))
STATES = {"done", "failed", "running", index.UNREADABLE}


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AFTERSHOCK_HOME", str(tmp_path_factory.mktemp("home")))
        yield make_store()


def _written(found: Any) -> None:
    """It can be sent and printed: no number that JSON has not, no text that UTF-8 has not."""
    json.dumps(found, allow_nan=False, ensure_ascii=False).encode()


def _in_one_line(error: Exception) -> None:
    if not str(error).isprintable():
        raise ValueError(f"{error!r} is not one line of text")


def _is_shown(run: store.Run, whole: index.Row) -> None:
    """Everything that lists, commands and pages take from a run, of which some may be refused as damaged."""
    row, look = index.row_of(run), store.ReadOnce.of(run)
    assert row.state in STATES
    rows = [row, whole]
    for line in listing(rows, 100).splitlines():
        assert line.isprintable()
    assert len(listing(rows, 100).splitlines()) == 3
    _written([entry(each) for each in rows])
    for sort in SORTS:
        assert len(select(rows, Selection(), sort)) == 2
    choices(rows)
    history.series_of(rows)
    removable([run.known_status()], 0, None, (), 1)
    side_by_side.metric_table(rows)
    side_by_side.differences(rows, list(present.DETAILS))
    _written([present.details(row), surroundings(run), [asdict(each) for each in present.tables(run)]])
    if row.state != index.UNREADABLE:
        _written([headline(look), charts.charts(look), side_by_side.charts([look], [row])])
        present.verdicts(look)
    for show in (document, summary, history.row):
        try:
            show(look)
        except Damaged as damage:
            _in_one_line(damage)


@pytest.mark.parametrize("part", range(2))
def test_a_damaged_file_of_a_run_costs_no_other_run_anything(stored, part: int):
    victim, whole, _ = stored
    row, random = index.row_of(whole), Random(part)
    assert row.state == "done"
    files = [victim.root / "status.json", victim.experiment_path, *sorted(victim.tables.iterdir())]
    for number in range(INPUTS // 20):
        path = random.choice(files)
        with Damage(path, random) as way:
            try:
                _is_shown(victim, row)
            except Exception as error:
                raise AssertionError(f"input {number} of part {part}: {path.name}, {way}") from error
    assert index.row_of(victim).state == "done"


def test_a_damaged_comparison_costs_no_other_anything(stored):
    _, _, folder = stored
    random = Random(0)
    files = sorted(folder.iterdir())
    for number in range(INPUTS // 2):
        path = random.choice(files)
        with Damage(path, random) as way:
            try:
                _is_told(path)
            except Exception as error:
                raise AssertionError(f"input {number}: {path.name}, {way}") from error


def _is_told(path: Path) -> None:
    found, damaged = records.read_all()
    assert len(found) + len(damaged) == (1 if os.path.lexists(path.with_name(records.DOCUMENT)) else 0)
    records.set_aside()
    _written(found)
    try:
        rows = records.Regression(REGRESSION, path.parent).rows("regression")
        assert all(set(row) >= set(REGRESSION_TABLES["regression"].names) for row in rows)
        _written([wording.effect(row) for row in rows])
        for each in found:
            wording.report(each, rows)
        records.recorded(REGRESSION).rows("change_points")
    except (Damaged, BadInput) as error:
        _in_one_line(error)


def test_a_damaged_index_costs_no_run(stored):
    random = Random(0)
    index.rows()
    for number in range(INPUTS // 20):
        with Damage(store.home() / "runs-index.json", random) as way:
            rows = index.rows()
            assert {row.run_id for row in rows} == {"victim", "whole"}, f"input {number}, {way}"
            listing(rows, 100)
            select(rows, Selection(), random.choice(list(SORTS)))


def test_a_table_that_is_read_is_as_its_schema_has_it(stored):
    """Checked by hand, row by row: what comes back has the types, the bounds and the words of the schema."""
    victim, _, _ = stored
    random, refused = Random(0), 0
    files = sorted(victim.tables.glob("*.parquet"))
    for number in range(INPUTS):
        path = random.choice(files)
        with Damage(path, random) as way:
            try:
                found = victim.table(path.stem) if victim.has(path.stem) else None
                list(reading.read_pieces(path)) if found is not None else None
            except Damaged as damage:
                _in_one_line(damage)
                refused += 1
                continue
            except Exception as error:
                raise AssertionError(f"input {number}: {path.name}, {way}") from error
        if found is not None:
            for field in TABLES[path.stem]:
                odd = [value for value in found[field.name] if not _fits(value, field, WORDS.get(path.stem, {}))]
                assert not odd, f"input {number}: {path.name}, {way}, {field}: {odd[0]!r}"
    assert INPUTS * 0.3 < refused < INPUTS * 0.9


def _fits(value: Any, field: pa.Field, words: dict[str, Any]) -> bool:
    if value is None or value is pd.NA:
        return field.nullable
    if field.type == TEXT:
        return isinstance(value, str) and value in list(words.get(field.name, [value])) and len(value) <= 100_000
    if field.type == FLAG:
        return isinstance(value, bool)
    if field.type == WHOLE:
        return type(value) is int and (value >= 0 if field.name.endswith("_ns") else abs(value) <= 2**53)
    return type(value) is float and abs(value) <= 1e18


@pytest.mark.parametrize("name", ["status.json", "experiment.json"])
def test_a_document_that_is_read_is_as_it_is_described(stored, name: str):
    victim, whole, _ = stored
    random = Random(0)
    for number in range(INPUTS // 2):
        with Damage(victim.root / name, random) as way:
            try:
                status = victim.known_status()
                _written(status)
                assert len(store.all_finished()) == (2 if os.path.lexists(victim.root / "status.json") else 1)
                assert whole.known_status()["state"] == "done"
                row = index.Row("victim", status["state"], status["experiment"], status["started_ns"])
                _written([entry(row), time_text(status.get("ended_ns")), listing([row], 80)])
                removable([status], 0, 1.0, (), 2**62)
                victim.experiment().get("load", {}).get("mode", "").upper()
            except (Damaged, FileNotFoundError):
                continue
            except Exception as error:
                raise AssertionError(f"input {number}, {way}") from error
