"""A damaged table of a run is refused, or what is read of it has the types, the bounds and the words of its schema."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from results.damage import Damaged
from results.tables import reading
from results.tables.columns import FLAG, TEXT, WHOLE
from results.tables.schema import TABLES, WORDS
from tests.fuzz.damaging import Stored, feed_damaged, in_one_line
from tests.fuzz.session import Fuzzer


def tables(stored: Stored) -> list[Path]:
    return list(stored.victim.tables.glob("*.parquet"))


def is_as_its_schema_has_it(stored: Stored, path: Path) -> str:
    """Checked by hand, value by value."""
    run = stored.victim
    try:
        if not run.has(path.stem):
            return "missing"
        found = run.table(path.stem)
        with path.open("rb") as file:
            list(reading.read_pieces(path, file.fileno()))
    except Damaged as damage:
        return in_one_line(damage)
    for field in TABLES[path.stem]:
        odd = [value for value in found[field.name] if not fits(value, field, WORDS.get(path.stem, {}))]
        if odd:
            raise AssertionError(f"{field} of {path.stem} has {odd[0]!r}")
    return "read"


def fits(value: Any, field: pa.Field, words: dict[str, Any]) -> bool:
    if value is None or value is pd.NA:
        return field.nullable
    if field.type == TEXT:
        return isinstance(value, str) and value in list(words.get(field.name, [value])) and len(value) <= 100_000
    if field.type == FLAG:
        return isinstance(value, bool)
    if field.type == WHOLE:
        return type(value) is int and (value >= 0 if field.name.endswith("_ns") else abs(value) <= 2**53)
    return type(value) is float and abs(value) <= 1e18


FUZZERS = [Fuzzer("damaged table", feed_damaged(tables, is_as_its_schema_has_it), weight=0.3)]
