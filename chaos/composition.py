"""What overlapping faults do together: a host is up only when no fault holds it.

A fault that strikes a host which is down already is absorbed there: it kills nothing, but it holds the host down until
its own heal is due. So a host's outage lasts from the fault that struck it to the last heal of all that it absorbed.
The injector keeps to the same rules.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from chaos.events import FaultEvent


@dataclass(frozen=True)
class HostOutage:
    """A host is down over [start_s, end_s); `faults` are positions in the plan: the one that struck, then the absorbed.

    A fault without a heal delay makes an outage of length 0, which absorbs nothing.
    """

    start_s: float
    end_s: float
    faults: tuple[int, ...]


def compose(events: Iterable[FaultEvent]) -> dict[str, list[HostOutage]]:
    """The outages of every host that is struck, in the order of their times, from events in theirs."""
    found: dict[str, list[HostOutage]] = {}
    for fault, event in enumerate(events):
        end_s = event.at + event.heal_after
        for host in event.targets:
            outages = found.setdefault(host, [])
            if outages and event.at < outages[-1].end_s:
                last = outages.pop()
                outages.append(HostOutage(last.start_s, max(last.end_s, end_s), (*last.faults, fault)))
            else:
                outages.append(HostOutage(event.at, end_s, (fault,)))
    return found


def absorbed_strikes(outages: dict[str, list[HostOutage]]) -> int:
    """How many strikes of a fault on a host found it down."""
    return sum(len(outage.faults) - 1 for of_host in outages.values() for outage in of_host)


def down_shares(outages: dict[str, list[HostOutage]], duration_s: float) -> dict[str, float]:
    """The share of [0, duration) that each host is down."""
    return {
        host: sum(min(outage.end_s, duration_s) - outage.start_s for outage in of_host) / duration_s
        for host, of_host in outages.items()
    }


def most_down(outages: dict[str, list[HostOutage]]) -> int:
    """The most hosts that are down at once; a host that returns as another one is struck counts no more."""
    changes: Counter[float] = Counter()
    for outage in (outage for of_host in outages.values() for outage in of_host):
        changes[outage.start_s] += 1
        changes[outage.end_s] -= 1
    down = most = 0
    for at_s in sorted(changes):
        down += changes[at_s]
        most = max(most, down)
    return most
