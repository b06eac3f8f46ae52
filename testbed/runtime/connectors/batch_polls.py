"""The result of one poll if messages are Arrow batches of events (`workloads.nexmark.batches`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from testbed.runtime.connectors.topic_polls import Integers, Place, Poll, Received
from workloads.nexmark.batches import DUE, OFFSET, read


class BatchPoll(Poll):
    """Messages in a row. `start` and `stop` count events: the offset of the first one, and the one after the last."""

    def __init__(self, place: Place, start: int, messages: Sequence[Received], records: int) -> None:
        """Raises `EnvironmentFailure` for a message that is missing, and for one without its `records` whole events.

        start     the offset of the first event
        """
        super().__init__(place, start, start + len(messages) * records)
        self._records, self._found = records, [dict[str, pa.RecordBatch]() for _ in messages]
        first = start // records
        self.check_offsets(first, messages)
        for number, each in enumerate(messages):
            self._found[number] = self._read(first + number, each.value() or b"")
        self._together: dict[str, tuple[Integers, pa.RecordBatch]] = {}

    def events(self, kind: str, schema: pa.Schema, start: int, stop: int) -> pa.RecordBatch | None:
        if kind not in self._together:
            self._together[kind] = self._of_kind(kind, schema)
        offsets, found = self._together[kind]
        first, end = np.searchsorted(offsets, (start, stop))
        return found.slice(first, end - first) if end > first else None

    def reached_ns(self, stop: int) -> int:
        message = self._found[(stop - 1 - self.start) // self._records]
        before = {kind: np.searchsorted(batch[OFFSET].to_numpy(), stop) for kind, batch in message.items()}
        return max(int(message[kind][DUE][end - 1].as_py()) for kind, end in before.items() if end)

    def _of_kind(self, kind: str, schema: pa.Schema) -> tuple[Integers, pa.RecordBatch]:
        columns = [OFFSET, *(name for name in schema.names if name != "position")]
        found = pa.concat_batches([message[kind].select(columns) for message in self._found])
        offsets: Integers = found[OFFSET].to_numpy()
        own = {"position": pa.array(self.place.position(offsets))}
        arrays = [own[name] if name in own else found[name] for name in schema.names]
        return offsets, pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _read(self, number: int, value: bytes) -> dict[str, pa.RecordBatch]:
        """The events of a message by their kind."""
        found = read(value, number * self._records, (number + 1) * self._records)
        if isinstance(found, str):
            raise self.place.unusable(number, found)
        return found
