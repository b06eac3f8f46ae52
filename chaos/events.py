"""What a fault plan consists of."""

from __future__ import annotations

from typing import Any, NamedTuple

from experiments.faults import FaultKind, ListedFault

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

    def to_json(self) -> dict[str, Any]:
        return {
            "at": self.at,
            "kind": self.kind.value,
            "targets": list(self.targets),
            "cause": self.cause,
            "heal_after": self.heal_after,
        }

    @classmethod
    def from_json(cls, event: dict[str, Any]) -> FaultEvent:
        """The event that `to_json` wrote."""
        kind, targets = FaultKind(event["kind"]), tuple(event["targets"])
        return cls(event["at"], event["cause"], targets, kind, event["heal_after"])


def listed_event(fault: ListedFault) -> FaultEvent:
    """The event of a listed fault, in the resolution of every plan."""
    times = round(fault.at, DECIMALS), round(fault.heal_after, DECIMALS)
    return FaultEvent(times[0], fault.cause, fault.targets, fault.kind, times[1])
