"""No check of a computed reproduction passes where there is nothing to judge: no rows, or values that are missing."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest

from reproductions.catalogue import CATALOGUE
from tests.unit.reproductions.small import SMALL
from tests.unit.reproductions.verdicts import verdicts

ONE_OF_ITS_KIND = [id for id, found in CATALOGUE.items() if found.kind == "C" and id[-1] not in "bcd"]
# their tables have nothing but text and whole numbers
COUNTS_ALONE = ("checkmate/table-1", "checkmate/fig-04", "checkmate/fig-05", "incremental/fig-02")


@cache
def table_of(id: str) -> pd.DataFrame:
    return CATALOGUE[id].compute(SMALL.get(id, 1), lambda done, total: None)


def blank(table: pd.DataFrame) -> pd.DataFrame:
    """Every measured value missing; what says which row is which (text and whole numbers) stays."""
    floats = table.select_dtypes("float").columns
    return table.assign(**dict.fromkeys(floats, np.nan))


@pytest.mark.parametrize("id", ONE_OF_ITS_KIND)
def test_without_rows_every_check_is_unknown(id):
    assert set(verdicts(id, table_of(id).iloc[:0]).values()) == {"unknown"}


@pytest.mark.parametrize("id", [id for id in ONE_OF_ITS_KIND if id not in COUNTS_ALONE])
def test_without_values_no_check_passes(id):
    assert not table_of(id).select_dtypes("float").empty
    assert "pass" not in verdicts(id, blank(table_of(id))).values()
