"""Recorded input: lines of a text file, or the rows of a Parquet file with a column `value`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from experiments.errors import BadInput
from workloads.schedule import Schedule

PARQUET = ".parquet"
DUE, DUE_MS, NUMBER = b"{due}", b"{due_ms}", b"{number}"


@dataclass(frozen=True)
class Recorded:
    """Values and, where there are some, keys, in the order in which they are sent; text may have placeholders."""

    values: Sequence[bytes]
    keys: Sequence[bytes | None] | None = None
    text: bool = False

    def values_by(self, schedule: Schedule) -> Callable[[int, int], list[bytes]]:
        """Values by position, from the beginning again when there are no more, with their placeholders filled in."""
        count = len(self.values)
        if not self._has_placeholders:
            return lambda start, stop: [self.values[position % count] for position in range(start, stop)]
        return lambda start, stop: [
            dated(self.values[position % count], position, schedule) for position in range(start, stop)
        ]

    @cached_property
    def _has_placeholders(self) -> bool:
        return self.text and any(mark in value for value in self.values for mark in (DUE, DUE_MS, NUMBER))

    def keys_by_position(self) -> Callable[[int, int], list[bytes | None]] | None:
        """Keys by position, from the beginning again as the values are; None where the records have none."""
        keys = self.keys
        return (lambda start, stop: [keys[position % len(keys)] for position in range(start, stop)]) if keys else None


def read(path: Path, field: str) -> Recorded:
    """The records of a file; raises `BadInput` about `field` for one that cannot be read or holds none."""
    try:
        found = _of_table(pq.read_table(path)) if path.suffix == PARQUET else _of_text(path.read_bytes())
    except (OSError, KeyError, pa.ArrowException) as error:
        reason = " ".join(str(error).split())
        raise BadInput(field, str(path), f"a file of records that can be read ({reason})") from None
    if not found.values:
        raise BadInput(field, str(path), "a file with one record or more")
    return found


def write(path: Path, values: list[bytes], keys: list[bytes | None]) -> None:
    """Write a file that `read` gives back."""
    pq.write_table(pa.table({"value": pa.array(values, pa.binary()), "key": pa.array(keys, pa.binary())}), path)


def _of_text(lines: bytes) -> Recorded:
    return Recorded([line.removesuffix(b"\r") for line in lines.split(b"\n") if line], text=True)


def _of_table(table: pa.Table) -> Recorded:
    keys = table["key"].cast(pa.binary()).to_pylist() if "key" in table.column_names else None
    return Recorded(table["value"].cast(pa.binary()).to_pylist(), keys)


def dated(value: bytes, position: int, schedule: Schedule) -> bytes:
    """A value with `{due}` (ISO 8601, UTC), `{due_ms}` (since the epoch) and `{number}` filled in.

    A file that is sent again and again would otherwise repeat its times, which a watermark takes to be late.
    """
    due_ms = schedule.due_ms(position)
    due = datetime.fromtimestamp(due_ms / 1000, UTC).isoformat(timespec="milliseconds")
    value = value.replace(DUE, due.encode()).replace(DUE_MS, str(due_ms).encode())
    return value.replace(NUMBER, str(position).encode())
