"""Checks every document of a user: refuses what is too large, nested too deep, or not plain text.

It counts before it builds, so that a small document cannot make a large one: aliases of YAML count as what they stand
for. Code reads a document by `read_text`, and by `load` of `plain_yaml` or `plain_json`. If a document comes in another
way, from a form, `require_plain` applies the same limits to it.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass
from pathlib import Path

from experiments.documents.plain_files import RefusedFile, TooLarge, read_whole
from experiments.errors import BadInput

MOST_DEPTH = 32  # of mappings and lists in one another
LONGEST_TEXT = 10_000  # characters of one text
LONGEST_NUMBER = 400  # characters of one number
MOST_BITS = 1400  # of a whole number: a little more than `LONGEST_NUMBER` digits
PLAIN_TEXT = f"a text without NUL and half characters (surrogates), of at most {LONGEST_TEXT:,} characters"
TOO_DEEP = f"a document that is not nested this deeply (at most {MOST_DEPTH})"


@dataclass(frozen=True)
class Limits:
    """What a document may hold: bytes of its file, and values, mappings and lists counted with what is in them."""

    size: int
    values: int


YAML = Limits(2**20, 100_000)
JSON = Limits(2**24, 1_000_000)  # a topology of as many tasks as there may be
TRACE = Limits(2**27, 16_000_000)  # a million faults
MOST_VALUES = TRACE.values  # an experiment holds the faults of its trace


class NotPlain(ValueError):
    """What a document may not hold; the message says what it may, and `place` is the path to the value."""

    def __init__(self, allowed: str, value: object = None) -> None:
        super().__init__(allowed)
        self.value = value
        self.place: tuple[str, ...] = ()


def read_text(path: Path, limits: Limits) -> str:
    """The text of a document's file. Raises `NotPlain`, `UnicodeDecodeError`, and `OSError` for what cannot be read."""
    if not is_plain(str(path), of_a_path=True):
        raise NotPlain("a path without NUL and half characters (surrogates)")
    try:
        data = read_whole(path, limits.size, links=True, pipes=True)
    except TooLarge:
        raise NotPlain(f"a file of at most {limits.size:,} bytes") from None
    except RefusedFile as refusal:
        raise OSError(errno.EINVAL, f"this is {refusal.what}") from None
    if not data and path.is_fifo():
        raise NotPlain("a file: no process writes to this pipe")
    return data.decode("utf-8-sig")  # spreadsheets and some editors begin a file with a byte order mark


def is_plain(text: str, of_a_path: bool = False) -> bool:
    """Whether a text is Unicode as others can store, print and pass it on; a path may hold bytes that are no UTF-8."""
    if "\0" in text or len(text) > LONGEST_TEXT:
        return False
    if text.isascii():
        return True
    try:
        text.encode("utf-8", "surrogateescape" if of_a_path else "strict")
    except UnicodeEncodeError:
        return False
    return True


def require_plain(document: object, whole: str, most_values: int = MOST_VALUES) -> None:
    """Raise `BadInput` for the first value that no document may hold, by its path; about `whole` if it has none."""
    try:
        _Walk(most_values).check(document, 0)
    except NotPlain as problem:
        raise BadInput(".".join(problem.place) or whole, problem.value, str(problem)) from None


class _Walk:
    def __init__(self, most_values: int) -> None:
        self._most = self._left = most_values

    def check(self, value: object, depth: int) -> None:
        self._left -= 1
        if self._left < 0:
            raise NotPlain(f"a document of at most {self._most:,} values")
        if isinstance(value, str):
            require_text(value)
        elif isinstance(value, int) and value.bit_length() > MOST_BITS:
            raise NotPlain(f"a number of at most {LONGEST_NUMBER} characters", value)
        elif isinstance(value, dict | list | tuple):
            if depth == MOST_DEPTH:
                raise NotPlain(TOO_DEEP, value)
            self._check_items(value, depth + 1)

    def _check_items(self, container: dict[object, object] | list[object] | tuple[object, ...], depth: int) -> None:
        named = container.items() if isinstance(container, dict) else enumerate(container)
        for name, item in named:
            try:
                if isinstance(name, str):
                    require_text(name)
                self.check(item, depth)
            except NotPlain as problem:
                problem.place = (str(name), *problem.place)
                raise


def require_text(text: str) -> None:
    """Raise `NotPlain` for a text that is too long, or has NUL or half a character (`is_plain`)."""
    if not is_plain(text):
        raise NotPlain(PLAIN_TEXT, text)
