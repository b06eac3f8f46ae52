"""The common faults as plain fields of the trigger form: kills by host, kills by rack, time to heal.

They stand for a fault spec. Users who need more than these fields give the whole spec in the field `faults`.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from experiments import spec
from experiments.documents.parsing import NonNegative, Spec, parse
from experiments.errors import BadInput

PARTS = ("processes", "events", "bursts")  # where a fault spec has its faults


class CommonFaults(Spec):
    """The fields; what is left empty stays as the experiment has it."""

    host_fault_rate: NonNegative | None = None
    rack_fault_rate: NonNegative | None = None
    racks: Annotated[int, Field(ge=1, le=250)] | None = None
    time_to_heal_s: NonNegative | None = None


HOST_RATE, RACK_RATE, RACKS, HEAL_AFTER = CommonFaults.model_fields
FIELDS: dict[str, dict[str, Any]] = CommonFaults.model_json_schema()["properties"]


def put(document: dict[str, Any], given: dict[str, Any]) -> None:
    """Write what was given of these fields into the fault spec of a whole experiment.

    A rate replaces the experiment's own faults; the time to heal holds for all faults that there are then. Raises
    `BadInput` for a value that a field does not take, for more racks than workers, and for a rate of racks where there
    are none.
    """
    given = parse(CommonFaults, given, "faults").model_dump(exclude_unset=True)
    faults = document["faults"]
    if RACKS in given:
        faults["hosts"] = _spread(spec.validate({**document, "faults": {}}).cluster.workers, given[RACKS])
    if HOST_RATE in given or RACK_RATE in given:
        _require_racks(document, given)
        heal_after = next((fault["heal_after"] for part in PARTS for fault in faults[part]), None)
        faults |= {part: [] for part in PARTS} | {"processes": _processes(given, heal_after)}
    if HEAL_AFTER in given:
        for fault in (fault for part in PARTS for fault in faults[part]):
            fault["heal_after"] = given[HEAL_AFTER]


def _spread(workers: int, racks: int) -> dict[str, list[str]]:
    """The workers one by one to the racks, as cards are dealt."""
    if racks > workers:
        raise BadInput(RACKS, racks, f"at most one for each worker, of which there are {workers}")
    return {f"worker-{number + 1}": [f"rack-{number % racks + 1}"] for number in range(workers)}


def _require_racks(document: dict[str, Any], given: dict[str, Any]) -> None:
    """What the experiment itself does not say may still come from its inventory."""
    if not given.get(RACK_RATE):
        return
    hosts = document["faults"]["hosts"] or spec.validate({**document, "faults": {}}).faults.hosts
    if not any(hosts.values()):
        raise BadInput(RACK_RATE, given[RACK_RATE], f"0, or {RACKS} as well: no worker of the experiment is in a rack")


def _processes(given: dict[str, Any], heal_after: Any) -> list[dict[str, Any]]:
    rates = {"host": given.get(HOST_RATE), "domain": given.get(RACK_RATE)}
    return [
        {"kind": "kill", "scope": scope, "rate": rate, "heal_after": heal_after}
        for scope, rate in rates.items()
        if rate
    ]
