"""Converts messages to JSON and back. Refuses messages from elsewhere with wrong types or out of bounds."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from math import isfinite
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from experiments.errors import AftershockError

LARGEST = 2**63 - 1
LONGEST_TEXT = 4096
SHOWN_BYTES = 80

Read = Callable[[Any], Any]
T = TypeVar("T")


class UnknownMessage(AftershockError):
    """Bytes that are no message of the run."""


def encode_as(message: object) -> bytes:
    """A dataclass as one line of JSON, `[NAME, FIELDS]`, which `decode_as` reads."""
    return json.dumps([type(message).__name__, vars(message)], separators=(",", ":"), default=vars).encode()


def decode_as(kinds: Mapping[str, type[T]], data: bytes) -> T:
    """The message that `[NAME, FIELDS]` in JSON stands for; raises `UnknownMessage` for anything else."""
    try:
        match json.loads(data.decode()):
            case [str(name), dict(given)] if name in kinds:
                kind: Any = kinds[name]
                found: T = _reader(kind)(given)
                return found
        raise ValueError("neither a name nor fields")
    except (ValueError, RecursionError) as error:
        raise UnknownMessage(f"not a message of this run: {data[:SHOWN_BYTES]!r}") from error


@cache
def _reader(kind: Any) -> Read:
    """What reads a value as this type; raises `ValueError` for a value that is not of it."""
    origin, given = get_origin(kind), get_args(kind)
    if isinstance(kind, type) and is_dataclass(kind):
        return _dataclass(kind)
    if origin is UnionType:
        (other,) = (each for each in given if each is not NoneType)
        read = _reader(other)
        return lambda value: None if value is None else read(value)
    if origin is dict:
        return _mapping(*map(_reader, given))
    if origin is tuple:
        return _sequence(_reader(given[0])) if given[-1] is ... else _row(tuple(map(_reader, given)))
    return SIMPLE[kind]


def _dataclass(kind: type) -> Read:
    hints = get_type_hints(kind)
    readers = {each.name: _reader(hints[each.name]) for each in fields(kind)}

    def read(value: Any) -> Any:
        if type(value) is not dict or value.keys() != readers.keys():
            raise ValueError(f"not the fields of a {kind.__name__}")
        return kind(**{name: reader(value[name]) for name, reader in readers.items()})

    return read


def _mapping(read_key: Read, read_value: Read) -> Read:
    """What reads a JSON object, whose keys are always texts."""
    from_text = _number_in if read_key is _integer else read_key

    def read(value: Any) -> dict[Any, Any]:
        if type(value) is not dict:
            raise ValueError("not an object")
        return {from_text(key): read_value(each) for key, each in value.items()}

    return read


def _sequence(read_one: Read) -> Read:
    def read(value: Any) -> tuple[Any, ...]:
        if type(value) is not list:
            raise ValueError("not a list")
        return tuple(map(read_one, value))

    return read


def _row(readers: tuple[Read, ...]) -> Read:
    def read(value: Any) -> tuple[Any, ...]:
        if type(value) is not list or len(value) != len(readers):
            raise ValueError(f"not a list of {len(readers)}")
        return tuple(reader(each) for reader, each in zip(readers, value, strict=True))

    return read


def _integer(value: Any) -> int:
    if type(value) is not int or not -LARGEST <= value <= LARGEST:
        raise ValueError("not a number of 64 bits")
    return value


def _number_in(text: str) -> int:
    number = _integer(int(text))
    if str(number) != text:
        raise ValueError("not a number as it is written here")
    return number


def _real(value: Any) -> float:
    if type(value) is not float:
        return float(_integer(value))
    if not isfinite(value):
        raise ValueError("not a finite number")
    return value


def _text(value: Any) -> str:
    if type(value) is not str or len(value) > LONGEST_TEXT:
        raise ValueError("not a short text")
    value.encode()  # raises for half a character (a surrogate), which cannot be encoded
    return value


def _truth(value: Any) -> bool:
    if type(value) is not bool:
        raise ValueError("neither true nor false")
    return value


SIMPLE: dict[Any, Read] = {int: _integer, float: _real, str: _text, bool: _truth}
