"""Types for the fields of a spec: texts of a certain spelling, and which fields hold numbers."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_origin

from pydantic import AfterValidator, BaseModel
from pydantic_core import core_schema


@dataclass(frozen=True)
class Spelling:
    """How a text is spelt: as a pattern for a form, and in words for somebody who got it wrong."""

    pattern: str
    words: str

    def _checked(self, text: str) -> str:
        if not re.fullmatch(self.pattern, text):
            raise ValueError(self.words)
        return text

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> core_schema.CoreSchema:
        return core_schema.no_info_after_validator_function(self._checked, handler(source))

    def __get_pydantic_json_schema__(self, schema: core_schema.CoreSchema, handler: Any) -> dict[str, Any]:
        return {**handler(schema), "pattern": self.pattern}


def _dns_label(letters: str) -> str:
    return rf"[{letters}0-9]([{letters}0-9-]{{0,61}}[{letters}0-9])?"


# Names of machines, as patterns: a label in small letters, and whole names; an IPv4 address has their form, too.
SMALL_DNS_LABEL, DNS_LABEL = _dns_label("a-z"), _dns_label("A-Za-z")
DNS_NAME = rf"{DNS_LABEL}(\.{DNS_LABEL})*"


def _label(text: str) -> str:
    if not (text.isprintable() and 0 < len(text) <= LONGEST_LABEL):
        raise ValueError(f"a name of 1 to {LONGEST_LABEL} printable characters")
    return text


LONGEST_LABEL = 200
Label = Annotated[str, AfterValidator(_label)]  # of what a user names as they like, and sees again in tables and logs


@functools.cache
def number_of(model: type[BaseModel], name: str) -> str | None:
    """What number a field takes, or each item of its list, in words; None where it takes none."""
    types = set(_types(model.model_fields[name].annotation))
    if bool in types or not types & {int, float}:
        return None
    return "a number" if float in types else "a whole number"


def _types(annotation: Any) -> Iterator[Any]:
    """The types that an annotation is made of, those of its mappings left out."""
    parts = get_args(annotation)
    if not parts:
        yield annotation
    elif get_origin(annotation) is not dict:
        for part in parts[:1] if get_origin(annotation) is Annotated else parts:
            yield from _types(part)
