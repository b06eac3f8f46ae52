"""Printed figures beside ours: every difference has its reason, and nothing else has one."""

from __future__ import annotations

import pandas as pd
import pytest

from reproductions.catalogue import CATALOGUE
from reproductions.printed import ROUNDS, UNEXPLAINED, beside_printed, figure_at
from reproductions.reproduction import ReproductionKind
from results.checks.rules import NotEnough
from tests.unit.reproductions.small import SMALL

OF_UTILIZATION = ("fig-04", "fig-10", "fig-11", "fig-13", "fig-14", "fig-16", "systems")
BESIDE_PRINTED = {"incremental/fig-02", *(f"utilization/{name}" for name in OF_UTILIZATION)}
COMPUTED = [id for id, found in CATALOGUE.items() if found.kind is ReproductionKind.COMPUTED and id not in SMALL]


def reasons(table: pd.DataFrame) -> list[str | None]:
    return [why if isinstance(why, str) else None for why in table["why"]]


def test_a_figure_is_equal_rounds_or_needs_a_reason():
    table = pd.DataFrame({"gain": [2.4, 2.36, 2.34, 1.744, 9.0]})
    found = beside_printed(table, "gain", ["2.4", "2.4", "2.4", "1.73", None], {"1.73": "a slip"})
    assert reasons(found) == [None, ROUNDS, UNEXPLAINED, "a slip", None]
    assert found["printed_gain"].tolist()[:4] == [2.4, 2.4, 2.4, 1.73]
    assert pd.isna(found["printed_gain"].iat[4])
    assert list(table.columns) == ["gain"]


def test_the_digits_that_are_printed_count():
    table = pd.DataFrame({"gain": [2.36, 2.36]})
    assert reasons(beside_printed(table, "gain", ["2.4", "2.40"])) == [ROUNDS, UNEXPLAINED]


def test_reasons_of_two_quantities_in_one_row_are_joined_once():
    table = beside_printed(pd.DataFrame({"a": [1.01, 1.01, 1.0], "b": [2.01, 2.2, 2.01]}), "a", ["1.0"] * 3)
    assert reasons(beside_printed(table, "b", ["2.0"] * 3)) == [ROUNDS, f"{ROUNDS}; {UNEXPLAINED}", ROUNDS]


@pytest.mark.parametrize("id", COMPUTED)
def test_every_difference_of_a_table_has_a_reason(id):
    table = CATALOGUE[id].compute(1, lambda done, total: None)
    pairs = [(column, column.removeprefix("printed_")) for column in table if column.startswith("printed_")]
    assert bool(pairs) == (id in BESIDE_PRINTED)
    differs = pd.Series(False, index=table.index)
    for printed, ours in pairs:
        if printed != "printed_queries":  # those must be equal: a check
            differs |= table[printed].notna() & (table[printed] != table[ours])
    why = reasons(table) if pairs else [None] * len(table)
    assert [each is not None for each in why] == differs.tolist()
    assert UNEXPLAINED not in why


def test_a_figure_is_taken_from_its_row_or_there_is_not_enough():
    table = pd.DataFrame({"nodes": [1, 1, 2], "cost": [5.0, 30.0, 5.0], "gain": [0.1, 0.2, 0.3]})
    assert figure_at("gain", nodes=1, cost=30.0)(table) == 0.2
    with pytest.raises(NotEnough, match="nodes = 2, cost = 30"):
        figure_at("gain", nodes=2, cost=30.0)(table)
