"""What a fault spec implies by its laws, and what one drawn plan contains, in the same figures."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from chaos.clocks import clocks
from chaos.composition import compose, down_shares, most_down
from chaos.events import FaultEvent, listed_events
from experiments.faults import FaultSpec, HostBurst


@dataclass(frozen=True)
class Toll:
    """What faults do to a cluster.

    failure_rate       fault events per second in the cluster, those of services included; a tick that is spread over
                       time is one for each host
    host_failure_rate  strikes on a host per second, of any kind, summed over the hosts; services do not count
    correlated_share   part of those strikes whose clock takes several hosts, at once or spread, or, of a listed fault
                       or burst, that strikes several; None without any strike
    hosts_down         mean number of hosts out of service: lost, paused or partitioned, but not those that are slow or
                       whose disk is full; however many faults hold a host, it counts once
    """

    failure_rate: float
    host_failure_rate: float
    correlated_share: float | None
    hosts_down: float

    def to_json(self) -> dict[str, Any]:
        """The figures by their names, as `aftershock plan faults --json` prints them."""
        return asdict(self)


@dataclass(frozen=True)
class PlanToll(Toll):
    """The toll of one plan, with its strikes that come to nothing, and the most hosts out of service at once.

    absorbed  strikes that find their host, or service, in no state to be struck
    withheld  strikes that would take one host more than `max_down`
    late_heals  faults that are to heal after the duration
    """

    absorbed: int
    withheld: int
    most_hosts_down: int
    late_heals: int


def implied(spec: FaultSpec) -> Toll:
    """What the laws of a spec with its duration and hosts imply, before anything is drawn.

    A host is held by a Poisson number of a clock's faults, of mean rate x mean heal delay (the M/G/infinity queue), so
    it is up with probability exp(-the sum over its clocks). That is exact for exponential clocks, shared ones included,
    whose kinds lose the host, or all pause it, or all partition it: then holds add up. It is an approximation

    - for other gaps than exponential ones;
    - where kinds mix: a pause or a partition that strikes a lost host is absorbed without a hold, and a loss ends a
      pause, so the host may be up while one of those still runs. The chance to be up lies between the figure here and
      that of the kinds that lose the host alone; with loads u of loss and v of the others the two differ by a factor
      exp(v), and the figure is off by less than u v;
    - with `max_down`, which is left out: what it withholds makes the figure an upper bound;
    - for listed faults and bursts: they hold a host for the share of time that they say, as if independent of the
      clocks and of each other. That is exact for a burst alone whose hosts all return by themselves and before the
      end; the figure is an upper bound if they return together, or if some delays outlast the duration.

    For clocks the edges of the window are left out, too: a host cannot be down as it opens, and what is spread beyond
    its end does not count.
    """
    held: Counter[str] = Counter()
    strikes = correlated = 0.0
    for clock in clocks(spec):
        kind, rate, hosts = clock.process.kind, clock.process.rate, () if clock.process.kind.service else clock.hosts
        strikes += rate * len(hosts)
        correlated += rate * len(hosts) if len(hosts) > 1 else 0.0
        if kind.takes_the_host:
            held.update(dict.fromkeys(hosts, rate * clock.heal_delay.mean_s))
    listed = listed_events(spec)
    strikes += _strikes(listed) / spec.duration_s
    correlated += _strikes(event for event in listed if len(event.targets) > 1) / spec.duration_s
    spared = 1.0  # the share of time in which no burst keeps a host out of service
    for burst in spec.bursts:
        strikes += burst.hosts / spec.duration_s
        correlated += burst.hosts / spec.duration_s if burst.hosts > 1 else 0.0
        spared *= 1.0 - _share_down(spec, burst)
    shares = down_shares(compose(listed), spec.duration_s)
    down = sum(1.0 - (1.0 - shares.get(host, 0.0)) * spared * math.exp(-held[host]) for host in spec.hosts)
    return Toll(spec.failure_rate, strikes, correlated / strikes if strikes else None, down)


def _share_down(spec: FaultSpec, burst: HostBurst) -> float:
    """The share of the duration for which a burst keeps a host out of service, in the mean over all hosts."""
    left_s = spec.duration_s - burst.at - burst.spread / 2.0
    return min(spec.heal_delay(burst).mean_s, left_s) / spec.duration_s * burst.hosts / len(spec.hosts)


def drawn(spec: FaultSpec, events: Sequence[FaultEvent]) -> PlanToll:
    """What a plan drawn from the spec holds, over the spec's duration."""
    shared = {clock.cause for clock in clocks(spec) if len(clock.hosts) > 1}
    shared |= {f"burst {index}" for index, burst in enumerate(spec.bursts) if burst.hosts > 1}
    strikes = _strikes(events)
    correlated = _strikes(event for event in events if len(event.targets) > 1 or event.cause in shared)
    composition = compose(events, spec.max_down)
    return PlanToll(
        failure_rate=len(events) / spec.duration_s,
        host_failure_rate=strikes / spec.duration_s,
        correlated_share=correlated / strikes if strikes else None,
        hosts_down=sum(down_shares(composition, spec.duration_s).values()),
        absorbed=len(composition.absorbed),
        withheld=len(composition.withheld),
        most_hosts_down=most_down(composition),
        late_heals=sum(event.at + event.heal_after > spec.duration_s for event in events),
    )


def _strikes(events: Iterable[FaultEvent]) -> int:
    """On hosts: one for each target."""
    return sum(len(event.targets) for event in events if not event.kind.service)
