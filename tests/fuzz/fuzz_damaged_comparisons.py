"""With any content of its files, a recorded comparison is shown or said to be damaged, and no list of them fails."""

from __future__ import annotations

import os
from pathlib import Path

from experiments.errors import BadInput
from results.damage import Damaged
from results.regression import records, wording
from results.tables.comparison import COMPARISON_SCHEMAS
from tests.fuzz.damaging import REGRESSION, Stored, feed_damaged, in_one_line, written
from tests.fuzz.session import Fuzzer


def files(stored: Stored) -> list[Path]:
    return list(stored.comparison.iterdir())


def is_told(_: Stored, path: Path) -> str:
    found, damaged = records.read_all()
    if len(found) + len(damaged) != (1 if os.path.lexists(path.with_name(records.DOCUMENT)) else 0):
        raise AssertionError(f"{len(found)} comparisons are read and {len(damaged)} damaged")
    records.set_aside()
    written([each.to_json() for each in found])
    try:
        rows = records.Regression(REGRESSION, path.parent).rows("regression")
        if not all(set(row) >= set(COMPARISON_SCHEMAS["regression"].names) for row in rows):
            raise AssertionError(f"a column is missing: {rows!r}")
        written([wording.effect(row) for row in rows])
        for each in found:
            wording.report(each, rows, [{} for _ in each.experiments])
        records.recorded(REGRESSION).rows("change_points")
    except (Damaged, BadInput) as error:
        return in_one_line(error)
    return "told"


FUZZERS = [Fuzzer("damaged comparison", feed_damaged(files, is_told), weight=0.3)]
