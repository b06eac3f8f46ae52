"""Events that are functions of their position: as batches that are due, and as Kafka values."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from workloads.json_records import PLACE, values
from workloads.schedule import NS_PER_MS, Integers, Schedule

Draw: TypeAlias = Callable[[Integers], dict[str, Integers]]
"""The fields of the events at these positions, (events,) each, in the order of their columns."""


def events(schema: pa.Schema, draw: Draw, schedule: Schedule, start: int, stop: int) -> pa.RecordBatch:
    """The events at positions `start` to before `stop`.

    `schema`: the position, when the event is due [ns], a whole millisecond as in Kafka, and what is drawn.
    """
    positions = np.arange(start, stop, dtype=np.int64)
    columns = (positions, schedule.all_due_ms(positions) * NS_PER_MS, *draw(positions).values())
    return pa.RecordBatch.from_arrays([pa.array(column) for column in columns], schema=schema)


def records(kind: str, draw: Draw) -> Callable[[int, int], list[bytes]]:
    """The values of events by position; when an event is due is its Kafka timestamp."""

    def made(start: int, stop: int) -> list[bytes]:
        positions = np.arange(start, stop, dtype=np.int64)
        return values({kind: pa.RecordBatch.from_pydict({PLACE: positions, **draw(positions)})})

    return made
