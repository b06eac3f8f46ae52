"""Figures that a paper prints beside ours in a table, why the two differ, and where ours is in the table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

import numpy as np
import pandas as pd

from reproductions.reproduction import half_unit
from results.checks.rules import NotEnough

ROUNDS, UNEXPLAINED = "rounds to it", "not explained"
NOTHING_KNOWN: Mapping[str, str] = MappingProxyType({})


def beside_printed(
    table: pd.DataFrame, quantity: str, printed: Iterable[str | None], known: Mapping[str, str] = NOTHING_KNOWN
) -> pd.DataFrame:
    """The table with `printed_QUANTITY`, and with `why` where it is not our figure.

    `printed` has one text a row, with the digits that the paper gives, or None; `known` has the reason why ours does
    not round to such a text. What `why` says already stays.
    """
    texts = [_text(each) for each in printed]
    earlier = [_text(each) for each in table["why"]] if "why" in table else [None] * len(texts)
    found = [_why(ours, text, known) for ours, text in zip(table[quantity], texts, strict=True)]
    both = ["; ".join(dict.fromkeys(filter(None, pair))) or None for pair in zip(earlier, found, strict=True)]
    numbers = pd.Series([None if text is None else float(text) for text in texts], dtype=float, index=table.index)
    return table.assign(**{f"printed_{quantity}": numbers, "why": both})


def figure_at(quantity: str, **row: object) -> Callable[[pd.DataFrame], float]:
    """Takes a quantity from the first row of a table where the columns named have these values.

    What it returns raises `NotEnough` when there is no such row.
    """

    def take(table: pd.DataFrame) -> float:
        found = table.loc[np.logical_and.reduce([table[column] == value for column, value in row.items()]), quantity]
        if found.empty:
            raise NotEnough(f"no row with {', '.join(f'{column} = {value}' for column, value in row.items())}")
        return float(found.iat[0])

    return take


def _text(value: object) -> str | None:
    """A text, or None for the value that pandas puts where there is no text."""
    return value if isinstance(value, str) else None


def _why(ours: float, printed: str | None, known: Mapping[str, str]) -> str | None:
    if printed is None or ours == float(printed):
        return None
    if abs(ours - float(printed)) <= half_unit(printed) * (1 + 1e-9):
        return ROUNDS
    return known.get(printed, UNEXPLAINED)
