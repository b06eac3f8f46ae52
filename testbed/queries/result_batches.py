"""Results as Arrow batches, many of them in one Kafka message: columns as the sink has them, which saves making texts.

A message is one Arrow stream. What its columns mean depends on the query. `as_messages` of the batch gives the keys and
values that the results would have as JSON messages.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa


def in_batches(results: pa.RecordBatch, most: int) -> Iterator[bytes]:
    """The results as messages, in their order, with at most `most` of them in each."""
    for start in range(0, results.num_rows, most):
        out = pa.BufferOutputStream()
        with pa.ipc.new_stream(out, results.schema) as stream:
            stream.write_batch(results.slice(start, most))
        yield out.getvalue().to_pybytes()


def from_batch(message: bytes) -> pa.RecordBatch:
    """The results of a message. Raises `pa.ArrowException` or `OSError` for anything else."""
    reader = pa.BufferReader(message)
    found = list(pa.ipc.open_stream(reader))
    if len(found) != 1 or reader.tell() < len(message):
        raise pa.ArrowInvalid("not one batch and nothing more")
    return found[0]
