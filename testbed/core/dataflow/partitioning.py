"""Which of several receivers gets a record: by key, or by a hash of its content.

Both depend on the record alone: not on the batch that it comes in, the host, or the run. So a partition that makes its
output again sends every record where it went before.
"""

from __future__ import annotations

from typing import TypeAlias
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from experiments.errors import BadInput
from testbed.core.dataflow.layout import Channel, Route

Codes: TypeAlias = npt.NDArray[np.int64]
Hashes: TypeAlias = npt.NDArray[np.uint64]
_MIX, _MIX_AGAIN = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)
_HALF, _NONE = np.uint64(32), 0


def targets(column: pa.Array, partitions: int) -> Codes:
    """The partition, (rows,), of each key: the same on every host and in every run.

    Raises `BadInput` for a key that is missing.
    """
    _refuse_missing(column)
    found = _numbers(column)
    if pa.types.is_integer(column.type):
        found = (found * _MIX) >> _HALF
    return found.astype(np.int64) % partitions


def spread(batch: pa.RecordBatch, partitions: int) -> Codes:
    """The partition, (rows,), of each record of a stream without key, by all of its columns.

    Records that differ spread evenly, also where all of them have a key that `targets` gives to one partition. Equal
    records go to one partition.
    """
    found: Hashes = np.zeros(batch.num_rows, np.uint64)
    for column in batch.columns:
        found = (found ^ _numbers(column)) * _MIX
        found = (found ^ (found >> _HALF)) * _MIX_AGAIN
    return (found >> _HALF).astype(np.int64) % partitions


def rows_by_channel(batch: pa.RecordBatch, route: Route) -> list[tuple[Channel, pa.RecordBatch]]:
    """The rows for each channel of a route, in their order; channels without a row are left out.

    Raises `BadInput` for a key that is missing.
    """
    channels = route.channels
    if len(channels) == 1:
        if route.key is not None:
            _refuse_missing(batch.column(route.key))
        return [(channels[0], batch)]
    by_content = route.key is None
    found = spread(batch, len(channels)) if by_content else targets(batch.column(route.key), len(channels))
    if batch.num_rows == 1:
        return [(channels[int(found[0])], batch)]
    order = np.argsort(found, kind="stable")
    counts = np.bincount(found, minlength=len(channels))
    ends = np.cumsum(counts)
    rows = batch.take(pa.array(order))
    return [
        (channel, rows.slice(end - count, count))
        for channel, end, count in zip(channels, ends.tolist(), counts.tolist(), strict=True)
        if count
    ]


def _refuse_missing(keys: pa.Array) -> None:
    if keys.null_count:
        raise BadInput("key", None, "a value in every record")


def _numbers(column: pa.Array) -> Hashes:
    """Whole numbers as they are, one for none, and of other values a hash of what they look like; (rows,)."""
    if pa.types.is_integer(column.type):
        whole = column.fill_null(_NONE) if column.null_count else column
        found: Hashes = whole.to_numpy().astype(np.uint64)
        return found
    if pa.types.is_nested(column.type):
        return _hashes(column)
    encoded = column.dictionary_encode(null_encoding="encode")
    each: Hashes = _hashes(encoded.dictionary)[encoded.indices.to_numpy()]
    return each


def _hashes(values: pa.Array) -> Hashes:
    return np.array([crc32(repr(value).encode()) for value in values.to_pylist()], np.uint64)
