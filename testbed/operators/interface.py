"""The interface of operators to the runtime."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum

import pyarrow as pa

from experiments.errors import BadInput
from testbed.operators.state import State

START_OF_TIME_NS = -(2**63)
END_OF_TIME_NS = 2**63 - 1


class Operator(ABC):
    """One operator as declared. The runtime gives every partition a deep copy of its own, then calls `open`.

    keys       for each input port the column that its stream is partitioned by, None for a stream that is not
    joins      whether a record of one input is worth nothing without one of the other: the papers' correlated inputs
    windowed   whether it waits for the watermark, which doesn't move behind a cycle
    deterministic   whether the same input in the same order always gives the same output in the same order
    """

    keys: tuple[str | None, ...] = (None,)
    joins: bool = False
    windowed: bool = False
    deterministic: bool = True

    @abstractmethod
    def schema(self, *inputs: pa.Schema) -> pa.Schema:
        """The schema of the output for these inputs, one for each port; raises `BadInput` when they don't fit."""

    @abstractmethod
    def process(self, port: int, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        """Take a batch in; returns what it makes the operator emit."""

    def advance(self, watermark_ns: int) -> pa.RecordBatch | None:
        """No record before this event time will follow; returns what that makes the operator emit."""
        return None

    def open(self) -> None:
        """Make the empty state of a partition."""
        return

    def states(self) -> dict[str, State]:
        """The state by name, after `open`; nothing for an operator without state."""
        return {}


@dataclass(frozen=True)
class Source:
    """Where records come from: `read` by position from something that can be read again.

    output   what is read
    time     its column with the event time, int64 nanoseconds, that never decreases within a partition; None if windows
             are not used
    due      its column by which it can be cut into batches, of the same kind; None if it can't
    then     operators without state that each batch goes through before it is sent (`chaining`)
    """

    output: pa.Schema
    time: str | None = None
    due: str | None = None
    then: tuple[Operator, ...] = ()

    def __post_init__(self) -> None:
        for name, column in (("time", self.time), ("due", self.due)):
            if column is not None:
                require_column(name, self.output, column, pa.int64())

    def process(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """What is sent of a batch that was read."""
        for each in self.then:
            batch = each.process(0, batch)
        return batch


class Delivery(Enum):
    """What a sink promises: every record exactly once, published when it can't be undone any more, or at once."""

    EXACTLY_ONCE = "exactly-once"
    PLAIN = "plain"


@dataclass(frozen=True)
class Sink:
    """Where records leave the dataflow."""

    delivery: Delivery = Delivery.EXACTLY_ONCE


def require_column(field: str, schema: pa.Schema, column: str, kind: pa.DataType | None = None) -> pa.DataType:
    """The type of a column; raises `BadInput` naming `field` if it is missing or of another type than `kind`."""
    if column not in schema.names:
        raise BadInput(field, column, f"one of the columns {', '.join(schema.names)}")
    found = schema.field(column).type
    if kind is not None and found != kind:
        raise BadInput(field, f"{column} of type {found}", f"a column of type {kind}")
    return found
