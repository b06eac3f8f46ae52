"""What faults do to the services of the gateway: which are down on purpose, and whether the injector is well."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from chaos.events import STRIKING
from experiments.errors import EnvironmentFailure
from experiments.fault_kinds import SERVICES

GRACE_NS = 10 * 10**9  # a service that was started again shows as a process after a moment


def held_services(journal: Iterable[dict[str, Any]], now_ns: int) -> set[str]:
    """The services that a fault holds down now, or has until a moment ago, by the injector's journal."""
    until: dict[str, int | None] = {}
    for entry in journal:
        service = SERVICES.get(entry.get("kind"))
        if service and entry["event"] == STRIKING:
            until[service] = None
        elif service and entry["event"] == "healed":
            until[service] = entry["at_ns"] + GRACE_NS
    return {service for service, end_ns in until.items() if end_ns is None or now_ns < end_ns}


def injector_failure(journal: list[dict[str, Any]], *, running: bool) -> EnvironmentFailure | None:
    """Why faults are not injected as planned, if so; `running` must have been asked before the journal was read."""
    failed = next((entry["error"] for entry in journal if entry["event"] == "failed"), None)
    if failed is None and (running or any(entry["event"] == "disarmed" for entry in journal)):
        return None
    return EnvironmentFailure(f"the injector died ({failed or 'killed'})", "see injector.log of the run")
