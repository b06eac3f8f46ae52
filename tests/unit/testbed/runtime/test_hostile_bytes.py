"""Bytes that would break a parser, and fields of other types; tests/fuzz/fuzz_hostile_bytes.py draws many others."""

import json

import pytest

from testbed.core.control import ToCoordinator, ToPartition, decode_message
from testbed.core.shapes import UnknownMessage
from testbed.runtime.network import messages
from tests.fuzz.fuzz_hostile_bytes import OF_SLOTS
from tests.unit.testbed.core.test_frames import MESSAGES


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
