"""A segment of an output log: what an operator did between two commits, as bytes.

The store seals each object as a whole (`testbed.core.seal`), which is the checksum of all entries in it. So a segment
is there whole or not at all.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from experiments.errors import AftershockError
from testbed.core.seal import Piece
from testbed.operators.parts import ENTRIES

# magic; life, that of the segment before, number, entries before it; position, event time, windows, results; length
SEGMENT = struct.Struct("<HxxIIQQqqQQQ")
MAGIC = 0xCEC1
NO_LIFE = 2**32 - 1  # the life of the segment before the first


class DamagedSegment(AftershockError):
    """A segment does not contain what the log wrote."""


@dataclass(frozen=True)
class Block:
    """One step of the operator, or several.

    position       how many records the operator had read after the step
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
        """How many rows the operator had emitted before the first step of the block."""
        return self.results - (self.rows.num_rows if self.rows is not None else 0)

    @property
    def nbytes(self) -> int:
        """How many bytes its entries and rows have."""
        return int(self.entries.nbytes) + (int(self.rows.nbytes) if self.rows is not None else 0)

    def rows_after(self, number: int) -> pa.RecordBatch | None:
        """The rows with higher numbers than this one; None if there is none."""
        fresh = self.results - max(number, self.results_before)
        return self.rows.slice(self.rows.num_rows - fresh) if self.rows is not None and fresh > 0 else None


def merged(blocks: Sequence[Block]) -> Block:
    """All steps as one."""
    rows = [each.rows for each in blocks if each.rows is not None]
    entries = pa.concat_batches([each.entries for each in blocks])
    return replace(blocks[-1], entries=entries, rows=pa.concat_batches(rows) if rows else None)


@dataclass(frozen=True)
class Segment:
    """An object of the log.

    life      which run of the operator wrote it: 0, then one more after each recovery
    before    the life of the segment with the number before; `NO_LIFE` if there is none
    begins    how many entries the log had before it
    """

    life: int
    before: int
    number: int
    begins: int
    block: Block

    @property
    def ends(self) -> int:
        """How many entries the log had up to its end."""
        entries: int = self.block.entries.num_rows
        return self.begins + entries

    def continues(self, before: Segment) -> bool:
        """Whether it begins where the other one ends, by entries and by rows, and ends at no earlier position."""
        joined = self.begins == before.ends and self.block.results_before == before.block.results
        return joined and self.block.position >= before.block.position

    def pieces(self) -> Iterable[Piece]:
        """The bytes of the object in pieces, one after the other, as `decode_segment` reads them."""
        block = self.block
        entries, rows = block.entries.serialize(), block.rows.serialize() if block.rows is not None else b""
        numbers = block.position, block.watermark_ns, block.open_windows, block.results
        yield SEGMENT.pack(MAGIC, self.life, self.before, self.number, self.begins, *numbers, len(entries))
        yield entries
        yield rows


def decode_segment(data: bytes, schema: pa.Schema) -> Segment:
    """The segment of these bytes; `schema` is that of what the operator emits. Raises `DamagedSegment`."""
    try:
        magic, life, before, number, begins, *numbers, length = SEGMENT.unpack_from(data)
        if magic != MAGIC:
            raise DamagedSegment(f"no segment begins with {magic:#06x}")
        body = memoryview(data)[SEGMENT.size :]
        entries = pa.ipc.read_record_batch(pa.py_buffer(body[:length]), ENTRIES)
        rows = pa.ipc.read_record_batch(pa.py_buffer(body[length:]), schema) if len(body) > length else None
        position, watermark_ns, open_windows, results = numbers
        block = Block(position, watermark_ns, open_windows, results, entries, rows)
        return Segment(life, before, number, begins, block)
    except (struct.error, pa.ArrowException, ValueError, OSError, EOFError) as error:
        raise DamagedSegment(f"a segment can't be read: {error}") from error
