"""What faults do to hosts and to the services of the gateway, and whether the injector is well, by its journal."""

from __future__ import annotations

from typing import Any, NamedTuple

from chaos.events import STRIKING
from experiments.errors import EnvironmentFailure
from experiments.fault_kinds import SERVICES, FaultKind

GRACE_NS = 10 * 10**9  # a service that was started again shows as a process after a moment


class Held(NamedTuple):
    """A host, or the gateway for one of its services, and the kind of the fault that holds it."""

    host: str
    kind: FaultKind


class FaultState:
    """The injector's journal (an `journal.reader.Digest`): what faults hold, what was done, and how the injector is.

    injected, healed   how many strikes were proved, and undone
    """

    def __init__(self) -> None:
        self.injected = self.healed = 0
        self.events: set[str] = set()
        self._held: dict[tuple[int, str], Held] = {}
        self._services: dict[str, int | None] = {}  # until when they are held [ns], None for no end yet
        self._error: str | None = None

    def take(self, entry: dict[str, Any]) -> None:
        event = entry["event"]
        self.events.add(event)
        if event == "failed" and self._error is None:
            self._error = entry["error"]
        if "kind" in entry and (service := SERVICES.get(entry["kind"])):
            self._note(service, entry)
        self.injected += event == "injected"
        self.healed += event == "healed"
        if event == STRIKING:
            self._held[entry["fault"], entry["host"]] = Held(entry["host"], FaultKind(entry["kind"]))
        elif event == "ended" or (event == "healed" and not any(entry["left"].values())):
            self._held.pop((entry["fault"], entry["host"]), None)

    def _note(self, service: str, entry: dict[str, Any]) -> None:
        if entry["event"] == STRIKING:
            self._services[service] = None
        elif entry["event"] == "healed":
            self._services[service] = entry["at_ns"] + GRACE_NS

    @property
    def held(self) -> list[Held]:
        """What faults hold, or may just be about to."""
        return list(self._held.values())

    def held_services(self, now_ns: int) -> set[str]:
        """The services that a fault holds down now, or has until a moment ago."""
        return {service for service, end_ns in self._services.items() if end_ns is None or now_ns < end_ns}

    def failure(self, *, running: bool) -> EnvironmentFailure | None:
        """Why faults are not injected as planned, if so; `running` must have been asked before the journal was read."""
        if self._error is None and (running or "disarmed" in self.events):
            return None
        return EnvironmentFailure(f"the injector died ({self._error or 'killed'})", "see injector.log of the run")
