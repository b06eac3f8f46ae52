"""Events as Arrow batches, many of them in one Kafka message: for whoever would otherwise be limited by the messages.

A message has the events of so many offsets in a row of its partition, counted in events as if each were a message of
its own. It is one Arrow stream after the other, each with the events of one kind and the kind in its schema; `offset`
tells where each event is in the partition, and `at_ns` when it was due. Message k begins with offset k times their
number, so that a reader finds any offset.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from experiments.workloads import NexmarkSpec
from workloads.nexmark.stream import EventStream, events
from workloads.schedule import NS_PER_MS, Integers, Schedule

KIND, OFFSET, DUE = b"kind", "offset", "at_ns"
LEFT_OUT = ("position", "date_time")  # what offset and due time tell
KINDS = ("persons", "auctions", "bids")


def batches(spec: NexmarkSpec, schedule: Schedule, records: int) -> Callable[[int], list[bytes]]:
    """The messages with the events at so many offsets of every partition, by their number: one for each partition."""
    hot = (spec.hot_auctions, spec.hot_bidders, spec.hot_sellers)
    stream = EventStream(spec.stream_seed, schedule, *hot, open_at_most_ms=spec.window_ms)
    length = records * schedule.partitions

    def made(number: int) -> list[bytes]:
        found = events(stream, number * length, (number + 1) * length)
        by_kind = {kind: getattr(found, kind) for kind in KINDS}
        return [message(by_kind, schedule, partition) for partition in range(schedule.partitions)]

    return made


def message(kinds: dict[str, pa.RecordBatch], schedule: Schedule, partition: int) -> bytes:
    """What goes to this partition of events with their positions."""
    out = pa.BufferOutputStream()
    for kind, batch in kinds.items():
        positions = batch["position"].to_numpy()
        mine = np.flatnonzero(positions % schedule.partitions == partition)
        found = _columns(batch.take(pa.array(mine)), positions[mine], schedule, kind)
        with pa.ipc.new_stream(out, found.schema) as stream:
            stream.write_batch(found)
    return out.getvalue().to_pybytes()


def _columns(batch: pa.RecordBatch, positions: Integers, schedule: Schedule, kind: str) -> pa.RecordBatch:
    columns = {OFFSET: pa.array(positions // schedule.partitions)}
    columns[DUE] = pa.array(schedule.all_due_ms(positions) * NS_PER_MS)
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if name not in LEFT_OUT:
            columns[name] = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    return pa.RecordBatch.from_pydict(columns).replace_schema_metadata({KIND: kind.encode()})
