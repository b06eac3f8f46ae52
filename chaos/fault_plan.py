"""The fault plan of a run as it passes from the step that draws it to the injector, the tables and the pages."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chaos.events import FaultEvent

PLAN_FILE = "plan.json"  # of the raw logs
NS = 10**9


@dataclass(frozen=True)
class FaultPlan:
    """The faults of a run, and the window (UTC nanoseconds) at whose opening their times begin.

    events    in the order of their times
    max_down  how many hosts may be out of service at once; None: any number
    """

    window_start_ns: int
    window_end_ns: int
    events: tuple[FaultEvent, ...] = ()
    max_down: int | None = None

    @property
    def strikes(self) -> int:
        """How many strikes it has: one for each fault on each of its hosts."""
        return sum(len(event.targets) for event in self.events)

    def due_ns(self, event: FaultEvent) -> int:
        """When one of its faults is due (UTC nanoseconds)."""
        return self.window_start_ns + round(event.at * NS)

    def to_json(self) -> dict[str, Any]:
        """As a JSON document, with each fault as a spec lists it."""
        window = {"window_start_ns": self.window_start_ns, "window_end_ns": self.window_end_ns}
        return {**window, "max_down": self.max_down, "events": [event.to_json() for event in self.events]}

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> FaultPlan:
        """The plan that `to_json` wrote; raises `LookupError` or `ValueError` for a document that is none."""
        events = tuple(map(FaultEvent.from_json, document["events"]))
        return cls(document["window_start_ns"], document["window_end_ns"], events, document.get("max_down"))

    @classmethod
    def read(cls, path: Path) -> FaultPlan:
        """The plan in a file; raises as `from_json` does."""
        return cls.from_json(json.loads(path.read_text(encoding="utf-8")))
