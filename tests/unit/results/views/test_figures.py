"""Figures as people see them: three significant digits, and a unit wherever there is one."""

from __future__ import annotations

import re
from html import unescape

import pandas as pd
import pytest

from experiments.wording import percent, signed, significant, told_apart
from results.runs.store import Run
from results.tables.columns import MOMENT, REAL, WHOLE, Column
from results.views import side_by_side
from results.views.cells import TABLES, cell, head
from results.views.terminal import summary
from tests.unit.results.figures import too_precise

COLUMNS = [(name, column) for name, table in TABLES.items() for column in table.columns]
# Shares, ratios, probabilities and ranks; the last five are in the unit of the quantity or metric that their row names.
WITHOUT_UNIT = {
    *("utilization", "utilization_by_records", "tentative_accuracy", "tentative_fidelity", "accuracy"),
    *("output_fidelity", "internal_completeness", "message_overhead", "copies_cpu_share", "checkpoint_cpu_share"),
    *("relative_latency", "p_value", "priority", "effect", "statistic"),
    *("measured", "predicted", "low", "high", "candidate_median", "baseline_median", "before", "after"),
}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (0.012345, "0.0123"),
        (0.0000883456, "0.0000883"),
        (0.00000099999, "1e-06"),
        (1.0e-6, "0.000001"),
        (-9.9999e-5, "-0.0001"),
        (999.4, "999"),
        (999.5, "1,000"),
        (999.99, "1,000"),
        (-999.7, "-1,000"),
        (1234.5, "1,234"),
        (1e6, "1,000,000"),
        (float("nan"), "nan"),
    ],
)
def test_a_figure_has_three_digits_and_never_an_exponent_for_a_thousand(value, text):
    assert significant(value) == text


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (0.36182, 5, "0.36182"),
        (1234.56, 5, "1,234.6"),
        (99999.6, 5, "100,000"),
        (0.00001234, 4, "0.00001234"),
        (float("inf"), 5, "inf"),
    ],
)
def test_a_figure_has_as_many_digits_as_asked_for(value, digits, text):
    assert significant(value, digits) == text


@pytest.mark.parametrize(
    ("figures", "told"),
    [
        ((0.36182, 0.36291, 0.36338), ["0.362", "0.363", "0.363"]),
        ((0.36281, 0.36291, 0.36338), ["0.3628", "0.3629", "0.3634"]),
        ((0.5, 0.5, 0.5), ["0.5", "0.5", "0.5"]),
        ((1 / 3, 1 / 3 + 1e-12), ["0.333333333", "0.333333333"]),
        ((2.0,), ["2"]),
    ],
    ids=["limits may look the same", "more digits", "equal", "as good as equal", "alone"],
)
def test_a_figure_is_told_apart_from_what_it_is_held_against(figures, told):
    assert told_apart(*figures) == told


def test_a_share_is_a_percentage_and_a_change_has_its_sign():
    assert [percent(share) for share in (0.34216, 1.0, 0.00012345)] == ["34.2 %", "100 %", "0.0123 %"]
    assert [signed(change) for change in (0.12345, -1234.5, 0.0)] == ["+0.123", "-1,234", "+0"]


def test_what_is_too_precise_is_found():
    text = "U 0.8125, 1,234.5 records, 12.34% at 14:13:20.123 with 4.2.0 on 127.0.1.15 in q-0.12345"
    assert too_precise(text) == ["0.8125", "1,234.5", "12.34"]
    assert too_precise("U 0.812, 1,234 records, 12.3 % and 0.00123 of 3,993,600, 1e-05") == []


@pytest.mark.parametrize("value", [12345.6789, 12.3456789, 0.000123456, -0.98765, 100.0])
def test_every_real_number_has_three_digits_on_page_and_in_report_and_keeps_all_behind_them(value):
    for name, column in COLUMNS:
        if column.kind == REAL:
            shown = cell(column, value)
            assert too_precise(shown.text) == [], f"{name}.{column.name}"
            assert float(shown.exact) == value


def test_whole_numbers_with_a_unit_are_grouped_and_those_that_name_something_are_not():
    for name, column in COLUMNS:
        if column.kind == WHOLE:
            text = cell(column, 1_790_000_000_123_456_789).text
            told = {MOMENT: "2026-09-21 14:13:20.123", "": "1790000000123456789"}
            assert text == told.get(column.unit, "1,790,000,000,123,456,789"), f"{name}.{column.name}"


def test_every_head_has_the_unit_of_its_column():
    for name, column in COLUMNS:
        text = head(name, column.name).text
        unit = "(UTC)" if column.unit == MOMENT else f"[{column.unit}]" if column.unit else column.label[-1]
        assert text.endswith(unit), f"{name}.{column.name}"


def lacks_its_unit(column: Column) -> bool:
    """Whether a column has none, or the wrong one, for what it holds."""
    if column.kind == REAL:
        return (column.unit == "") != (column.name in WITHOUT_UNIT)
    return column.kind == WHOLE and column.name.endswith("bytes") and column.unit != "bytes"


def test_no_column_lacks_its_unit():
    assert [f"{name}.{column.name}" for name, column in COLUMNS if lacks_its_unit(column)] == []
    assert {column.name for _, column in COLUMNS if column.kind == REAL} >= WITHOUT_UNIT


def test_the_summary_for_a_terminal_has_no_figure_of_more_digits(good_run: Run) -> None:
    assert too_precise(summary(good_run)) == []


def test_nor_has_the_report(good_run: Run) -> None:
    page = re.sub(r"<style.*?</style>|<svg.*?</svg>|<pre.*?</pre>", "", good_run.report.read_text(), flags=re.DOTALL)
    assert too_precise(unescape(re.sub(r"<[^>]*>", " ", page))) == []


def test_nor_has_any_check(good_run: Run) -> None:
    verdicts = good_run.table("verdicts")
    texts = verdicts[["observed", "expected", "detail"]].fillna("").agg(" ".join, axis=1)
    assert set(verdicts["check"][[bool(too_precise(text)) for text in texts]]) == set()


def test_nor_has_a_change_from_run_to_run():
    metric = side_by_side.METRICS["utilization"]
    found = side_by_side._compared(metric, 0.81234, 0.71987, first=False)
    assert found.text is not None
    assert too_precise(found.text) == []


def test_what_was_not_measured_is_a_dash():
    column = TABLES["checkpoints"].by_name["wal_s"]
    assert {cell(column, value).text for value in (None, pd.NA, float("nan"))} == {"\N{EN DASH}"}
