"""The result of one poll: consecutive messages of one partition, whose events are decoded by column.

Nothing is passed over in silence: a gap between offsets, or a message that is no event of the workload, ends the run
with a line that names topic, partition and offset.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.json as pj
from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME
from numpy.typing import NDArray

from experiments.errors import EnvironmentFailure
from workloads.json_records import opening
from workloads.schedule import NS_PER_MS
from workloads.topics import message_place

Integers: TypeAlias = NDArray[np.int64]
Span: TypeAlias = tuple[Integers, pa.RecordBatch]

OWN = ("position", "at_ns")  # what place and time of a message tell of its event
NEWLINE = b"\n"


class Received(Protocol):
    """A message that was read without an error: librdkafka's type allows for messages that lack all of this."""

    def offset(self) -> int:
        """Its place in the partition of the topic."""

    def timestamp(self) -> tuple[int, int]:
        """The kind of its time, and the time [ms]."""

    def value(self) -> bytes | None:
        """What it says; None of a message that says that a key is gone."""


@dataclass(frozen=True)
class Place:
    """A partition of a topic, of as many partitions.

    kinds   of the events that it may have, as the sources of them are named
    """

    topic: str
    partition: int
    partitions: int
    kinds: tuple[str, ...]

    def position(self, offsets: Integers) -> Integers:
        """Where events at these offsets are in the whole stream."""
        return offsets * self.partitions + self.partition

    def unusable(self, offset: int, what: str) -> EnvironmentFailure:
        """Why the input can't be used from this offset on."""
        where = message_place(self.topic, self.partition, offset)
        return EnvironmentFailure(f"{where}: {what}", "start again with input that only the generator has written")


class Poll(ABC):
    """Messages in a row. `start` is the offset of the first event in them, `stop` the one after the last."""

    def __init__(self, place: Place, start: int, stop: int) -> None:
        self.place, self.start, self.stop = place, start, stop

    @abstractmethod
    def events(self, kind: str, schema: pa.Schema, start: int, stop: int) -> pa.RecordBatch | None:
        """The events of a kind, in these columns, from offset `start` to before `stop`; None without any.

        Raises `EnvironmentFailure` for a message that has no such events.
        """

    @abstractmethod
    def reached_ns(self, stop: int) -> int:
        """The time of the last event before offset `stop` [ns], of whatever kind it is."""

    def check_offsets(self, first: int, messages: Sequence[Received]) -> None:
        """Raises `EnvironmentFailure` unless messages have offsets in a row from this one on."""
        found = [each.offset() for each in messages]
        wanted = list(range(first, first + len(found)))
        if found != wanted:
            missing, there = next(each for each in zip(wanted, found, strict=True) if each[0] != each[1])
            raise self.place.unusable(missing, f"no message has this offset: the next one that came has {there}")


class JsonPoll(Poll):
    """Each message is an event, as a JSON object."""

    def __init__(self, place: Place, start: int, messages: Sequence[Received]) -> None:
        """Raises `EnvironmentFailure` for an offset that is missing, and for a message that is no event."""
        super().__init__(place, start, start + len(messages))
        self.check_offsets(start, messages)
        times = [each.timestamp() for each in messages]
        self._due_ms = np.array([time_ms for _, time_ms in times], np.int64)
        self._values = [each.value() or b"" for each in messages]
        self._check_messages([kind for kind, _ in times])
        self._decoded: dict[str, Span] = {}

    def events(self, kind: str, schema: pa.Schema, start: int, stop: int) -> pa.RecordBatch | None:
        if kind not in self._decoded:
            self._decoded[kind] = self._decode(kind, schema)
        offsets, found = self._decoded[kind]
        first, end = np.searchsorted(offsets, (start, stop))
        return found.slice(first, end - first) if end > first else None

    def reached_ns(self, stop: int) -> int:
        return int(self._due_ms[stop - 1 - self.start]) * NS_PER_MS

    def _decode(self, kind: str, schema: pa.Schema) -> Span:
        beginning = _opening(kind)
        found = [row for row, value in enumerate(self._values) if value.startswith(beginning)]
        values, rows = [self._values[row] for row in found], np.array(found, np.int64)
        offsets = rows + self.start
        fields = pa.schema([field for field in schema if field.name not in OWN] or [("kind", pa.string())])
        read = _read(values, fields)
        if isinstance(read, str):
            raise self._first_unusable(values, offsets, fields, read)
        own = dict(zip(OWN, (self.place.position(offsets), self._due_ms[rows] * NS_PER_MS), strict=True))
        arrays = [pa.array(own[name]) if name in own else read[name] for name in schema.names]
        return offsets, pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _first_unusable(
        self, values: list[bytes], offsets: Integers, fields: pa.Schema, whole: str
    ) -> EnvironmentFailure:
        for value, offset in zip(values, offsets.tolist(), strict=True):
            if isinstance(why := _read([value], fields), str):
                return self.place.unusable(offset, why)
        return self.place.unusable(int(offsets[0]), f"from here to offset {offsets[-1]}: {whole}")

    def _check_messages(self, kinds_of_time: list[int]) -> None:
        known = tuple(_opening(kind) for kind in self.place.kinds)
        for offset, value in enumerate(self._values, self.start):
            if not value.startswith(known):
                begins = " or ".join(each.decode() for each in known)
                raise self.place.unusable(offset, f"no event of this workload: it does not begin with {begins}")
        if self._due_ms.min() < 0:
            raise self.place.unusable(self.start + int(np.argmin(self._due_ms)), "a message without a time")
        if TIMESTAMP_LOG_APPEND_TIME in kinds_of_time:
            why = "its time is when it came to the broker, not when it was due: the topic's message.timestamp.type"
            offset = self.start + kinds_of_time.index(TIMESTAMP_LOG_APPEND_TIME)
            raise self.place.unusable(offset, f"{why} has to be CreateTime")


def _opening(kind: str) -> bytes:
    """How every message begins that is an event for this source."""
    return opening(kind.removesuffix("s")).encode()


def _read(values: list[bytes], fields: pa.Schema) -> pa.RecordBatch | str:
    """The fields of each value, which is a JSON object; or why there is one that is none."""
    if not values:
        return pa.RecordBatch.from_pylist([], fields)
    text = NEWLINE.join(values)
    if text.count(NEWLINE) != len(values) - 1:
        return "no event: it has a line end in it"
    options = pj.ParseOptions(explicit_schema=fields, unexpected_field_behavior="ignore")
    try:
        table = pj.read_json(
            pa.BufferReader(text), pj.ReadOptions(use_threads=False, block_size=len(text) + 1), options
        )
    except pa.ArrowInvalid as error:
        return f"no event: {error}"
    if table.num_rows != len(values):
        return f"{table.num_rows} events in {len(values)} messages"
    for name in fields.names:
        if table[name].null_count:
            return f"no event: it has no {name}"
    return pa.RecordBatch.from_arrays([column.combine_chunks() for column in table.columns], schema=table.schema)
