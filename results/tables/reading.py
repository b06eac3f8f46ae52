"""Reads Parquet tables that may be damaged or hostile, within a memory limit.

A table is one file, or a folder of parts as Spark writes it. The size that a file states for itself is checked against
the limits before the file is read, and against the data while it is read. `read_table` and `read_head` also check the
table by its schema, if they are given one, so that later code need not check it again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from experiments.documents.plain_files import RefusedFile, open_plain
from results.damage import Damaged, Outdated
from results.tables.fit import CellMisfit, Missing, Words, fit

MOST_ROWS = 20_000_000
MOST_BYTES = 2**31
BATCH_ROWS = 16_384
REMEDY = "compute its results again, or remove its run"
NO_WORDS: Words = {}


def parts(path: Path) -> list[Path]:
    """The files of a table; raises `FileNotFoundError` if there is none."""
    if not os.path.lexists(path):
        raise FileNotFoundError(path)
    return sorted(path.glob("part-*.parquet")) if path.is_dir() else [path]


def read_table(path: Path, schema: pa.Schema | None = None, words: Words = NO_WORDS) -> pd.DataFrame:
    """The whole table, each column backed by Arrow; by its schema and the words of its columns if these are given.

    Raises `FileNotFoundError`; `Damaged` for a table that is damaged, too large, not as it says, or does not fit;
    `Outdated` if that is so because it lacks a column.
    """
    return _frame(read_arrow(path, schema, words))


def read_arrow(path: Path, schema: pa.Schema | None = None, words: Words = NO_WORDS) -> pa.Table:
    """As `read_table`, for who wants the rows as Python has them."""
    table = _joined(path, [_part(path, file) for file in _files(path)]).combine_chunks()
    return _fitted(path, table, schema, words)


def read_head(
    path: Path, rows: int, schema: pa.Schema | None = None, words: Words = NO_WORDS
) -> tuple[pd.DataFrame, int]:
    """The first rows of a table, and how many it has; raises as `read_table` does."""
    heads, count = [], 0
    for file in _files(path):
        with _opened(path, file) as opened:
            count += opened.metadata.num_rows
            heads.append(_table(opened, list(islice(_batches(path, opened, rows), 1))))
    return _frame(_fitted(path, _joined(path, heads).slice(0, rows), schema, words)), count


def read_pieces(path: Path, descriptor: int) -> Iterator[pd.DataFrame]:
    """The table of one open file a piece at a time, of which the first has no rows.

    `path` is only what an error names. Raises `Damaged` as `read_table` does.
    """
    with _read(path, descriptor) as opened:
        yield _frame(_table(opened, []))
        for batch in _batches(path, opened):
            yield _frame(pa.Table.from_batches([batch]))


def _files(path: Path) -> list[Path]:
    files = parts(path)
    if not files:
        raise _damaged(path, "a folder without a part")
    return files


def _part(path: Path, file: Path) -> pa.Table:
    with _opened(path, file) as opened:
        return _table(opened, list(_batches(path, opened)))


@contextmanager
def _opened(path: Path, file: Path) -> Iterator[pq.ParquetFile]:
    """A file of a table, open, so that what was checked is what is read; a link is none, since it can lead anywhere."""
    try:
        descriptor = open_plain(file)
    except RefusedFile:
        raise _damaged(path, "it is no regular file") from None
    except OSError as error:
        raise _damaged(path, str(error)) from None
    try:
        with _read(path, descriptor) as opened:
            yield opened
    finally:
        os.close(descriptor)


@contextmanager
def _read(path: Path, descriptor: int) -> Iterator[pq.ParquetFile]:
    """The content of an open file, even if its name now belongs to another file."""
    try:
        if os.fstat(descriptor).st_size > MOST_BYTES:
            raise _damaged(path, f"it has more than {MOST_BYTES:,} bytes")
        same = f"/proc/self/fd/{descriptor}"
        texts = _texts(path, pq.read_schema(same))
        # a text is read as its dictionary: a file of a few bytes can repeat a long one a million times
        with pq.ParquetFile(same, read_dictionary=texts) as opened:
            _check(path, opened.metadata)
            yield opened
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _damaged(path, str(error).partition("\n")[0]) from None


def _texts(path: Path, schema: pa.Schema) -> list[str]:
    """The columns of texts. In our tables, the values of all other columns have a few bytes each."""
    texts = [field.name for field in schema if pa.types.is_string(field.type) or pa.types.is_large_string(field.type)]
    for field in schema:
        if field.name not in texts and not (pa.types.is_primitive(field.type) or pa.types.is_null(field.type)):
            raise _damaged(path, f"column {field.name} is of type {str(field.type)[:80]}, which no table has")
    return texts


def _check(path: Path, said: pq.FileMetaData) -> None:
    groups = [said.row_group(i) for i in range(said.num_row_groups)]
    rows, size = sum(group.num_rows for group in groups), sum(group.total_byte_size for group in groups)
    if not 0 <= said.num_rows <= MOST_ROWS or size > MOST_BYTES:
        raise _damaged(path, f"it says that it has {said.num_rows:,} rows in {size:,} bytes")
    if rows != said.num_rows:
        raise _damaged(path, f"it says that it has {said.num_rows:,} rows, and lists {rows:,}")


def _batches(path: Path, opened: pq.ParquetFile, rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
    """Every batch in plain types; each is checked before its texts are written out."""
    taken_rows = taken_bytes = 0
    in_threads = opened.metadata.num_rows > BATCH_ROWS  # which take longer to start than a small table to read
    for batch in opened.iter_batches(min(rows, BATCH_ROWS), use_threads=in_threads):
        batch.validate(full=True)  # checks above all that texts are UTF-8, which was not checked before
        taken_rows += batch.num_rows
        taken_bytes += sum(_most_bytes(column) for column in batch.columns)
        if taken_rows > opened.metadata.num_rows or taken_bytes > MOST_BYTES:
            raise _damaged(path, f"it holds more than it says, or more than {MOST_BYTES:,} bytes")
        yield pa.RecordBatch.from_arrays([_plain(column) for column in batch.columns], batch.schema.names)
    if taken_rows != opened.metadata.num_rows:
        raise _damaged(path, f"it says that it has {opened.metadata.num_rows:,} rows, and has {taken_rows:,}")


def _most_bytes(column: pa.Array) -> int:
    """What a column takes, at most: of texts, as many as the longest of them takes."""
    if not pa.types.is_dictionary(column.type):
        return column.nbytes
    return len(column) * (pc.max(pc.binary_length(column.dictionary)).as_py() or 0)


def _plain(column: pa.Array) -> pa.Array:
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _table(opened: pq.ParquetFile, batches: list[pa.RecordBatch]) -> pa.Table:
    if batches:
        return pa.Table.from_batches(batches)
    empty = opened.schema_arrow.empty_table()
    return pa.table([_plain(column.combine_chunks()) for column in empty.columns], names=empty.column_names)


def _frame(table: pa.Table) -> pd.DataFrame:
    return table.to_pandas(types_mapper=pd.ArrowDtype, use_threads=table.num_rows > BATCH_ROWS)


def _joined(path: Path, parts: list[pa.Table]) -> pa.Table:
    try:
        return pa.concat_tables(parts)
    except pa.ArrowInvalid:
        raise _damaged(path, "its parts have different columns") from None


def _fitted(path: Path, table: pa.Table, schema: pa.Schema | None, words: Words) -> pa.Table:
    if schema is None:
        return table
    try:
        return fit(table, schema, words)
    except Missing as lack:
        why = f"{lack}, as one of another version of the code does"
        raise Outdated(_owner(path), f"table {path.stem}", why, REMEDY) from None
    except CellMisfit as misfit:
        raise _damaged(path, str(misfit)) from None


def _damaged(path: Path, why: str) -> Damaged:
    return Damaged(_owner(path), f"table {path.stem}", why, REMEDY)


def _owner(path: Path) -> str:
    """The run or the comparison that a table is of: tables of a run are in a folder of their own."""
    return path.parent.parent.name if path.parent.name == "tables" else path.parent.name
