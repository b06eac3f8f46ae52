"""Results as messages, made column by column: a result by itself costs many times as much."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Packed: TypeAlias = tuple[int, int, str, str]  # start_ms, end_ms, key, value

BATCH = "batch"
PRINTABLE = ord(" "), ord("~")


class ResultColumns(NamedTuple):
    """Results in the form of `workloads.results`, (results,) each: two of int64, and two of texts.

    value   JSON, mostly an object
    """

    start_ms: pa.Array
    end_ms: pa.Array
    key: pa.Array
    value: pa.Array


def of_rows(rows: Iterable[Packed]) -> ResultColumns:
    """The columns of results that are there one by one."""
    columns = list(zip(*rows, strict=True)) or [()] * len(ResultColumns._fields)
    kinds = pa.int64(), pa.int64(), pa.string(), pa.string()
    return ResultColumns(*(pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)))


def messages(results: ResultColumns, batches: pa.Array | None = None) -> tuple[list[str], list[str]]:
    """Key and value of each result as a message; `batches`: of tentative results the batch of each."""
    start = as_text(results.start_ms)
    pieces: list[str | pa.Array] = ['{"start_ms":', start, ',"end_ms":', as_text(results.end_ms)]
    pieces += [',"key":"', escaped(results.key), '"']
    if batches is not None:
        pieces += [f',"{BATCH}":', as_text(batches)]
    pieces += [',"value":', results.value, "}"]
    return joined(start, "|", results.key).to_pylist(), joined(*pieces).to_pylist()


def joined(*pieces: str | pa.Array) -> pa.Array:
    """The texts of these columns one after the other, with the same text in each row where there is no column."""
    return pc.binary_join_element_wise(*(pa.scalar(each) if isinstance(each, str) else each for each in pieces), "")


def as_text(numbers: pa.Array | npt.NDArray[np.int64]) -> pa.Array:
    """Whole numbers as texts."""
    return pc.cast(pa.array(numbers), pa.string())


def escaped(texts: pa.Array) -> pa.Array:
    """What stands between the quotes of a JSON string that is one of these texts, as `json.dumps` writes it."""
    if not _is_printable(texts):
        return pa.array([json.dumps(each)[1:-1] for each in texts.to_pylist()], pa.string())
    return pc.replace_substring(pc.replace_substring(texts, "\\", "\\\\"), '"', '\\"')


def _is_printable(texts: pa.Array) -> bool:
    """Whether all bytes of the texts are printable ASCII. What a slice leaves out does not count."""
    _, offsets, content = texts.buffers()
    if content is None or not len(texts):
        return True
    begin, end = np.frombuffer(offsets, np.int32)[[texts.offset, texts.offset + len(texts)]]
    found = np.frombuffer(content, np.uint8)[begin:end]
    return not ((found < PRINTABLE[0]) | (found > PRINTABLE[1])).any()
