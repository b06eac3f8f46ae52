"""Converts events to lines of a journal and back, by the event's name.

A line is one JSON object: `event` (the name), `at_ns`, then the other fields.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Generic, TypeVar

from journal.event import Event

EventT = TypeVar("EventT", bound=Event)
LONGEST_LINE = 2**20  # bytes: no reader takes a longer line for an entry, or keeps it in memory


def encode(event: Event) -> bytes:
    """The line of an event, with its end.

    Half a character (a surrogate), such as Python reads from a file name that is no UTF-8, becomes a question mark: no
    reader would take the entry otherwise.
    """
    text = json.dumps({"event": event.name, **vars(event)}, default=vars, ensure_ascii=False)
    return f"{text}\n".encode(errors="replace")


class Vocabulary(Generic[EventT]):
    """The kinds of events that a reader of a journal understands; `kinds` has them by their names."""

    def __init__(self, *kinds: type[EventT]) -> None:
        self.kinds = {kind.name: kind for kind in kinds}
        self._readers: dict[str, Callable[[bytes], EventT]] = {}  # made when they are first needed

    def decode(self, line: bytes, name: str) -> EventT | None:
        """The event of a line that has this name; None if the name is not in the vocabulary.

        Fields that the kind does not have are ignored. Raises `ValueError` for a field that is missing or of another
        type.
        """
        if name not in self.kinds:
            return None
        if name not in self._readers:
            self._readers[name] = _reader(self.kinds[name])
        return self._readers[name](line)


def _reader(kind: type[EventT]) -> Callable[[bytes], EventT]:
    from pydantic import TypeAdapter, ValidationError  # here, since who only writes may have no library but Python's

    adapter = TypeAdapter(kind)

    def read(line: bytes) -> EventT:
        try:
            return adapter.validate_json(line, strict=True)
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            raise ValueError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None

    return read
