"""What a fault plan consists of."""

from __future__ import annotations

from typing import Any, NamedTuple

from experiments.fault_kinds import PLAIN, Direction, FaultKind, FaultOptions
from experiments.faults import ListedFault

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


def listed_event(fault: ListedFault) -> FaultEvent:
    """The event of a listed fault, in the resolution of every plan."""
    times = round(fault.at, DECIMALS), round(fault.heal_after, DECIMALS)
    return FaultEvent(times[0], fault.cause, fault.targets, fault.kind, times[1], fault.options)
