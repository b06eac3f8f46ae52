"""Reads from the injector's journal which faults hold hosts and services, and whether the injector is well."""

from __future__ import annotations

from typing import NamedTuple

from experiments.errors import EnvironmentFailure
from experiments.fault_kinds import FaultKind
from journal.event import Event
from journal.events.common import Failed
from journal.events.injector import Disarmed, Ended, Healed, Injected, Striking

GRACE_NS = 10 * 10**9  # a service that was started again shows as a process after a moment


class Held(NamedTuple):
    """A host, or the gateway for one of its services, and the kind of the fault that holds it."""

    host: str
    kind: FaultKind


class FaultState:
    """The injector's journal (a `journal.reader.Digest`): what faults hold, what was done, and how the injector is.

    injected, healed   how many strikes were proved, and undone
    """

    def __init__(self) -> None:
        self.injected = self.healed = 0
        self.kinds: set[type[Event]] = set()
        self._held: dict[tuple[int, str], Held] = {}
        self._services: dict[str, int | None] = {}  # until when they are held [ns], None for no end yet
        self._error: str | None = None

    def take(self, event: Event) -> None:
        """Take in the next event of the injector's journal."""
        self.kinds.add(type(event))
        match event:
            case Failed() if self._error is None:
                self._error = event.error
            case Injected():
                self.injected += 1
            case Striking():
                self._begin(event)
            case Healed():
                self._heal(event)
            case Ended():
                self._held.pop((event.fault, event.host), None)

    def _begin(self, event: Striking) -> None:
        self._held[event.fault, event.host] = Held(event.host, event.kind)
        if event.kind.service:
            self._services[event.kind.service] = None

    def _heal(self, event: Healed) -> None:
        self.healed += 1
        if event.kind.service:
            self._services[event.kind.service] = event.at_ns + GRACE_NS
        if not any(event.left.values()):
            self._held.pop((event.fault, event.host), None)

    @property
    def held(self) -> list[Held]:
        """What faults hold, or may just be about to."""
        return list(self._held.values())

    def held_services(self, now_ns: int) -> set[str]:
        """The services that a fault holds down now, or has until a moment ago."""
        return {service for service, end_ns in self._services.items() if end_ns is None or now_ns < end_ns}

    def failure(self, *, running: bool) -> EnvironmentFailure | None:
        """Why faults are not injected as planned, if so; `running` must have been asked before the journal was read."""
        if self._error is None and (running or Disarmed in self.kinds):
            return None
        return EnvironmentFailure(f"the injector died ({self._error or 'killed'})", "see injector.log of the run")
