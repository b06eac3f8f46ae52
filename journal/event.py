"""The base of journal events."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, ClassVar


@dataclass(frozen=True)
class Event:
    """Something that happened at `at_ns` (UTC nanoseconds; by default when the object is made).

    A kind of event is a frozen dataclass with a name: `class Armed(Event, name="armed")`. The name and the fields'
    names are those in the journal. A subclass without a name only holds fields that several kinds share.
    """

    name: ClassVar[str]
    at_ns: int = field(default_factory=time.time_ns, kw_only=True)

    def __init_subclass__(cls, *, name: str | None = None, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        if name is not None:
            cls.name = name
