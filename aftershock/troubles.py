"""What faults do to the services of the gateway: which are down on purpose, and whether the injector is well."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from experiments.errors import EnvironmentFailure
from experiments.fault_kinds import SERVICES
from infra.strikes.death import PROOF_LIMIT_S

GRACE_NS = 10 * 10**9  # a service that was started again shows as a process after a moment
PROOF_NS = round(2 * PROOF_LIMIT_S * 1e9)  # an injected fault is journaled once it is proved


def held_services(plan: dict[str, Any], journal: Iterable[dict[str, Any]], now_ns: int) -> set[str]:
    """The services that a fault holds down now, or has until a moment ago; `plan` is what the injector was given."""
    until: dict[str, int | None] = {}
    for entry in journal:
        service = SERVICES.get(entry.get("kind"))
        if service and entry["event"] == "injected":
            until[service] = None
        elif service and entry["event"] == "healed":
            until[service] = entry["at_ns"] + GRACE_NS
    held = {service for service, end_ns in until.items() if end_ns is None or now_ns < end_ns}
    start_ns = plan.get("window_start_ns", 0)
    for event in plan.get("events", ()):
        due_ns = start_ns + round(event["at"] * 1e9)
        if event["kind"] in SERVICES and due_ns <= now_ns < due_ns + PROOF_NS:
            held.add(SERVICES[event["kind"]])
    return held


def injector_failure(journal: list[dict[str, Any]], *, running: bool) -> EnvironmentFailure | None:
    """Why faults are not injected as planned, if so; `running` must have been asked before the journal was read."""
    failed = next((entry["error"] for entry in journal if entry["event"] == "failed"), None)
    if failed is None and (running or any(entry["event"] == "disarmed" for entry in journal)):
        return None
    return EnvironmentFailure(f"the injector died ({failed or 'killed'})", "see injector.log of the run")
