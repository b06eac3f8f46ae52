"""Reads JSON into plain values. A field may occur only once in an object."""

from __future__ import annotations

import json
from typing import Any

from experiments.documents.gate import JSON, LONGEST_NUMBER, TOO_DEEP, Limits, NotPlain
from experiments.documents.repetition import one_value_a_key


def load(text: str, limits: Limits = JSON) -> Any:
    """The value of a document; NaN and Infinity are read. Raises `NotPlain`, `BadInput` and `json.JSONDecodeError`."""
    if sum(map(text.count, ",[{")) > limits.values:  # nearly one for each value, and seen before any is built
        raise NotPlain(f"a document of at most {limits.values:,} values")
    try:
        return json.loads(text, object_pairs_hook=one_value_a_key, parse_int=_whole_number)
    except RecursionError:
        raise NotPlain(TOO_DEEP) from None


def _whole_number(text: str) -> int:
    if len(text) > LONGEST_NUMBER:
        raise NotPlain(f"a number of at most {LONGEST_NUMBER} characters")
    return int(text)
