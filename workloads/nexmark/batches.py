"""Events as Arrow batches, many of them in one Kafka message, which saves the cost per message.

A message has the events of N consecutive offsets of its partition. Offsets count events, as if each event were a
message of its own. A message is one Arrow stream after the other, each with the events of one kind, and with the kind
in its schema; `offset` says where each event is in the partition, and `at_ns` when it was due. Message k begins with
offset k N, so that a reader finds any offset.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa

from experiments.workloads.catalogue import NexmarkSpec
from workloads.json_records import values
from workloads.nexmark.stream import CYCLE, EventStream, events, events_of
from workloads.schedule import NS_PER_MS, Integers, Schedule

KIND, OFFSET, DUE = b"kind", "offset", "at_ns"
LEFT_OUT = ("position", "date_time")  # what offset and due time tell
KINDS = ("persons", "auctions", "bids")
UNREADABLE = (pa.ArrowException, OSError, UnicodeDecodeError)


class Batches:
    """The messages of a topic, each with the events at `records` offsets of its partition.

    length   of all partitions together: the events in the messages with the same number
    """

    def __init__(self, spec: NexmarkSpec, schedule: Schedule, records: int) -> None:
        self._spec, self._partitions, self.length = spec, schedule.partitions, records * schedule.partitions
        self._streams = [(0, self._stream(schedule))]  # each from a position on

    def follow(self, schedule: Schedule, position: int) -> None:
        """From this position on, events are due by another schedule."""
        self._streams.append((position, self._stream(schedule)))

    def messages(self, number: int) -> list[bytes]:
        """The messages with this number, one for each partition."""
        start, stop = number * self.length, (number + 1) * self.length
        until = [first for first, _ in self._streams[1:]] + [stop]
        spans = [(max(first, start), min(end, stop)) for (first, _), end in zip(self._streams, until, strict=True)]
        found = [
            events(stream, *span) for (_, stream), span in zip(self._streams, spans, strict=True) if span[0] < span[1]
        ]
        by_kind = {kind: pa.concat_batches([getattr(each, kind) for each in found]) for kind in KINDS}
        return [message(by_kind, self._partitions, partition) for partition in range(self._partitions)]

    def _stream(self, schedule: Schedule) -> EventStream:
        hot = (self._spec.hot_auctions, self._spec.hot_bidders, self._spec.hot_sellers)
        return EventStream(self._spec.stream_seed, schedule, *hot, open_at_most_ms=self._spec.window_ms)


def message(kinds: dict[str, pa.RecordBatch], partitions: int, partition: int) -> bytes:
    """What goes to this partition of events with their positions."""
    out = pa.BufferOutputStream()
    for kind, batch in kinds.items():
        positions = batch["position"].to_numpy()
        mine = np.flatnonzero(positions % partitions == partition)
        found = _columns(batch.take(pa.array(mine)), positions[mine] // partitions, kind)
        with pa.ipc.new_stream(out, found.schema) as stream:
            stream.write_batch(found)
    return out.getvalue().to_pybytes()


def _columns(batch: pa.RecordBatch, offsets: Integers, kind: str) -> pa.RecordBatch:
    columns = {OFFSET: pa.array(offsets), DUE: pa.array(batch["date_time"].to_numpy() * NS_PER_MS)}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if name not in LEFT_OUT:
            columns[name] = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    return pa.RecordBatch.from_pydict(columns).replace_schema_metadata({KIND: kind.encode()})


@cache
def schema_of(kind: str) -> pa.Schema:
    """The columns of the events of this kind in a message."""
    made = events_of(EventStream(), kind, 0, CYCLE)
    return _columns(made, made["position"].to_numpy(), kind).schema


def read(value: bytes, start: int, stop: int) -> dict[str, pa.RecordBatch] | str:
    """The events of a message by their kind; or why it is no batch of the events at offsets `start` to before `stop`.

    Each of these offsets must be there once, and those of a kind in order. Every event must have a value in each column
    of `schema_of` its kind. Columns in another order, and others beside them, do no harm: the result has none of that.
    """
    found, reader = dict[str, pa.RecordBatch](), pa.BufferReader(value)
    try:
        while reader.tell() < len(value):
            stream = pa.ipc.open_stream(reader)
            kind = (stream.schema.metadata or {}).get(KIND, b"").decode()
            found[kind] = _whole(stream)
    except UNREADABLE as error:
        return f"no Arrow batch: {error}"
    if set(found) != set(KINDS):
        return f"batches of {sorted(found)}, not of {sorted(KINDS)}"
    for kind in KINDS:
        whole = _in_columns(found[kind], kind)
        if isinstance(whole, str):
            return whole
        found[kind] = whole
    return _misplaced(found, start, stop) or found


def as_json(found: dict[str, pa.RecordBatch]) -> tuple[Integers, Integers, list[bytes]]:
    """The events of a message as if each were a message of JSON: offsets, due times [ms] and values, by offset."""
    offsets, due_ns = (np.concatenate([batch[name].to_numpy() for batch in found.values()]) for name in (OFFSET, DUE))
    order = offsets.argsort()
    texts = values({kind.removesuffix("s"): _as_generated(batch) for kind, batch in found.items()})
    return offsets[order], due_ns[order] // NS_PER_MS, texts


def _as_generated(batch: pa.RecordBatch) -> pa.RecordBatch:
    own = {"position": batch[OFFSET], "date_time": pa.array(batch[DUE].to_numpy() // NS_PER_MS)}
    others = {name: batch[name] for name in batch.schema.names if name not in (OFFSET, DUE)}
    return pa.RecordBatch.from_pydict(own | others)


def _in_columns(batch: pa.RecordBatch, kind: str) -> pa.RecordBatch | str:
    """The events in the columns of their kind; or why they do not have these."""
    schema = schema_of(kind)
    if not batch.schema.equals(schema):  # one comparison, and one below: a look at each column takes ten times as long
        names = batch.schema.names
        for field in schema:
            if names.count(field.name) != 1:
                return f"a batch with another schema: {kind} has {names.count(field.name)} columns {field.name}"
            if (other := batch[field.name].type) != field.type:
                return f"a batch with another schema: {field.name} of {kind} is {other}, not {field.type}"
        batch = pa.RecordBatch.from_arrays([batch[name] for name in schema.names], schema=schema)
    if batch.drop_null().num_rows < batch.num_rows:
        name = next(name for name in schema.names if batch[name].null_count)
        return f"a batch of {kind} without a value for {name}"
    return batch


def _whole(stream: pa.RecordBatchReader) -> pa.RecordBatch:
    """Everything in a stream; the usual one has one batch, which costs no copy."""
    batches = list(stream)
    if len(batches) == 1:
        return batches[0]
    return pa.concat_batches([*batches, pa.RecordBatch.from_pylist([], stream.schema)])


def _misplaced(found: dict[str, pa.RecordBatch], start: int, stop: int) -> str | None:
    there, events = np.zeros(stop - start, bool), 0
    for kind, batch in found.items():
        offsets = batch[OFFSET].to_numpy()
        if (offsets[1:] <= offsets[:-1]).any():
            return f"the offsets of {kind} are not in order"
        events += len(offsets)
        if len(offsets) and start <= offsets[0] and offsets[-1] < stop:
            there[offsets - start] = True
    if events != len(there) or not there.all():
        return f"its events are not those of offsets {start} to {stop - 1}, each once"
    return None
