"""A table is held against its schema when it is read: what fits comes out in its types, anything else is refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from results.damage import Damaged, Outdated
from results.tables.fit import LARGEST_COUNT, LARGEST_REAL, LONGEST_TEXT
from results.tables.reading import read_arrow, read_head, read_table


class Kind(StrEnum):
    """The words of column `kind`."""

    KILL = "kill"
    PAUSE = "pause"


SCHEMA = pa.schema(
    [
        pa.field("at_ns", pa.int64(), nullable=False),
        pa.field("count", pa.int64()),
        pa.field("share", pa.float64()),
        pa.field("kind", pa.string(), nullable=False),
    ]
)
FITTING = {"at_ns": [1, 2], "count": [-3, None], "share": [0.5, None], "kind": ["kill", "pause"]}
READERS = [read_table, read_arrow, lambda path, *how: read_head(path, 2, *how)]


def stored(folder: Path, **columns: object) -> Path:
    path = folder / "run-1" / "tables" / "faults.parquet"
    path.parent.mkdir(parents=True)
    pq.write_table(pa.table({name: given for name, given in {**FITTING, **columns}.items() if given is not None}), path)
    return path


def rows(path: Path) -> list[dict[str, object]]:
    return read_arrow(path, SCHEMA, {"kind": Kind}).to_pylist()


def test_a_table_that_fits_is_read_as_it_is(tmp_path: Path) -> None:
    assert rows(stored(tmp_path)) == pa.table(FITTING).to_pylist()


def test_numbers_of_other_widths_and_what_is_not_known_come_out_as_the_schema_has_them(tmp_path: Path) -> None:
    path = stored(
        tmp_path,
        at_ns=pa.array([1, 2], pa.int32()),
        count=None,
        share=pa.array([0.5, math.nan], pa.float32()),
        more=["a", "b"],
    )
    found = read_arrow(path, SCHEMA, {"kind": Kind})
    assert found.schema.field("at_ns").type == pa.int64()
    assert found.to_pylist() == [
        {"at_ns": 1, "count": None, "share": 0.5, "kind": "kill", "more": "a"},
        {"at_ns": 2, "count": None, "share": None, "kind": "pause", "more": "b"},
    ]


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("at_ns", ["1", "2"]),
        ("at_ns", [-1, 2]),
        ("at_ns", [1, None]),
        ("at_ns", [1.5, 2.0]),
        ("count", [LARGEST_COUNT + 1, 0]),
        ("count", [True, False]),
        ("share", [math.inf, 0.0]),
        ("share", [-10 * LARGEST_REAL, 0.0]),
        ("share", ["much", "little"]),
        ("kind", [1, 2]),
        ("kind", ["kill", None]),
        ("kind", ["kill", "prune"]),
        ("kind", ["kill", "x" * (LONGEST_TEXT + 1)]),
    ],
)
def test_a_column_that_does_not_fit_is_refused_by_its_name(
    tmp_path: Path, read: Callable[..., object], column: str, values: list[object]
) -> None:
    path = stored(tmp_path, **{column: values})
    read(path)
    with pytest.raises(Damaged, match=rf"table faults of run-1 is damaged: [^\n]*\b{column}\b"):
        read(path, SCHEMA, {"kind": Kind})


@pytest.mark.parametrize("read", READERS)
def test_a_table_that_lacks_a_column_is_one_of_another_version(tmp_path: Path, read: Callable[..., object]) -> None:
    path = stored(tmp_path, at_ns=None)
    with pytest.raises(Outdated, match="at_ns, as one of another version of the code does"):
        read(path, SCHEMA, {"kind": Kind})
