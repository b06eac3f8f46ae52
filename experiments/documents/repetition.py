"""Refuses mappings in which a key occurs twice: a reader of YAML or JSON would silently drop one of the values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, TypeVar

from experiments.errors import BadInput

ValueT = TypeVar("ValueT", bound=Hashable)


def one_value_a_key(pairs: list[tuple[Any, Any]], lines: Sequence[int] = ()) -> dict[Any, Any]:
    """The mapping of these keys and values; raises `BadInput` about a key that is there twice.

    `lines` are those of the keys, in the same order, where they are known.
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = repeated(key for key, _ in pairs)[0]
        own = dict.fromkeys(line for (key, _), line in zip(pairs, lines, strict=False) if key == twice)
        where = f" (here on line{'s' * (len(own) > 1)} {' and '.join(map(str, own))})" if own else ""
        raise BadInput(str(twice), "given twice", f"each field once{where}")
    return found


def repeated(values: Iterable[ValueT]) -> list[ValueT]:
    """The values that are there more than once, each one time, in the order in which they first appear."""
    return [value for value, times in Counter(values).items() if times > 1]
