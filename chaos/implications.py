"""What a fault spec implies by its laws, and what one plan drawn from it holds, in the same figures."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from chaos.clocks import clocks
from chaos.composition import compose, down_shares, most_down
from chaos.events import FaultEvent, listed_event
from experiments.faults import FaultSpec


@dataclass(frozen=True)
class Toll:
    """What faults do to a cluster.

    failure_rate       fault events per second in the cluster; a tick that is spread over time is one for each host
    host_failure_rate  strikes on a host per second, summed over the hosts
    correlated_share   part of those strikes whose clock takes several hosts, at once or spread, or, of a listed fault,
                       that strikes several; None without any strike
    hosts_down         mean number of hosts down, paused ones included; however many faults hold a host, it counts once
    """

    failure_rate: float
    host_failure_rate: float
    correlated_share: float | None
    hosts_down: float

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class PlanToll(Toll):
    """The toll of one plan, with its strikes that found their host down, and the most hosts down at once."""

    absorbed: int
    most_hosts_down: int


def implied(spec: FaultSpec) -> Toll:
    """What the laws of a spec with its duration and hosts imply, before anything is drawn.

    A host is held by a Poisson number of a clock's faults, of mean rate x mean heal delay (the M/G/infinity queue), so
    it is up with probability exp(-the sum over its clocks), which is exact for exponential clocks, shared ones
    included, and an approximation for other gaps. Listed faults hold it for the share of time that they say. The edges
    of the window are left out: a host cannot be down as it opens, and what is spread beyond its end does not count.
    """
    held: Counter[str] = Counter()
    strikes = correlated = 0.0
    for clock in clocks(spec):
        rate = clock.process.rate
        strikes += rate * len(clock.hosts)
        correlated += rate * len(clock.hosts) if len(clock.hosts) > 1 else 0.0
        for host in clock.hosts:
            held[host] += rate * sum(clock.process.heal_bounds_s) / 2.0
    listed = sorted(map(listed_event, spec.events))
    strikes += sum(len(event.targets) for event in listed) / spec.duration
    correlated += sum(len(event.targets) for event in listed if len(event.targets) > 1) / spec.duration
    shares = down_shares(compose(listed), spec.duration)
    down = sum(1.0 - (1.0 - shares.get(host, 0.0)) * math.exp(-held[host]) for host in spec.hosts)
    return Toll(spec.failure_rate, strikes, correlated / strikes if strikes else None, down)


def drawn(spec: FaultSpec, events: Sequence[FaultEvent]) -> PlanToll:
    """What a plan drawn from the spec holds, over the spec's duration."""
    shared = {clock.cause for clock in clocks(spec) if len(clock.hosts) > 1}
    strikes = sum(len(event.targets) for event in events)
    correlated = sum(len(event.targets) for event in events if len(event.targets) > 1 or event.cause in shared)
    composition = compose(events, spec.max_down)
    return PlanToll(
        failure_rate=len(events) / spec.duration,
        host_failure_rate=strikes / spec.duration,
        correlated_share=correlated / strikes if strikes else None,
        hosts_down=sum(down_shares(composition, spec.duration).values()),
        absorbed=len(composition.absorbed),
        most_hosts_down=most_down(composition),
    )
