"""Bytes that are nearly an example: what a slip of the hand, a cut transfer or a hostile user makes of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random

MOST_CHANGES = 4
WORD = re.compile(rb"[A-Za-z0-9_.-]+")
# What readers of documents and messages are known to stumble over.
STUMBLING_BLOCKS: tuple[bytes, ...] = (
    b"\x00", b"\xff", b"\xed\xa0\x80", b"\\ud800", b"\\u0000", b"\xe2\x80\xae", b"\xef\xbb\xbf", b"\xc2\xb2",
    b"\x1b[31m", b"\\e[31m", b"\n", b"\r", b"\t", b"\xf0\x9f\x98\x80", b"a" * 20_000,
    b"NaN", b".nan", b"-.inf", b"Infinity", b"-0", b"1e999", b"1e-320", b"9" * 40, b"9" * 5000, b"0x" + b"f" * 5000,
    b"1:59:59", b"2026-02-30", b"~", b"null", b"true", b"yes", b"=", b"<<", b"<<: *x", b"&x ", b"*x", b"&x [*x]",
    b"!!bool x", b"!!int y", b"!!binary x", b"!!python/object:os.system ", b"!x ", b"%YAML 9.9\n", b"--- ", b"...",
    b"[" * 500, b"{a: " * 500, b"[", b"]", b"{", b"}", b":", b",", b'"', b"'", b"#", b"|", b">", b"? ", b"- ",
)  # fmt: skip


def mutated(random: Random, examples: Sequence[bytes]) -> bytes:
    """One of the examples with up to `MOST_CHANGES` changes."""
    data = random.choice(examples)
    for _ in range(random.choice((1, 1, 1, 2, MOST_CHANGES))):
        data = random.choice(CHANGES)(random, data, examples)
    return data


def _flip(random: Random, data: bytes, _: Sequence[bytes]) -> bytes:
    if not data:
        return data
    at = random.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << random.randrange(8)]) + data[at + 1 :]


def _insert(random: Random, data: bytes, _: Sequence[bytes]) -> bytes:
    at = random.randint(0, len(data))
    return data[:at] + random.choice(STUMBLING_BLOCKS) + data[at:]


def _replace(random: Random, data: bytes, _: Sequence[bytes]) -> bytes:
    """A word or number becomes another thing: what follows a blank up to the next end of a value."""
    starts = [at + 1 for at in range(len(data)) if data[at] in b' ["']
    if not starts:
        return random.choice(STUMBLING_BLOCKS)
    start = end = random.choice(starts)
    while end < len(data) and data[end] not in b' \n,]}":':
        end += 1
    return data[:start] + random.choice(STUMBLING_BLOCKS) + data[end:]


def _renumber(random: Random, data: bytes, _: Sequence[bytes]) -> bytes:
    digits = [at for at in range(len(data)) if data[at : at + 1].isdigit()]
    if not digits:
        return data
    at = random.choice(digits)
    return data[:at] + random.choice((b"0", b"1", b"7", b"-1", b"9.5")) + data[at + 1 :]


def _other_word(random: Random, data: bytes, examples: Sequence[bytes]) -> bytes:
    """A word becomes one of the same or of another example."""
    words = list(WORD.finditer(data))
    others = WORD.findall(random.choice(examples))
    if not words or not others:
        return data
    found = random.choice(words)
    return data[: found.start()] + random.choice(others) + data[found.end() :]


def _cut(random: Random, data: bytes, _: Sequence[bytes]) -> bytes:
    start, end = sorted((random.randint(0, len(data)), random.randint(0, len(data))))
    return data[:start] + data[end:]


def _repeat(random: Random, data: bytes, _: Sequence[bytes]) -> bytes:
    start, end = sorted((random.randint(0, len(data)), random.randint(0, len(data))))
    return data[:end] + data[start:end] * random.choice((1, 1, 2, 10)) + data[end:]


def _splice(random: Random, data: bytes, examples: Sequence[bytes]) -> bytes:
    """The beginning of one document, and the end of another."""
    other = random.choice(examples)
    return data[: random.randint(0, len(data))] + other[random.randint(0, len(other)) :]


def _wild(random: Random, data: bytes, _: Sequence[bytes]) -> bytes:
    at = random.randint(0, len(data))
    return data[:at] + random.randbytes(random.randint(1, 8)) + data[at:]


MILD = (_renumber, _renumber, _other_word, _other_word, _other_word)
CHANGES = (*MILD, _flip, _insert, _insert, _replace, _replace, _cut, _repeat, _splice, _wild)
