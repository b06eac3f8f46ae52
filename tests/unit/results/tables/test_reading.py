"""Tables are read within limits: damage, and files that say less than they hold, are refused in one line."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from experiments.errors import EnvironmentFailure
from results.damage import Damaged
from results.tables import reading
from results.tables.reading import BATCH_ROWS, parts, read_head, read_pieces, read_table
from results.tables.schema import TABLES

WHOLE = {"dictionary_pagesize_limit": 2**30}
ROWS = 3 * BATCH_ROWS + 5


def _path(folder: Path) -> Path:
    path = folder / "one" / "tables" / "ledger.parquet"
    path.parent.mkdir(parents=True)
    return path


def _table(rows: int) -> pa.Table:
    classes = pa.array(["useful", "lost", None], pa.string()).take(pa.array([i % 3 for i in range(rows)], pa.int64()))
    return pa.table({"start_ns": pa.array(range(rows), pa.int64()), "class": classes})


def pieces_of(path: Path) -> list[pd.DataFrame]:
    with path.open("rb") as file:
        return list(read_pieces(path, file.fileno()))


def _varint(number: int) -> bytes:
    """A number as Parquet's footer holds it: zigzag, seven bits a byte."""
    number, out = 2 * number, bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def _claim(path: Path, truth: int, claim: int) -> None:
    """Let the footer of a file say that it has another number of rows, wherever it says so."""
    old, new = _varint(truth), _varint(claim)
    assert len(old) == len(new)
    data = path.read_bytes()
    length = int.from_bytes(data[-8:-4], "little")
    footer = data[-8 - length : -8]
    assert footer.count(old) >= 2
    path.write_bytes(data[: -8 - length] + footer.replace(old, new) + data[-8:])


def test_a_table_is_read_as_it_was_written(tmp_path: Path):
    path, table = _path(tmp_path), _table(ROWS)
    pq.write_table(table, path)
    frame = read_table(path)
    assert frame.equals(pd.read_parquet(path, dtype_backend="pyarrow"))
    pieces = pieces_of(path)
    assert [len(piece) for piece in pieces] == [0, BATCH_ROWS, BATCH_ROWS, BATCH_ROWS, 5]
    assert pd.concat(pieces)["class"].tolist() == frame["class"].tolist()
    head, count = read_head(path, 7)
    assert (len(head), count) == (7, ROWS)


def test_a_folder_of_parts_is_one_table(tmp_path: Path):
    path = _path(tmp_path)
    path.mkdir()
    for number in (1, 0):
        pq.write_table(_table(ROWS).slice(number * 4, 4), path / f"part-0000{number}.snappy.parquet")
    (path / "_SUCCESS").touch()
    assert read_table(path)["start_ns"].tolist() == list(range(8))
    head, count = read_head(path, 5)
    assert (head["start_ns"].tolist(), count) == ([0, 1, 2, 3, 4], 8)
    assert len(parts(path)) == 2


def test_an_empty_table_keeps_its_columns(tmp_path: Path):
    path = _path(tmp_path)
    pq.write_table(_table(0), path)
    assert read_table(path).dtypes.astype(str).tolist() == ["int64[pyarrow]", "string[pyarrow]"]
    assert read_head(path, 5)[1] == 0


def test_a_missing_table_is_said_to_be_missing(tmp_path: Path):
    for read in (read_table, lambda path: read_head(path, 1)):
        with pytest.raises(FileNotFoundError):
            read(_path(tmp_path / str(id(read))))


@pytest.mark.parametrize("damage", ["text", "cut", "empty", "folder"])
def test_damage_is_one_line(tmp_path: Path, damage: str):
    path = _path(tmp_path)
    pq.write_table(_table(ROWS), path)
    whole = path.read_bytes()
    path.write_bytes({"text": b"no table", "cut": whole[: len(whole) // 2]}.get(damage, b""))
    if damage == "folder":
        path.unlink()
        path.mkdir()
    told = r"^table ledger of one is damaged: [^\n]+; compute its results again, or remove its run$"
    with pytest.raises(Damaged, match=told):
        read_table(path)


def test_a_table_is_the_file_that_was_checked_whatever_has_its_name_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = _path(tmp_path)
    pq.write_table(_table(3), path)
    checked = reading.open_plain

    def swapped(file: Path) -> int:
        descriptor = checked(file)
        pq.write_table(_table(5), tmp_path / "another.parquet")
        file.unlink()
        file.symlink_to(tmp_path / "another.parquet")
        return descriptor

    monkeypatch.setattr(reading, "open_plain", swapped)
    assert len(read_table(path)) == 3
    monkeypatch.undo()
    with pytest.raises(Damaged, match="it is no regular file"):
        read_table(path)


def test_reading_tables_leaves_no_file_open(tmp_path: Path):
    path = _path(tmp_path)
    pq.write_table(_table(ROWS), path)
    before = len(os.listdir("/proc/self/fd"))
    read_table(path), read_head(path, 1), pieces_of(path)
    path.write_bytes(b"no table")
    with pytest.raises(Damaged):
        read_table(path)
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_text_that_is_no_unicode_is_refused(tmp_path: Path):
    """Otherwise the code that shows it would fail, far from the code that read it."""
    path = _path(tmp_path)
    texts = pa.array([b"useful", b"l\xffst"], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"start_ns": [1, 2], "class": texts}), path)
    for read in (read_table, lambda path: read_head(path, 1), pieces_of):
        with pytest.raises(Damaged, match="damaged"):
            read(path)


@pytest.mark.parametrize("claim", [50_000, 10**6])
def test_a_footer_that_lies_about_its_rows_is_refused(tmp_path: Path, claim: int):
    path = _path(tmp_path)
    pq.write_table(_table(ROWS), path)
    _claim(path, ROWS, claim)
    with pytest.raises(EnvironmentFailure, match="damaged"):
        read_table(path)


def test_more_rows_than_the_limit_are_refused_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = _path(tmp_path)
    pq.write_table(_table(ROWS), path)
    monkeypatch.setattr(reading, "MOST_ROWS", ROWS - 1)
    with pytest.raises(EnvironmentFailure, match="it says that it has 49,157 rows"):
        read_head(path, 1)


@pytest.mark.parametrize("of_type", [pa.string(), pa.large_string()])
def test_a_long_text_that_is_repeated_is_not_written_out(tmp_path: Path, of_type: pa.DataType):
    """Some kilobytes on disk, 160 GB in memory."""
    path = _path(tmp_path)
    codes = pa.array([0] * BATCH_ROWS, pa.int32())
    table = pa.table({"class": pa.DictionaryArray.from_arrays(codes, pa.array(["x" * 10_000_000]))})
    with pq.ParquetWriter(path, table.schema, store_schema=False, compression="zstd", **WHOLE) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({"ARROW:schema": _stored_schema(of_type)})
    assert pq.read_schema(path).field("class").type == of_type
    assert path.stat().st_size < 2**20
    for read in (read_table, lambda path: read_head(path, BATCH_ROWS)):
        with pytest.raises(EnvironmentFailure, match="more than it says"):
            read(path)


def _stored_schema(of_type: pa.DataType) -> bytes:
    return base64.b64encode(pa.schema({"class": of_type}).serialize())


LONG = "x" * 10_000_000
OTHER_TYPES = {
    "string_view": (pa.string_view(), LONG),
    "binary": (pa.binary(), LONG.encode()),
    "large_binary": (pa.large_binary(), LONG.encode()),
    "binary_view": (pa.binary_view(), LONG.encode()),
    "fixed_size_binary": (pa.binary(10_000_000), LONG.encode()),
    "list": (pa.list_(pa.string()), [LONG]),
    "large_list": (pa.large_list(pa.string()), [LONG]),
    "fixed_size_list": (pa.list_(pa.int64(), 1_000_000), [7] * 1_000_000),
    "struct": (pa.struct({"text": pa.string()}), {"text": LONG}),
    "map": (pa.map_(pa.string(), pa.string()), [("key", LONG)]),
    "dictionary": (pa.dictionary(pa.int32(), pa.string()), LONG),
}


@pytest.mark.parametrize("name", OTHER_TYPES)
def test_a_type_whose_values_can_be_long_is_refused_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str):
    """A value of 10 MB, which a few more bytes can repeat a million times."""
    path, (of_type, value) = _path(tmp_path), OTHER_TYPES[name]
    column = pa.array([value]).cast(of_type) if name == "dictionary" else pa.array([value], of_type)
    pq.write_table(pa.table({"start_ns": [1], "class": column}), path, compression="zstd")
    assert pq.read_schema(path).field("class").type == of_type
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", lambda *_: pytest.fail("it was read"))
    for read in (read_table, lambda path: read_head(path, 1), pieces_of):
        with pytest.raises(EnvironmentFailure, match=r"is damaged: column class is of type [^\n]+, which no table has"):
            read(path)


@pytest.mark.parametrize(
    "of_type", [pa.int32(), pa.uint64(), pa.float32(), pa.bool_(), pa.date32(), pa.timestamp("us")]
)
def test_types_of_a_few_bytes_are_read(tmp_path: Path, of_type: pa.DataType):
    path, table = _path(tmp_path), pa.table({"start_ns": pa.nulls(2, of_type)})
    pq.write_table(table, path)
    assert read_table(path).equals(table.to_pandas(types_mapper=pd.ArrowDtype))


def test_every_type_of_the_tables_is_read(tmp_path: Path):
    for name, schema in TABLES.items():
        path = _path(tmp_path / name)
        pq.write_table(schema.empty_table(), path)
        assert list(read_table(path)) == schema.names
