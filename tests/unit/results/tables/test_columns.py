"""A table takes rows by the names of its columns; a column has a unit and a label even where only its name is given."""

from __future__ import annotations

import pytest

from results.tables.columns import REAL, TEXT, WHOLE, Table, may, must
from results.tables.schema import RUN_TABLES

TABLE = Table(
    "a test", (must(WHOLE, "started_ns", "when"), may(REAL, "lag_records", "how many"), must(TEXT, "why", "why"))
)


def test_rows_are_taken_by_name_in_whatever_order():
    found = TABLE.of([{"why": "so", "started_ns": 1}, {"lag_records": 2, "started_ns": 3, "why": "no"}])
    assert found.schema == TABLE.schema
    assert found.to_pylist() == [
        {"started_ns": 1, "lag_records": None, "why": "so"},
        {"started_ns": 3, "lag_records": 2.0, "why": "no"},
    ]
    assert TABLE.of([]).schema == TABLE.schema


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"started_ns": 1, "why": "so", "lag": 2.0}, "no column is named lag"),
        ({"started_ns": 1}, "a row lacks why"),
    ],
)
def test_a_row_with_a_strange_name_or_without_a_required_one_is_refused(row, told):
    with pytest.raises(ValueError, match=told):
        TABLE.of([{"started_ns": 0, "why": "first"}, row])


@pytest.mark.parametrize(
    ("column", "heading"),
    [
        (must(WHOLE, "window_start_ns", "-"), "Window start [ns UTC]"),
        (must(REAL, "catch_up_s", "-"), "Catch up [s]"),
        (must(WHOLE, "size_bytes", "-"), "Size [bytes]"),
        (must(REAL, "rate", "-", "1/s", label="Load"), "Load [1/s]"),
        (may(REAL, "share_by_records", "-", "", "Share by records"), "Share by records"),
        (must(TEXT, "why", "-"), "Why"),
    ],
)
def test_a_heading_is_label_and_unit(column, heading):
    assert column.heading == heading


def test_two_columns_of_a_table_never_have_the_same_head():
    for name, table in RUN_TABLES.items():
        heads = [column.heading for column in table.columns]
        assert len(set(heads)) == len(heads), name
