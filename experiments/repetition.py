"""Refuses mappings in which a key occurs twice: a reader of YAML or JSON would silently drop one of the values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import Any, TypeVar

from experiments.errors import BadInput

ValueT = TypeVar("ValueT", bound=Hashable)


def one_value_a_key(pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    """The mapping of these keys and values; raises `BadInput` about a key that is there twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise BadInput(str(repeated(key for key, _ in pairs)[0]), "given twice", "each field once")
    return found


def repeated(values: Iterable[ValueT]) -> list[ValueT]:
    """The values that are there more than once, each one time, in the order in which they first appear."""
    return [value for value, times in Counter(values).items() if times > 1]
