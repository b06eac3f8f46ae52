"""Events of the fault injector (`chaos.injector`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from experiments.fault_kinds import FaultKind
from journal.codec import Vocabulary
from journal.event import Event
from journal.events.common import Failed


@dataclass(frozen=True)
class StandingBy(Event, name="standing-by"):
    """The injector waits for its plan."""


@dataclass(frozen=True)
class Armed(Event, name="armed"):
    """The injector has its plan; `faults` counts the planned strikes."""

    faults: int


@dataclass(frozen=True)
class HostClock(Event, name="clock"):
    """How far a host's clock is ahead of the injector's, and how far that may be wrong [ns]."""

    host: str
    offset_ns: int
    uncertainty_ns: int


@dataclass(frozen=True)
class OnHost(Event):
    """Something about a fault on one host; `fault` is its number in the plan."""

    fault: int
    host: str
    kind: FaultKind


@dataclass(frozen=True)
class StrikeEvent(OnHost):
    """A planned strike on one host, which was due at `planned_ns` (UTC nanoseconds)."""

    planned_ns: int


@dataclass(frozen=True)
class Striking(StrikeEvent, name="striking"):
    """A strike is about to be carried out: by the next event about it this was done, or it never will be."""


@dataclass(frozen=True)
class Injected(StrikeEvent, name="injected"):
    """A strike was carried out. The other fields are its proof (`infra.strikes.strike.Proof`)."""

    fired_ns: int
    proved_ns: int
    done: Mapping[str, int]
    left: Mapping[str, int]


@dataclass(frozen=True)
class Absorbed(StrikeEvent, name="absorbed"):
    """A strike was not carried out, because its host was in no state to be struck."""


@dataclass(frozen=True)
class Withheld(StrikeEvent, name="withheld"):
    """A strike was not carried out, because it would have taken one host more than may be down at once."""


@dataclass(frozen=True)
class Missed(StrikeEvent, name="missed"):
    """A strike was not carried out: it could not be prepared, or its host could not be looked at; `error` says why."""

    error: str


@dataclass(frozen=True)
class Ended(OnHost, name="ended"):
    """A stronger fault took the place of this one, which needs no healing."""


@dataclass(frozen=True)
class Healed(OnHost, name="healed"):
    """A fault was undone. The other fields are the proof of that (`infra.strikes.strike.Proof`)."""

    fired_ns: int
    proved_ns: int
    done: Mapping[str, int]
    left: Mapping[str, int]


@dataclass(frozen=True)
class Joined(OnHost, name="joined"):
    """The host or service that a fault had struck has its place in the cluster again."""


@dataclass(frozen=True)
class Aborted(Event, name="aborted"):
    """A user aborted the run."""


@dataclass(frozen=True)
class Disarmed(Event, name="disarmed"):
    """The injector ends. This is always its last event."""


INJECTOR: Vocabulary[Event] = Vocabulary(
    StandingBy,
    Armed,
    HostClock,
    Striking,
    Injected,
    Absorbed,
    Withheld,
    Missed,
    Ended,
    Healed,
    Joined,
    Failed,
    Aborted,
    Disarmed,
)
