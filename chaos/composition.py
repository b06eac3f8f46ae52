"""The joint effect of a plan's overlapping faults, by the rules of `chaos.holds`, which the injector follows, too.

So the outage of a host lasts from the fault that struck it to the last heal of all that it absorbed. A fault at the
very moment of a heal comes first: a host is not back as soon as its return begins.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import count

from chaos.events import DECIMALS, FaultEvent
from chaos.holds import Hold, Holds, StrikeOutcome
from experiments.fault_kinds import FaultKind


@dataclass(frozen=True)
class HostOutage:
    """A host is held over [start_s, end_s); `faults` are positions in the plan: the one that struck, then the absorbed.

    A fault that a stronger one absorbs, without a hold of its own, is in no outage. One without a heal delay makes an
    outage of length 0, which absorbs what strikes at the same moment.
    """

    host: str
    kind: FaultKind
    start_s: float
    end_s: float
    faults: tuple[int, ...]


@dataclass
class Composition:
    """The outages in the order of their starts, and which strikes (fault, host) made none."""

    outages: list[HostOutage] = field(default_factory=list)
    absorbed: list[tuple[int, str]] = field(default_factory=list)
    withheld: list[tuple[int, str]] = field(default_factory=list)

    @property
    def struck(self) -> set[tuple[int, str]]:
        """The strikes that took effect, as (fault, host)."""
        return {(outage.faults[0], outage.host) for outage in self.outages}

    def down(self) -> dict[str, list[tuple[float, float]]]:
        """When each host is out of service, in seconds: intervals in their order, none of which overlap."""
        found: dict[str, list[tuple[float, float]]] = defaultdict(list)
        for outage in self.outages:
            if outage.kind.takes_the_host:
                spans = found[outage.host]
                if spans and outage.start_s < spans[-1][1]:
                    spans[-1] = (spans[-1][0], max(spans[-1][1], outage.end_s))
                else:
                    spans.append((outage.start_s, outage.end_s))
        return found


class _Composer:
    """Goes through a plan from its first event to its last."""

    def __init__(self, max_down: int | None) -> None:
        self.holds: Holds[float] = Holds(max_down)
        self.made = Composition()
        self.place: dict[tuple[str, FaultKind], int] = {}  # of the outage that a hold stands for
        self.returns: list[tuple[float, int, Hold[float]]] = []
        self.numbers = count()

    def add(self, fault: int, event: FaultEvent) -> None:
        self._release_before(event.at)
        for host in event.targets:
            outcome = self.holds.outcome(host, event.kind)
            if outcome is StrikeOutcome.INJECTED:
                self._strike(fault, host, event)
            elif outcome is StrikeOutcome.ABSORBED:
                self._absorb(fault, host, event)
            else:
                self.made.withheld.append((fault, host))

    def _strike(self, fault: int, host: str, event: FaultEvent) -> None:
        hold = Hold(host, event.kind, fault, _until(event))
        for ended in self.holds.strike(hold):
            self._change(ended, event.at)
        self.place[host, event.kind] = len(self.made.outages)
        self.made.outages.append(HostOutage(host, event.kind, event.at, hold.until, (fault,)))
        self._due(hold)

    def _absorb(self, fault: int, host: str, event: FaultEvent) -> None:
        self.made.absorbed.append((fault, host))
        longer = self.holds.absorb(host, event.kind, _until(event))
        hold = self.holds.of(host).get(event.kind.effect)
        if hold is not None:
            self._change(hold, hold.until, fault)
        if longer is not None:
            self._due(longer)

    def _change(self, hold: Hold[float], end_s: float, *further_faults: int) -> None:
        place = self.place[hold.host, hold.kind]
        outage = self.made.outages[place]
        self.made.outages[place] = replace(outage, end_s=end_s, faults=(*outage.faults, *further_faults))

    def _due(self, hold: Hold[float]) -> None:
        heapq.heappush(self.returns, (hold.until, next(self.numbers), hold))

    def _release_before(self, at_s: float) -> None:
        while self.returns and self.returns[0][0] < at_s:
            _, _, hold = heapq.heappop(self.returns)
            if self.holds.is_current(hold):
                self.holds.release(hold)


def _until(event: FaultEvent) -> float:
    return round(event.at + event.heal_after, DECIMALS)


def compose(events: Iterable[FaultEvent], max_down: int | None = None) -> Composition:
    """What the events of a plan, in the order of their times, do together."""
    composer = _Composer(max_down)
    for fault, event in enumerate(events):
        composer.add(fault, event)
    return composer.made


def down_shares(composition: Composition, duration_s: float) -> dict[str, float]:
    """The share of [0, duration) that each host is out of service."""
    return {
        host: sum(min(end_s, duration_s) - start_s for start_s, end_s in spans) / duration_s
        for host, spans in composition.down().items()
    }


def most_down(composition: Composition) -> int:
    """The most hosts that are out of service at once; one that returns as another one is struck counts no more."""
    changes: Counter[float] = Counter()
    for start_s, end_s in (span for spans in composition.down().values() for span in spans):
        changes[start_s] += 1
        changes[end_s] -= 1
    down = most = 0
    for at_s in sorted(changes):
        down += changes[at_s]
        most = max(most, down)
    return most
