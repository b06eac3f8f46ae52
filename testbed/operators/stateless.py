"""Operators without state."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from experiments.errors import BadInput
from testbed.operators.interface import Operator

Transform = Callable[[pa.RecordBatch], pa.RecordBatch]
Predicate = Callable[[pa.RecordBatch], pa.Array]


class Map(Operator):
    """Each batch through a function; its schema is found by trying the function on an empty batch."""

    def __init__(self, function: Transform, deterministic: bool = True) -> None:
        self._function, self.deterministic = function, deterministic

    def schema(self, *inputs: pa.Schema) -> pa.Schema:
        return _tried(self._function, inputs[0], pa.RecordBatch).schema

    def process(self, port: int, batch: pa.RecordBatch) -> pa.RecordBatch:
        return self._function(batch)


class Filter(Operator):
    """The rows for which a function of the batch is true, (rows,) booleans; null counts as false."""

    def __init__(self, predicate: Predicate, deterministic: bool = True) -> None:
        self._predicate, self.deterministic = predicate, deterministic

    def schema(self, *inputs: pa.Schema) -> pa.Schema:
        found = _tried(self._predicate, inputs[0], pa.Array)
        if found.type != pa.bool_():
            raise BadInput("predicate", str(found.type), "a function that returns an array of booleans")
        return inputs[0]

    def process(self, port: int, batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.filter(self._predicate(batch))


def _tried(function: Callable[[pa.RecordBatch], object], schema: pa.Schema, kind: type) -> pa.RecordBatch | pa.Array:
    """What the function returns for an empty batch."""
    empty = pa.RecordBatch.from_pylist([], schema=schema)
    try:
        found = function(empty)
    except (KeyError, TypeError, ValueError, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise BadInput("function", str(error), f"one that accepts the columns {', '.join(schema.names)}") from error
    if not isinstance(found, kind):
        raise BadInput("function", type(found).__name__, f"one that returns a {kind.__name__}")
    return found
