"""Whatever bytes come, what reads them refuses them with its own error, or gives what somebody could have sent."""

import json
import pickle
from contextlib import suppress
from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_jobs.dataflow.control import ToCoordinator, ToPartition, decode_message, encode_message
from spark_jobs.dataflow.frames import CHECKSUM, HEADER, CorruptFrame, FrameReader, decode_log, encode, log_parts
from spark_jobs.dataflow.runtime import messages
from spark_jobs.dataflow.runtime.entrance import Greeting
from spark_jobs.dataflow.runtime.messages import Broken, Count, Drain, Failed, Hello, Kept, Peers, Status, Stop
from spark_jobs.dataflow.runtime.stillness import Counts
from spark_jobs.dataflow.runtime.wire import BlockReader, WireError, block
from spark_jobs.dataflow.shapes import UnknownMessage
from spark_jobs.dataflow.store import MemoryStore, UnreadableObject
from tests.unit.spark_jobs.dataflow.hostile import TIMES, disfigured, mutated, randoms
from tests.unit.spark_jobs.dataflow.small_job import HERE
from tests.unit.spark_jobs.dataflow.test_frames import FRAMES, MESSAGES, SCHEMAS

OF_SLOTS = [
    Hello((HERE, 1), 2, 3),
    Peers(4, ((HERE, 1), (HERE, 2)), 1),
    Broken(1, 2),
    Stop(),
    Drain(),
    Count(3),
    Failed("why"),
    Status(1, {0: {"records_in": 5}}, {0: 7}, (3,), (Kept(0, 1, 0.5, 100, True),), 12, 1.0, 0.1, 0.1, Counts(1, 2, 3)),
]
READERS = [
    (messages.decode, messages.encode, [messages.encode(each) for each in OF_SLOTS]),
    (decode_message, encode_message, [encode_message(each) for each in MESSAGES]),
]
NAMES = ["of slots", "of partitions"]


def refused_or_same_again(decode, encode, data):
    """Whether it was refused; what was taken survives its way like any other message."""
    try:
        message = decode(data)
    except UnknownMessage:
        return True
    assert decode(encode(message)) == message
    return False


@pytest.mark.parametrize(("decode", "encode", "good"), READERS, ids=NAMES)
@pytest.mark.parametrize("change", [mutated, disfigured])
def test_a_message_that_was_changed_is_refused_or_is_a_message(decode, encode, good, change):
    refused = [refused_or_same_again(decode, encode, change(r, r.choice(good))) for r in randoms(3000)]
    assert sum(refused) > len(refused) / 2


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=8,
)


@pytest.mark.parametrize(("decode", "encode", "good"), READERS, ids=NAMES)
@given(data=st.data())
@settings(max_examples=300 * TIMES)
def test_values_of_any_kind_in_any_field_are_refused_or_make_a_message(decode, encode, good, data):
    name, given_fields = json.loads(data.draw(st.sampled_from(good)))
    for field in given_fields:
        if data.draw(st.booleans()):
            given_fields[field] = data.draw(JSON)
    refused_or_same_again(decode, encode, json.dumps([name, given_fields]).encode())


@pytest.mark.parametrize(
    "data",
    [
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'["Broken",{"epoch":' + b"9" * 5000 + b',"slot":0}]',
        '["Go",{"epoch":1}]'.encode("utf-16"),
        '["Count",{"number":1}]'.encode("utf-16"),
    ],
    ids=["lists", "objects", "digits", "another encoding", "another encoding, too"],
)
@pytest.mark.parametrize("decode", [messages.decode, decode_message])
def test_what_would_break_a_parser_is_refused(decode, data):
    with pytest.raises(UnknownMessage):
        decode(data)


@pytest.mark.parametrize("change", [{"new": 1}, {"epoch": True}, {"epoch": 1.0}, {"epoch": 2**63}, {"epoch": None}])
def test_a_field_of_another_type_or_none_of_the_message_is_refused(change):
    with pytest.raises(UnknownMessage):
        messages.decode(json.dumps(["Broken", {"epoch": 1, "slot": 2} | change]).encode())


def test_every_message_is_tried():
    assert {type(each) for each in OF_SLOTS} == set(messages.SlotMessage.__args__)
    assert {type(each) for each in MESSAGES} == {*ToCoordinator.__args__, *ToPartition.__args__}


def test_blocks_that_were_changed_are_read_or_refused():
    stream = b"".join(block(number, bytes(3 + number)) for number in range(-1, 9))
    for random in randoms(3000):
        reader, data = BlockReader(), mutated(random, stream)
        try:
            found = [each for at in range(0, len(data), 7) for each in reader.feed(data[at : at + 7])]
        except WireError:
            continue
        assert sum(len(content) for _, content in found) <= len(data)


def resealed(data):
    """The bytes of a frame with the checksum that they should have."""
    if len(data) < HEADER.size + CHECKSUM.size:
        return data
    head, body = data[: HEADER.size], data[HEADER.size + CHECKSUM.size :]
    return head + CHECKSUM.pack(crc32(body, crc32(head))) + body


@pytest.mark.parametrize("seal", [bytes, resealed], ids=["checksum differs", "checksum fits"])
def test_frames_that_were_changed_are_read_or_corrupt(seal):
    good, refused = [encode(each) for each in FRAMES], 0
    for random in randoms(3000):
        reader, data = FrameReader(SCHEMAS), seal(mutated(random, random.choice(good)))
        try:
            reader.feed(data)
        except CorruptFrame:
            refused += 1
    assert refused


def test_logs_that_were_changed_are_read_or_corrupt():
    good = b"".join(bytes(memoryview(piece)) for piece in log_parts(FRAMES))
    for random in randoms(3000):
        with suppress(CorruptFrame):
            decode_log(mutated(random, good), SCHEMAS)


def test_no_greeting_but_the_right_one_is_understood():
    greeting, token = Greeting(b"AS-TEST\n", "II"), bytes(range(32))
    good = greeting.of(token, 1, 2)
    for random in randoms(3000):
        data = mutated(random, good)[: greeting.size].ljust(greeting.size, b"\0")
        assert (greeting.numbers(token, data) is None) == (data[:40] != good[:40])


def test_nothing_of_a_stored_object_is_used_that_was_changed():
    store = MemoryStore()
    store.put("count.0/state-1-1", [pickle.dumps({"count": 1}), b"more" * 10])
    good = store.objects["count.0/state-1-1"]
    for random in randoms(3000):
        data = mutated(random, good)
        if data != good:
            store.objects["count.0/state-1-1"] = data
            with pytest.raises(UnreadableObject):
                store.get("count.0/state-1-1")
