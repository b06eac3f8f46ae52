"""What strangers, disks and connections could give the testbed: it is refused, or is what somebody could send."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from random import Random
from typing import Any
from zlib import crc32

from hypothesis import strategies as st

from testbed.core.control import decode_message, encode_message
from testbed.core.frames import CHECKSUM, HEADER, CorruptFrame, FrameReader, decode_log, encode, log_parts
from testbed.core.shapes import UnknownMessage
from testbed.runtime.network import messages
from testbed.runtime.network.admission import Greeting
from testbed.runtime.network.messages import Broken, Count, Drain, Hello, Kept, Peers, SlotError, SlotStatus, Stop
from testbed.runtime.network.wire import BlockReader, WireError, block
from testbed.runtime.stillness import Counts
from testbed.stores.store import MemoryStore, UnreadableObject
from tests.fuzz.session import Fuzzer, Session
from tests.unit.testbed.core.test_frames import FRAMES, MESSAGES, SCHEMAS
from tests.unit.testbed.runtime.hostile import disfigured, mutated
from tests.unit.testbed.small_job import HERE

OF_SLOTS = (
    Hello((HERE, 1), 2, 3),
    Peers(4, ((HERE, 1), None), (3, 0), 0, (2, 5)),
    Broken(1, 2),
    Stop(),
    Drain({0: 5}),
    Count(3),
    SlotError("why"),
    SlotStatus(
        1, {0: {"records_in": 5}}, {0: 7}, (3,), (Kept(0, 1, 0.5, 100, True),), 12, 1.0, 0.1, 0.1, Counts(1, 2, 3)
    ),
)
GREETING, TOKEN = Greeting(b"AS-TEST\n", "II"), bytes(range(32))
KEY = "count.0/state-1-1"


def feed_bytes(make: Callable[[Random], bytes], read: Callable[[bytes], str]) -> Callable[[Session], None]:
    """A fuzzer of what reads bytes; the reader raises at a wrong answer and returns what a right one was."""

    def feed(session: Session) -> None:
        for random in session.draws():
            data = make(random)
            with session.feeding(data):
                session.outcomes[read(data)] += 1

    return feed


def same_again(decode: Callable[[bytes], Any], encode: Callable[[Any], bytes]) -> Callable[[bytes], str]:
    """Reads a message: one that is taken survives its way like any other."""

    def read(data: bytes) -> str:
        try:
            message = decode(data)
        except UnknownMessage:
            return "refused"
        if decode(encode(message)) != message:
            raise AssertionError(f"{message!r} is another one after its way")
        return "read"

    return read


def of_messages(good: list[bytes]) -> Callable[[Random], bytes]:
    """Messages with other bytes, or with another value in a field."""
    return lambda random: random.choice((mutated, disfigured))(random, random.choice(good))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=8,
)


def feed_values(good: list[bytes], read: Callable[[bytes], str]) -> Callable[[Session], None]:
    """A fuzzer that puts values of any kind in some fields of a message."""

    def changed(data: bytes) -> st.SearchStrategy[bytes]:
        name, fields = json.loads(data)
        if not fields:
            return st.just(data)
        others = st.dictionaries(st.sampled_from(sorted(fields)), JSON, min_size=1, max_size=2)
        others |= st.fixed_dictionaries({}, optional=dict.fromkeys(fields, JSON))
        return others.map(lambda values: json.dumps([name, fields | values]).encode())

    def feed(session: Session) -> None:
        def count(data: bytes) -> None:
            session.outcomes[read(data)] += 1

        session.hypothesis(st.sampled_from(good).flatmap(changed), count)

    return feed


STREAM = b"".join(block(number, bytes(3 + number)) for number in range(-1, 9))


def read_blocks(data: bytes) -> str:
    """In pieces, as they come from a socket: the same blocks as at once."""
    at_once, in_pieces = blocks_in(data, len(data) or 1), blocks_in(data, 7)
    if at_once != in_pieces:
        raise AssertionError(f"{in_pieces!r} in pieces, {at_once!r} at once")
    return "read" if at_once[1] else "refused"


def blocks_in(data: bytes, size: int) -> tuple[list[tuple[int, bytes]], bool]:
    """The blocks until one is refused, and whether none is."""
    reader = BlockReader()
    found: list[tuple[int, bytes]] = []
    try:
        for at in range(0, len(data), size):
            found.extend(reader.feed(data[at : at + size]))
    except WireError:
        return found, False
    return found, True


ENCODED = [encode(each) for each in FRAMES]


def a_frame(random: Random) -> bytes:
    """A changed frame, of which half have the checksum that they should have."""
    data = mutated(random, random.choice(ENCODED))
    if random.random() < 0.5 or len(data) < HEADER.size + CHECKSUM.size:
        return data
    head, body = data[: HEADER.size], data[HEADER.size + CHECKSUM.size :]
    return head + CHECKSUM.pack(crc32(body, crc32(head))) + body


def read_frames(data: bytes) -> str:
    try:
        FrameReader(SCHEMAS).feed(data)
    except CorruptFrame:
        return "corrupt"
    return "read"


LOG = b"".join(bytes(memoryview(piece)) for piece in log_parts(FRAMES))


def read_log(data: bytes) -> str:
    """Its frames have no checksums, since the stored object that it is in has one."""
    try:
        decode_log(data, SCHEMAS)
    except CorruptFrame:
        return "corrupt"
    return "read"


WELCOME = GREETING.of(TOKEN, 1, 2)
BEFORE_NUMBERS = len(WELCOME) - 8


def a_greeting(random: Random) -> bytes:
    return mutated(random, WELCOME)[: GREETING.size].ljust(GREETING.size, b"\0")


def read_greeting(data: bytes) -> str:
    """No greeting is understood but one with the right words and token."""
    is_right = data[:BEFORE_NUMBERS] == WELCOME[:BEFORE_NUMBERS]
    if (GREETING.numbers(TOKEN, data) is None) == is_right:
        raise AssertionError(f"{'not ' if is_right else ''}understood")
    return "understood" if is_right else "refused"


STORE = MemoryStore()
STORE.put(KEY, [pickle.dumps({"count": 1}), b"more" * 10])
WHOLE = STORE.objects[KEY]
CONTENT = bytes(STORE.get(KEY))


def read_object(data: bytes) -> str:
    """Nothing of a stored object is used that was changed."""
    STORE.objects[KEY] = data
    try:
        found = bytes(STORE.get(KEY))
    except UnreadableObject:
        if data == WHOLE:
            raise AssertionError("an object as it was stored is refused") from None
        return "refused"
    if data != WHOLE or found != CONTENT:
        raise AssertionError(f"read as {found!r}")
    return "read"


def an_object(random: Random) -> bytes:
    """Some are as they were stored."""
    return WHOLE if random.random() < 0.1 else mutated(random, WHOLE)


SLOT, SLOT_BYTES = same_again(messages.decode, messages.encode), [messages.encode(each) for each in OF_SLOTS]
PARTITION, PARTITION_BYTES = same_again(decode_message, encode_message), [encode_message(each) for each in MESSAGES]
FUZZERS = [
    Fuzzer("slot message", feed_bytes(of_messages(SLOT_BYTES), SLOT)),
    Fuzzer("slot message's values", feed_values(SLOT_BYTES, SLOT), weight=0.5),
    Fuzzer("partition message", feed_bytes(of_messages(PARTITION_BYTES), PARTITION)),
    Fuzzer("partition msg's values", feed_values(PARTITION_BYTES, PARTITION), weight=0.5),
    Fuzzer("blocks", feed_bytes(lambda random: mutated(random, STREAM), read_blocks)),
    Fuzzer("frame", feed_bytes(a_frame, read_frames)),
    Fuzzer("log of frames", feed_bytes(lambda random: mutated(random, LOG), read_log)),
    Fuzzer("greeting", feed_bytes(a_greeting, read_greeting)),
    Fuzzer("stored object", feed_bytes(an_object, read_object)),
]
