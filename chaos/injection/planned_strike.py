"""The strikes of a fault plan: each fault on each of its hosts."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

from chaos.events import FaultEvent
from chaos.fault_plan import NS, FaultPlan
from experiments.fault_kinds import FaultKind

PREPARE_AHEAD_NS = NS  # to connect and to open handles
RECHECK_AHEAD_NS, RECHECK_EACH_NS = NS // 10, 3 * NS // 100  # listing processes takes tens of ms
MOST_RECHECK_AHEAD_NS = NS // 2
AT_ONCE_NS = NS // 10  # strikes that are no further apart are checked at the same time
SHOOT_AHEAD_NS = 3 * NS // 100  # the order must reach a host over SSH before the due time, at which its agent strikes


@dataclass(frozen=True)
class PlannedStrike:
    """The strike of a planned fault on one of its hosts.

    number   its place in the plan
    at_once  how many strikes are due at about the same time, this one included
    """

    number: int
    due_ns: int
    fault: int
    host: str
    event: FaultEvent
    at_once: int

    @property
    def kind(self) -> FaultKind:
        """The kind of the fault."""
        return self.event.kind

    @property
    def target(self) -> str:
        """The service or host that it strikes."""
        return target_of(self.host, self.kind)

    @property
    def prepare_ns(self) -> int:
        """When the strike is prepared (UTC nanoseconds)."""
        return self.due_ns - PREPARE_AHEAD_NS

    @property
    def recheck_ns(self) -> int:
        """When the strike is checked again (UTC nanoseconds); earlier if many hosts are struck at once."""
        return self.due_ns - min(RECHECK_AHEAD_NS + RECHECK_EACH_NS * self.at_once, MOST_RECHECK_AHEAD_NS)

    @property
    def order_ns(self) -> int:
        """When the strike is ordered (UTC nanoseconds)."""
        return self.due_ns - SHOOT_AHEAD_NS

    @property
    def until_ns(self) -> int:
        """When the fault is to be healed (UTC nanoseconds)."""
        return self.due_ns + round(self.event.heal_after * NS)


def target_of(host: str, kind: FaultKind) -> str:
    """The service or host that a fault of this kind strikes."""
    return kind.service or host


def planned_strikes(plan: FaultPlan) -> Iterator[PlannedStrike]:
    """The strikes of a plan, in its order."""
    numbers = count()
    dues_ns = sorted(plan.due_ns(event) for event in plan.events for _ in event.targets)
    for fault, event in enumerate(plan.events):
        due_ns = plan.due_ns(event)
        at_once = bisect_right(dues_ns, due_ns + AT_ONCE_NS) - bisect_left(dues_ns, due_ns - AT_ONCE_NS)
        for host in event.targets:
            yield PlannedStrike(next(numbers), due_ns, fault, host, event, at_once)
