"""The frames on a channel, and their form as bytes.

A frame is a header, the protocol's piggyback, then the batch as Arrow writes it without its schema, which both ends
know. The checksum covers all of it. In a log a frame has none: the store checks what it gives back.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any
from zlib import crc32

import pyarrow as pa

from experiments.errors import AftershockError

HEADER = struct.Struct("<HB?IIQqII")
CHECKSUM = struct.Struct("<I")
MAGIC = 0xAF5C
LONGEST = 1 << 30  # a million records, which is the most that a message may have, are shorter
OVERHEAD_BYTES = HEADER.size + CHECKSUM.size


class CorruptFrame(AftershockError):
    """The bytes of a frame are not what was sent."""


class FrameKind(IntEnum):
    """Data is numbered, logged and replayed. A marker stands between data for a checkpoint. Control is what a protocol
    sends along with the data and no operator sees, such as a punctuation or a part of a checkpoint. A border ends a
    batch (`by_batch`). A batch that misses input consists of tentative frames: they carry records or end the batch, and
    have no numbers of their own, so that they never count as data."""

    DATA = 1
    MARKER = 2
    CONTROL = 3
    BORDER = 4
    TENTATIVE = 5
    TENTATIVE_BORDER = 6


BORDERS = frozenset({FrameKind.BORDER, FrameKind.TENTATIVE_BORDER})
RECORDS = frozenset({FrameKind.DATA, FrameKind.TENTATIVE})
TENTATIVE_KINDS = frozenset({FrameKind.TENTATIVE, FrameKind.TENTATIVE_BORDER})


@dataclass(frozen=True, slots=True)
class Frame:
    """One message on a channel, or a range of messages with one record each.

    sequence       of data: 1, 2, ... on its channel, of a range the last one's; of others: that of the last data before
    watermark_ns   no record that follows on this channel is before this event time
    piggyback      what the protocol adds to data, to each message of a range; all that a marker or control carries
    batch          the records; None if there are none
    is_range       whether each of the records is a message, and has a number (`core.ranges`)
    """

    kind: FrameKind
    epoch: int
    channel: int
    sequence: int
    watermark_ns: int
    piggyback: bytes = b""
    batch: pa.RecordBatch | None = None
    is_range: bool = False

    @property
    def rows(self) -> int:
        """How many records it carries."""
        return self.batch.num_rows if self.batch is not None else 0

    @property
    def messages(self) -> int:
        """How many messages it is."""
        return self.rows if self.is_range else 1

    def protocol_bytes(self) -> int:
        """The bytes that are there for the protocol's sake if each message travels by itself: markers and control
        whole, of data the piggyback."""
        return self.messages * len(self.piggyback) + (0 if self.kind in RECORDS else OVERHEAD_BYTES)


def data_bytes(frame: Frame) -> int:
    """The bytes of data as it is sent, without the piggyback; of a range those of the frame, not of its messages."""
    return OVERHEAD_BYTES + (pa.ipc.get_record_batch_size(frame.batch) if frame.batch is not None else 0)


def encode(frame: Frame) -> bytes:
    """The bytes of a frame, as `FrameReader` reads them."""
    return b"".join(parts(frame))


def parts(frame: Frame) -> tuple[bytes, bytes, bytes, pa.Buffer | bytes]:
    """The bytes of a frame in pieces, one after the other, so that the payload is copied no more than once."""
    header, payload = _header_and_payload(frame)
    checksum = crc32(payload, crc32(frame.piggyback, crc32(header)))
    return header, CHECKSUM.pack(checksum), frame.piggyback, payload


def log_parts(frames: Iterable[Frame]) -> Iterator[bytes | pa.Buffer]:
    """The bytes of a log, one piece after the other. Nothing here is summed up: the store seals the whole."""
    for frame in frames:
        header, payload = _header_and_payload(frame)
        yield header + frame.piggyback
        if payload:
            yield payload


def _header_and_payload(frame: Frame) -> tuple[bytes, pa.Buffer | bytes]:
    payload = frame.batch.serialize() if frame.batch is not None else b""
    numbers = (MAGIC, frame.kind, frame.is_range, frame.epoch, frame.channel, frame.sequence, frame.watermark_ns)
    return HEADER.pack(*numbers, len(frame.piggyback), len(payload)), payload


class FrameReader:
    """Frames out of a stream of bytes that arrives in any pieces."""

    def __init__(self, schemas: Sequence[pa.Schema]) -> None:
        """`schemas`: of each channel, by its number."""
        self._schemas = schemas
        self._pieces: list[bytes] = []
        self._missing = OVERHEAD_BYTES  # how much the pieces lack until there is something to read

    def feed(self, data: bytes) -> list[Frame]:
        """The frames that are complete by now; raises `CorruptFrame` for anything but a frame."""
        self._pieces.append(data)
        self._missing -= len(data)
        if self._missing > 0:
            return []
        found, at, data = [], 0, b"".join(self._pieces) if len(self._pieces) > 1 else data
        end = OVERHEAD_BYTES
        while len(data) - at >= OVERHEAD_BYTES:
            fields = HEADER.unpack_from(data, at)
            end = at + OVERHEAD_BYTES + fields[7] + fields[8]
            if fields[0] != MAGIC or end - at > LONGEST:
                raise CorruptFrame(f"no frame begins with {fields[0]:#06x} and has {end - at} bytes")
            if end > len(data):
                break
            found.append(self._frame(fields, memoryview(data)[at:end]))
            at, end = end, end + OVERHEAD_BYTES
        self._pieces, self._missing = [data[at:]] if at < len(data) else [], end - len(data)
        return found

    def _frame(self, fields: tuple[Any, ...], data: memoryview) -> Frame:
        body = data[OVERHEAD_BYTES:]
        (checksum,) = CHECKSUM.unpack_from(data, HEADER.size)
        if crc32(body, crc32(data[: HEADER.size])) != checksum or fields[4] >= len(self._schemas):
            raise CorruptFrame(f"the frame {fields[5]} of channel {fields[4]} doesn't have its checksum")
        return _frame(fields, body, self._schemas)


def decode_log(data: bytes, schemas: Sequence[pa.Schema]) -> list[Frame]:
    """The frames of a whole log; raises `CorruptFrame` if it ends within one."""
    found, at, view = [], 0, memoryview(data)
    while at < len(data):
        fields = HEADER.unpack_from(data, at) if len(data) - at >= HEADER.size else None
        end = at + HEADER.size + fields[7] + fields[8] if fields else at
        if fields is None or end > len(data) or fields[0] != MAGIC:
            raise CorruptFrame(f"the log ends within a frame, {len(data) - at} bytes past the last one")
        found.append(_frame(fields, view[at + HEADER.size : end], schemas))
        at = end
    return found


def _frame(fields: tuple[Any, ...], body: memoryview, schemas: Sequence[pa.Schema]) -> Frame:
    """A frame from its header and what follows; raises `CorruptFrame` if they do not fit each other."""
    _, kind, is_range, epoch, channel, sequence, watermark_ns, piggyback_bytes, payload_bytes = fields
    piggyback, payload = bytes(body[:piggyback_bytes]), body[piggyback_bytes:]
    try:
        batch = pa.ipc.read_record_batch(pa.py_buffer(payload), schemas[channel]) if payload_bytes else None
        frame = Frame(FrameKind(kind), epoch, channel, sequence, watermark_ns, piggyback, batch, is_range)
    except (pa.ArrowException, ValueError, IndexError, OSError, EOFError) as error:
        raise CorruptFrame(f"the frame {sequence} of channel {channel} can't be read: {error}") from error
    if is_range and not 0 < frame.rows <= sequence:
        raise CorruptFrame(f"the frame {sequence} of channel {channel} is a range of {frame.rows} messages")
    return frame
