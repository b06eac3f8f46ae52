"""Frames and messages as bytes and back."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.core.checkpoints import OUTSIDE, Checkpoint
from testbed.core.control import (
    Absent,
    Attach,
    Attached,
    Detach,
    Dismiss,
    Failure,
    Go,
    NotStored,
    Passed,
    Promote,
    Published,
    Ready,
    Rejoin,
    Restore,
    Round,
    Stable,
    Stored,
    Trim,
    TurnedTentative,
    Unreadable,
    Waiting,
    decode_message,
    encode_message,
)
from testbed.core.frames import (
    HEADER,
    LONGEST,
    MAGIC,
    OVERHEAD_BYTES,
    CorruptFrame,
    Frame,
    FrameKind,
    FrameReader,
    decode_log,
    encode,
    log_parts,
)

SCHEMA = pa.schema([("key", pa.int64()), ("name", pa.string())])
SCHEMAS = [SCHEMA, SCHEMA]


def data(sequence, rows=3, piggyback=b"clock"):
    batch = pa.record_batch({"key": list(range(rows)), "name": ["x" * sequence] * rows}, schema=SCHEMA)
    return Frame(FrameKind.DATA, 4, 1, sequence, -(2**63), piggyback, batch)


FRAMES = [
    data(1),
    data(2, rows=1),
    Frame(FrameKind.DATA, 4, 0, 3, 77),
    Frame(FrameKind.MARKER, 5, 1, 2, 2**63 - 1, b"round"),
]


@given(st.lists(st.integers(1, 400), max_size=8))
@settings(deadline=None)
def test_frames_survive_whatever_pieces_their_bytes_come_in(cuts):
    stream = b"".join(encode(frame) for frame in FRAMES)
    ends = sorted({min(cut, len(stream)) for cut in cuts} | {len(stream)})
    reader, found, at = FrameReader(SCHEMAS), [], 0
    for end in ends:
        found += reader.feed(stream[at:end])
        at = end
    assert found == FRAMES
    assert reader.feed(encode(FRAMES[0])) == FRAMES[:1], "nothing is left over"


@given(st.data())
@settings(deadline=None)
def test_a_changed_byte_is_never_taken_for_a_frame(draw):
    good = encode(data(1))
    at = draw.draw(st.integers(0, len(good) - 1))
    changed = bytearray(good)
    changed[at] ^= draw.draw(st.integers(1, 255))
    reader = FrameReader(SCHEMAS)
    try:
        assert reader.feed(bytes(changed)) == []
        assert reader.feed(good) == [], "what came before it is still waiting for its end"
    except CorruptFrame:
        pass


def test_a_frame_longer_than_any_is_refused_before_it_is_there():
    header = HEADER.pack(MAGIC, FrameKind.DATA, False, 4, 1, 1, 0, 0, LONGEST)
    with pytest.raises(CorruptFrame, match=f"has {LONGEST + OVERHEAD_BYTES} bytes"):
        FrameReader(SCHEMAS).feed(header + bytes(4))


def test_a_log_that_ends_within_a_frame_is_corrupt():
    log = b"".join(log_parts(FRAMES[:2]))
    assert decode_log(log, SCHEMAS) == FRAMES[:2]
    for cut in (1, len(log) - 5):
        with pytest.raises(CorruptFrame, match="ends within a frame"):
            decode_log(log[:-cut], SCHEMAS)


def test_bytes_of_the_protocol_are_counted_apart():
    plain, carrying = data(1, piggyback=b""), data(1, piggyback=b"clock")
    assert (plain.protocol_bytes(), carrying.protocol_bytes()) == (0, 5)
    assert len(encode(carrying)) - len(encode(plain)) == 5
    marker = FRAMES[3]
    assert marker.protocol_bytes() == len(encode(marker)) == OVERHEAD_BYTES + 5


CHECKPOINT = Checkpoint(3, 7, 2, {1: 5, 12: 0}, {4: 9}, ("a/state-6-2", "a/state-7-2"), "a/log-7-2", {OUTSIDE: 7}, True)
MESSAGES = [
    Restore(2, CHECKPOINT, ("a/log-6-2",), {1: 4, 12: 0}),
    Rejoin(2, 6, (1, 4), (9,)),
    Go(2, 7, ((1, 4), (12, 0))),
    Promote(3),
    Attach(3, 6, (1, 4)),
    Attached(3, ((1, 4),)),
    Detach(3, (1,)),
    Dismiss(2),
    Trim(1, 7),
    Round(2, 9),
    Failure(2, (1, 5)),
    Absent(2, (1, 5)),
    Waiting(2, (1, 5)),
    Stable(2, 7),
    Ready(3, 2),
    Unreadable(3, 2, "a/state-6-2"),
    Stored(2, CHECKPOINT),
    NotStored(3, 2, 8),
    TurnedTentative(3, 2, -4),
    Published(3, 7),
    Passed(3, 2, 8),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda each: type(each).__name__)
def test_every_message_survives_as_bytes(message):
    assert decode_message(encode_message(message)) == message
