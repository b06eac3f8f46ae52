"""Bytes that no process of a run would send."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random


def randoms(count: int) -> Iterator[Random]:
    """A generator of its own for every input, so that one that fails is made again from its number."""
    return (Random(number) for number in range(count))


def mutated(random: Random, data: bytes) -> bytes:
    """The data with up to four changes: bits, bytes, parts cut out or doubled, and what breaks readers put in."""
    changed = bytearray(data)
    for _ in range(random.randint(1, 4)):
        at = random.randint(0, len(changed))
        end = min(at + random.randint(0, 16), len(changed))
        match random.randrange(6):
            case 0:
                del changed[at:end]
            case 1:
                changed[at:at] = changed[at:end]
            case 2:
                changed[at:at] = random.choice(BREAKING)
            case 3:
                changed[at:end] = random.randbytes(end - at)
            case 4:
                changed[at:] = changed[at:][: random.randint(0, 64)]
            case _ if at < len(changed):
                changed[at] ^= 1 << random.randrange(8)
    return bytes(changed)


BREAKING = (
    b"[" * 2000,
    b'{"a":' * 2000,
    b'"\\ud800"',
    b"\\u0000",
    b"9" * 5000,
    b"-1",
    b"1e999",
    b"NaN",
    b"null",
    b"[]",
    b"{}",
    b"\xff\xfe",
    b"\x00" * 8,
    b"\xff" * 8,
    b'"\xc2\xb2"',
)
VALUES = (
    None, True, 0, -1, 10**18, 2**63, 10**400, 0.5, float("inf"), float("nan"), "", "\ud800", "x" * 5000, "../../etc",
    [], [0], {}, {"0": 0}, {"x": {}}, {"-5": {}}, {"99": {"a": 1}}, [["127.0.0.1", 0]],
)  # fmt: skip


def disfigured(random: Random, data: bytes) -> bytes:
    """A message in JSON with a value in it that is another, that is missing, or that is new."""
    name, fields = json.loads(data)
    place = fields
    while nested := [each for each in place.values() if isinstance(each, dict) and each]:
        if random.random() < 0.5:
            break
        place = random.choice(nested)
    key = random.choice([*place, "new"])
    if random.random() < 0.2:
        place.pop(key, None)
    else:
        place[key] = random.choice(VALUES)
    return json.dumps([name, fields]).encode()
