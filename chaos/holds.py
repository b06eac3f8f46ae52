"""Which faults hold which host, and the effect of a further one: the rules that plans and the injector share.

A host is up only when no fault holds it. A fault whose host is already in the state that it would cause is absorbed: it
changes nothing, and holds the host in that state until its own heal is due. If two faults act on a host's processes,
the stronger one replaces the weaker one; a weaker fault that comes second has nothing left to strike. A lost host loses
its full disk, too. A partition outlives the loss of its host, since the network does not belong to the host.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from experiments.fault_kinds import STRENGTH, Effect, FaultKind

TimeT = TypeVar("TimeT", int, float)


class StrikeOutcome(StrEnum):
    """What became of a planned strike, by the names of the events in the injector's journal."""

    INJECTED = "injected"
    ABSORBED = "absorbed"  # its host was in no state to be struck
    WITHHELD = "withheld"  # it would have taken one host more than may be down at once


@dataclass(frozen=True)
class Hold(Generic[TimeT]):
    """A host is held until then; `fault` struck it, as `kind`, which is what has to be undone."""

    host: str
    kind: FaultKind
    fault: int
    until: TimeT


class Holds(Generic[TimeT]):
    """All holds at one moment. Times are the caller's: seconds of a plan, or nanoseconds of a run."""

    def __init__(self, max_down: int | None = None) -> None:
        self.max_down = max_down
        self._held: dict[str, dict[Effect, Hold[TimeT]]] = {}
        self._taken: set[str] = set()  # the hosts that are out of service

    def __iter__(self) -> Iterator[Hold[TimeT]]:
        return (hold for of_host in list(self._held.values()) for hold in list(of_host.values()))

    def of(self, host: str) -> Mapping[Effect, Hold[TimeT]]:
        """The holds of one host."""
        return self._held.get(host, {})

    def outcome(self, host: str, kind: FaultKind) -> StrikeOutcome:
        """What a fault of this kind comes to if it strikes this host now."""
        held = self.of(host)
        if kind.effect in held or any(_beats(effect, kind.effect) for effect in held):
            return StrikeOutcome.ABSORBED
        if kind.takes_the_host and host not in self._taken and len(self._taken) == self.max_down:
            return StrikeOutcome.WITHHELD
        return StrikeOutcome.INJECTED

    def strike(self, hold: Hold[TimeT]) -> list[Hold[TimeT]]:
        """A fault has struck; returns the holds that it put an end to."""
        ended = [other for effect, other in self.of(hold.host).items() if _ends(hold.kind.effect, effect)]
        for other in ended:
            self.release(other)
        self._put(hold)
        return ended

    def absorb(self, host: str, kind: FaultKind, until: TimeT) -> Hold[TimeT] | None:
        """A fault was absorbed: the hold of its effect that it makes longer; None if it makes none longer."""
        held = self.of(host).get(kind.effect)
        if held is None or until <= held.until:
            return None
        longer = Hold(host, held.kind, held.fault, until)
        self._put(longer)
        return longer

    def release(self, hold: Hold[TimeT]) -> None:
        """Remove a hold. A host that no fault keeps out of service any more counts as up again."""
        of_host = self._held[hold.host]
        del of_host[hold.kind.effect]
        if not any(other.kind.takes_the_host for other in of_host.values()):
            self._taken.discard(hold.host)

    def is_current(self, hold: Hold[TimeT]) -> bool:
        """Whether the hold stands as it is: neither ended nor made longer."""
        return self.of(hold.host).get(hold.kind.effect) is hold

    def _put(self, hold: Hold[TimeT]) -> None:
        self._held.setdefault(hold.host, {})[hold.kind.effect] = hold
        if hold.kind.takes_the_host:
            self._taken.add(hold.host)


def _beats(held: Effect, struck: Effect) -> bool:
    return held is Effect.DOWN or STRENGTH.get(held, 0) > STRENGTH.get(struck, 0) > 0


def _ends(struck: Effect, held: Effect) -> bool:
    stronger = STRENGTH.get(struck, 0) > STRENGTH.get(held, 0) > 0
    return stronger or (struck is Effect.DOWN and held is Effect.FULL)
