"""Verdicts by pandas are those of Great Expectations, word for word."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from reproductions.judging import RULES, judge
from reproductions.reproduction import Computed, ReproductionCheck, holds
from results.checks import rules
from results.checks.rules import Rule, between, in_set, pairs_equal, present
from tests.unit.reproductions.verdicts import NOTHING
from tests.unit.results.judging import judged

TABLE = pd.DataFrame(
    {
        "value": [0.5, -1.0, 2.0, np.nan],
        "whole": [1, 2, 3, 4],
        "flag": [True, False, True, True],
        "text": ["a", "b", None, "a"],
        "other": ["a", "c", None, None],
    }
)
RULES_TRIED = [
    between("value", 0, 1),
    between("value", None, 2),
    between("value", -1, None),
    between("whole", 1, 3, share=0.75),
    between("whole", 1, 3, share=0.8),
    in_set("flag", True),
    in_set("flag", True, False),
    in_set("whole", 1, 2),
    in_set("text", "a"),
    present("value"),
    present("text"),
    present("whole"),
    pairs_equal("text", "text"),
    pairs_equal("text", "other"),
]


def by_great_expectations(rule: Rule, folder) -> tuple[object, object]:
    asked = rules.TableCheck("it", "it", lambda e: TABLE, lambda e: [rule], str, str)
    row = judged(asked, Computed("it", TABLE), folder)
    return row["verdict"], row["detail"]


@pytest.mark.extended
@pytest.mark.parametrize("rule", RULES_TRIED, ids=lambda rule: f"{rule.expectation} {rule.arguments}")
def test_both_judges_say_the_same(rule: Rule, tmp_path) -> None:
    """`holds` would ask for values as well; here each rule is alone."""
    about = {"name": "it", "table": "it", "observed": str, "expected": str, "plant": NOTHING}
    asked = ReproductionCheck(subject=lambda evidence: TABLE, rules=lambda evidence: [rule], **about)
    row = judge(asked, Computed("it", TABLE))
    assert (row["verdict"], row["detail"]) == by_great_expectations(rule, tmp_path)


def test_every_rule_is_tried() -> None:
    assert {rule.expectation for rule in RULES_TRIED} == set(RULES)
    broken = [rule for rule in RULES_TRIED if RULES[rule.expectation](TABLE, **rule.arguments)]
    assert {rule.expectation for rule in broken} == set(RULES)
    assert len(broken) < len(RULES_TRIED)


@pytest.mark.parametrize(
    ("table", "detail"),
    [
        (None, "no run of it"),
        (pd.DataFrame({"value": []}), "no run of it"),
        # in the words of pandas, of which 2 and 3 choose others
        (pd.DataFrame({"value": ["high", "low"]}), r".* between .*\bstr\b.* and .*\bint\b.*"),
    ],
    ids=["no table", "no rows", "no numbers"],
)
def test_what_cannot_be_judged_is_unknown_with_the_reason(table: pd.DataFrame | None, detail: str) -> None:
    row = judge(
        holds("it", lambda rows: rows, [between("value", 0, 1)], str, "0 to 1", NOTHING), Computed("it", table, detail)
    )
    assert row["verdict"] == "unknown"
    assert re.fullmatch(detail, row["detail"])


@pytest.mark.parametrize(
    ("take", "told"),
    [
        (lambda rows: rows["share"].to_frame(), "the table lacks column share"),
        (lambda rows: rows[["value", "share"]], "the table lacks a column: ['share'] not in index"),
        (
            lambda rows: pd.DataFrame({"value": [row.share for row in rows.itertuples()]}),
            "the table lacks column share",
        ),
        (lambda rows: rows.share.to_frame(), "the table lacks column share"),
    ],
    ids=["one", "several", "of a row", "as an attribute"],
)
def test_a_stored_table_that_lacks_a_column_is_unknown_with_its_name(
    take: Callable[..., pd.DataFrame], told: str
) -> None:
    check = holds("it", take, [between("value", -1, 2)], str, "-1 to 2", NOTHING)
    row = judge(check, Computed("it", TABLE, is_stored=True))
    assert (row["verdict"], row["detail"]) == ("unknown", told)
    with pytest.raises((KeyError, AttributeError)):  # of a table that was just computed, the name is a typing error
        judge(check, Computed("it", TABLE))


@pytest.mark.parametrize(
    "take",
    [
        lambda rows: rows.rename(columns={"value": "share"}),
        lambda rows: rows.set_index("whole").loc[9],
        lambda rows: pd.DataFrame({"value": [{}["value"]]}),
    ],
    ids=["a column that the check removed", "a row", "a key of a dictionary"],
)
def test_a_key_that_is_no_missing_column_is_an_error_of_the_check(take: Callable[..., pd.DataFrame]) -> None:
    check = holds("it", take, [between("value", -1, 2)], str, "-1 to 2", NOTHING)
    with pytest.raises(KeyError):
        judge(check, Computed("it", TABLE, is_stored=True))


def test_an_attribute_that_is_no_column_is_an_error_of_the_check() -> None:
    check = holds("it", lambda rows: None.share, [between("value", -1, 2)], str, "-1 to 2", NOTHING)
    with pytest.raises(AttributeError):
        judge(check, Computed("it", TABLE))


def test_missing_values_break_a_rule_about_them() -> None:
    check = holds("it", lambda rows: rows, [between("value", -1, 2)], str, "-1 to 2", NOTHING)
    row = judge(check, Computed("it", TABLE))
    assert (row["verdict"], row["detail"]) == (
        "fail",
        "value: 1 of 4 values missing",
    )
