"""What one step of an operator did, as bytes. Blocks, one after the other, make a segment: one object of the log.

The store seals each object as a whole (`testbed.core.seal`), which is the checksum of all entries in it. So a block is
there whole or not at all.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from experiments.errors import AftershockError
from testbed.core.seal import Piece
from testbed.operators.parts import ENTRIES

SEGMENT = struct.Struct("<HxxIIQQ")  # magic, life, the life of the segment before, number, entries before it
BLOCK = struct.Struct("<qqQQII")
MAGIC = 0xCEC1
NO_LIFE = 2**32 - 1  # the life of the segment before the first


class DamagedSegment(AftershockError):
    """A segment does not contain what the log wrote."""


@dataclass(frozen=True)
class Block:
    """One step, or several between which nothing happened to windows.

    position       how many records the operator had taken in after the step
    watermark_ns   its event time then
    open_windows   how many windows were open then: N of the paper
    results        how many rows it had emitted then, since the beginning
    entries        what happened to windows, of schema `ENTRIES`
    rows           what it emitted: one row for each entry that is a result; None if there is none
    """

    position: int
    watermark_ns: int
    open_windows: int
    results: int
    entries: pa.RecordBatch
    rows: pa.RecordBatch | None

    @property
    def results_before(self) -> int:
        return self.results - (self.rows.num_rows if self.rows is not None else 0)


@dataclass(frozen=True)
class Segment:
    """An object of the log.

    life      which run of the operator wrote it: 0, then one more after each recovery
    before    the life of the segment with the number before; `NO_LIFE` if there is none
    entries   how many entries the log had before it
    """

    life: int
    before: int
    number: int
    entries: int
    blocks: tuple[Block, ...]

    @property
    def ends(self) -> int:
        """How many entries the log had up to its end."""
        here: int = sum(each.entries.num_rows for each in self.blocks)
        return self.entries + here

    def pieces(self) -> Iterable[Piece]:
        yield SEGMENT.pack(MAGIC, self.life, self.before, self.number, self.entries)
        for each in self.blocks:
            entries = each.entries.serialize()
            rows = each.rows.serialize() if each.rows is not None else b""
            numbers = each.position, each.watermark_ns, each.open_windows, each.results
            yield BLOCK.pack(*numbers, len(entries), len(rows))
            yield entries
            yield rows


def decode_segment(data: bytes, rows: pa.Schema) -> Segment:
    """The segment of these bytes; `rows` is the schema of what the operator emits. Raises `DamagedSegment`."""
    try:
        magic, life, before, number, entries = SEGMENT.unpack_from(data)
        if magic != MAGIC:
            raise DamagedSegment(f"no segment begins with {magic:#06x}")
        return Segment(life, before, number, entries, tuple(_blocks(memoryview(data)[SEGMENT.size :], rows)))
    except (struct.error, pa.ArrowException, ValueError, OSError, EOFError) as error:
        raise DamagedSegment(f"a segment can't be read: {error}") from error


def _blocks(data: memoryview, schema: pa.Schema) -> Iterable[Block]:
    while data:
        position, watermark_ns, open_windows, results, entries_bytes, rows_bytes = BLOCK.unpack_from(data)
        body, data = data[BLOCK.size :][: entries_bytes + rows_bytes], data[BLOCK.size + entries_bytes + rows_bytes :]
        entries = pa.ipc.read_record_batch(pa.py_buffer(body[:entries_bytes]), ENTRIES)
        rows = pa.ipc.read_record_batch(pa.py_buffer(body[entries_bytes:]), schema) if rows_bytes else None
        yield Block(position, watermark_ns, open_windows, results, entries, rows)
