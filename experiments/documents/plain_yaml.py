"""Reads YAML into plain values. A key may occur only once in a mapping.

Values are built from the parser's events and counted on the way, with an alias counted as what it stands for; PyYAML's
own constructor would build dates, sets and what a tag asks for, and a thousand million values out of 400 bytes.
Numbers are read as people mean them, by the core schema of YAML 1.2. PyYAML follows YAML 1.1, where `1:30` is 90, `010`
is 8, and `1e3` is a text.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import yaml
from yaml.constructor import ConstructorError, SafeConstructor
from yaml.resolver import Resolver

from experiments.documents.gate import LONGEST_NUMBER, MOST_DEPTH, TOO_DEEP, YAML, Limits, NotPlain
from experiments.documents.repetition import one_value_a_key

TAG = "tag:yaml.org,2002:"
OTHER_BASES = ("0o", "0x")  # of whole numbers
TAGS_OF = {yaml.SequenceStartEvent: f"{TAG}seq", yaml.MappingStartEvent: f"{TAG}map"}


class Built(NamedTuple):
    """A value, how many values it consists of, and how many mappings and lists it has in one another."""

    value: Any
    values: int = 1
    height: int = 0


def load(text: str, limits: Limits = YAML) -> Any:
    """The value of a document, None of an empty one. Raises `NotPlain`, `BadInput` and `yaml.YAMLError`."""
    try:
        return _Builder(yaml.parse(text, Loader=yaml.CSafeLoader), limits.values).document()
    except yaml.MarkedYAMLError as error:
        if _is_at_a_tab(error, text):  # the parser's own words do not say so, and a tab looks like spaces
            error.problem = "a tab, where YAML takes spaces only"
        raise


def _is_at_a_tab(error: yaml.MarkedYAMLError, text: str) -> bool:
    mark, lines = error.problem_mark, text.splitlines()
    return mark is not None and mark.line < len(lines) and lines[mark.line][mark.column :].startswith("\t")


def complaint(error: Exception) -> str:
    """Where YAML ends to be valid and why, in words of the parser's only: what stands there could be a secret."""
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return " ".join(str(error).split())
    return f"line {error.problem_mark.line + 1}, column {error.problem_mark.column + 1}: {error.problem}"


class _Builder:
    def __init__(self, events: Iterator[yaml.Event], most_values: int) -> None:
        self._events, self._most, self._left = events, most_values, most_values
        self._anchors: dict[str, Built | None] = {}  # None while the value is not complete

    def document(self) -> Any:
        next(self._events)  # the beginning of the stream, and below those of the document and its end
        if isinstance(next(self._events), yaml.StreamEndEvent):
            return None
        found = self._built(next(self._events), 0)
        next(self._events)
        if not isinstance(event := next(self._events), yaml.StreamEndEvent):
            raise _problem("a second document where a file is one document", event)
        return found.value

    def _built(self, event: yaml.Event, depth: int) -> Built:
        """The value that begins with an event; `depth` is how many mappings and lists it stands in."""
        if isinstance(event, yaml.AliasEvent):
            return self._standing_for(event, depth)
        if not isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent):
            raise _problem("no value where a value begins", event)
        self._take(1)
        if event.anchor in self._anchors:
            raise _problem("an anchor that is there twice", event)
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        found = Built(_scalar(event)) if isinstance(event, yaml.ScalarEvent) else self._container(event, depth + 1)
        if event.anchor is not None:
            self._anchors[event.anchor] = found
        return found

    def _take(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise NotPlain(f"a document of at most {self._most:,} values, an alias counted as what it stands for")

    def _standing_for(self, event: yaml.AliasEvent, depth: int) -> Built:
        if event.anchor not in self._anchors:
            raise _problem("an alias of nothing", event)
        if (found := self._anchors[event.anchor]) is None:
            raise NotPlain("a document in which nothing holds itself")
        self._take(found.values)
        if depth + found.height > MOST_DEPTH:
            raise NotPlain(TOO_DEEP)
        return found._replace(value=copy.deepcopy(found.value))

    def _container(self, event: yaml.CollectionStartEvent, depth: int) -> Built:
        if event.tag not in (None, "!", TAGS_OF[type(event)]):
            raise _problem("a tag that is not one of plain values", event)
        if depth > MOST_DEPTH:
            raise NotPlain(TOO_DEEP)
        build = self._list if isinstance(event, yaml.SequenceStartEvent) else self._mapping
        value, parts = build(depth)
        return Built(value, 1 + sum(part.values for part in parts), 1 + max((part.height for part in parts), default=0))

    def _list(self, depth: int) -> tuple[list[Any], list[Built]]:
        parts = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            parts.append(self._built(event, depth))
        return [part.value for part in parts], parts

    def _mapping(self, depth: int) -> tuple[dict[Any, Any], list[Built]]:
        own: list[tuple[Any, Any]] = []
        merged: dict[Any, Any] = {}
        parts, lines = [], []
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            merges = _is_merge(event)
            line = event.start_mark.line + 1 if event.start_mark else 0
            key = self._built(event, depth)
            if isinstance(key.value, dict | list):
                raise _problem("a mapping or list as a key", event)
            item = self._built(event := next(self._events), depth)
            parts += [key, item]
            if merges:
                merged |= _merged(item.value, event)
            else:
                own.append((key.value, item.value))
                lines.append(line)
        return merged | one_value_a_key(own, lines), parts


def _is_merge(event: yaml.Event) -> bool:
    return isinstance(event, yaml.ScalarEvent) and event.value == "<<" and event.tag is None and event.implicit[0]


def _merged(value: Any, event: yaml.Event) -> dict[Any, Any]:
    """What `<<` brings in: a mapping, or several, of which the first one with a field wins."""
    found: dict[Any, Any] = {}
    for part in reversed(value if isinstance(value, list) else [value]):
        if not isinstance(part, dict):
            raise _problem("what << merges is no mapping", event)
        found |= part
    return found


def _scalar(event: yaml.ScalarEvent) -> Any:
    untagged = event.tag in (None, "!")
    tag = RESOLVER.resolve(yaml.ScalarNode, event.value, event.implicit) if untagged else event.tag
    if tag == f"{TAG}str":
        return event.value
    if tag == f"{TAG}timestamp" and untagged:
        raise _problem("a date: put quotes around what is meant as a text", event)
    if _is_merge(event):
        return event.value
    if tag not in VALUES:
        raise _problem("a tag that is not one of plain values", event)
    meant = RESOLVER.resolve(yaml.ScalarNode, event.value, (True, False))
    is_whole = (tag, meant) == (f"{TAG}float", f"{TAG}int") and not event.value.startswith(OTHER_BASES)
    if meant != tag and not is_whole:
        raise _problem("a value that its tag does not fit", event)
    if len(event.value) > LONGEST_NUMBER:
        raise _problem(f"allowed is a number of at most {LONGEST_NUMBER} characters", event)
    return VALUES[tag](yaml.ScalarNode(tag, event.value))


def _problem(words: str, event: yaml.Event) -> ConstructorError:
    return ConstructorError(None, None, words, event.start_mark)  # type: ignore[arg-type]  # the stub lacks the C parser's marks


def _whole_number(node: yaml.ScalarNode) -> int:
    return int(node.value, 0 if node.value.startswith(OTHER_BASES) else 10)


class CoreResolver(Resolver):
    """Tells texts from numbers by the core schema of YAML 1.2, and from all other values as PyYAML does."""


CoreResolver.yaml_implicit_resolvers = {
    first: [rule for rule in rules if rule[0] not in (f"{TAG}int", f"{TAG}float")]
    for first, rules in Resolver.yaml_implicit_resolvers.items()
}
CoreResolver.add_implicit_resolver(
    f"{TAG}int", re.compile(r"(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)\Z"), list("-+0123456789")
)
CoreResolver.add_implicit_resolver(
    f"{TAG}float",
    re.compile(
        r"(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z"
    ),
    list("-+.0123456789"),
)
RESOLVER: Resolver = CoreResolver()
_MADE = SafeConstructor()
VALUES = {
    f"{TAG}null": _MADE.construct_yaml_null,
    f"{TAG}bool": _MADE.construct_yaml_bool,
    f"{TAG}int": _whole_number,
    f"{TAG}float": _MADE.construct_yaml_float,
}
