"""The faults of a fault plan."""

from __future__ import annotations

from typing import Any, NamedTuple

from experiments.fault_kinds import PLAIN, Direction, FaultKind, FaultOptions
from experiments.faults import FaultSpec

ABORT_FILE = "abort.json"  # beside a plan that is being injected: its run was aborted by hand
DECIMALS = 6  # a logarithm may differ in its last digit between machines; a plan in microseconds does not


class FaultEvent(NamedTuple):
    """A planned fault: `at` seconds into the window the targets are struck; `heal_after` seconds later they return.

    Events are ordered by their times, then by what tells simultaneous ones apart.
    """

    at: float
    cause: str
    targets: tuple[str, ...]
    kind: FaultKind
    heal_after: float
    options: FaultOptions = PLAIN

    def to_json(self) -> dict[str, Any]:
        """As a listed fault of a spec is written: options only where they say something."""
        return {
            "at": self.at,
            "kind": self.kind.value,
            "targets": list(self.targets),
            "cause": self.cause,
            "heal_after": self.heal_after,
            **{name: value for name, value in self.options._asdict().items() if value != getattr(PLAIN, name)},
        }

    @classmethod
    def from_json(cls, event: dict[str, Any]) -> FaultEvent:
        """The event that `to_json` wrote."""
        kind, targets = FaultKind(event["kind"]), tuple(event["targets"])
        return cls(event["at"], event["cause"], targets, kind, event["heal_after"], _options(event))


def _options(event: dict[str, Any]) -> FaultOptions:
    told = {name: event[name] for name in FaultOptions._fields if name in event}
    if "peers" in told:
        told["peers"] = tuple(told["peers"])
    if "direction" in told:
        told["direction"] = Direction(told["direction"])
    return FaultOptions(**told)


def listed_events(spec: FaultSpec) -> list[FaultEvent]:
    """The events of the listed faults in the order of their times, in the resolution of every plan."""
    return sorted(
        FaultEvent(
            at=round(fault.at, DECIMALS),
            cause=fault.cause,
            targets=fault.targets,
            kind=fault.kind,
            heal_after=round(spec.heal_delay(fault).mean_s, DECIMALS),
            options=fault.options,
        )
        for fault in spec.events
    )
