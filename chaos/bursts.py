"""Bursts: which hosts a correlated failure strikes, when each of them dies, and when each is back.

All of it is drawn from a random stream of the burst's own, so that a further burst, or another order in which hosts
return, leaves hosts and moments of death as they are.
"""

from __future__ import annotations

from random import Random

from chaos.events import DECIMALS, FaultEvent
from chaos.laws import delay_s
from experiments.faults import Arrivals, FaultSpec, HostBurst


def burst_events(spec: FaultSpec, seed: int) -> list[FaultEvent]:
    """The events of all bursts of a spec that names its hosts, in the order of their times; one for each host."""
    return sorted(event for index in range(len(spec.bursts)) for event in _events(spec, index, seed))


def _events(spec: FaultSpec, index: int, seed: int) -> list[FaultEvent]:
    burst, cause = spec.bursts[index], f"burst {index}"
    stream = Random(f"{seed}\n{cause}")
    hosts = _hosts(spec, burst, stream)
    deaths_s = [burst.at + burst.spread * stream.random() for _ in hosts]
    law = spec.heal_delay(burst)
    returns_s = [death_s + delay_s(law, stream) for death_s in deaths_s]
    if burst.arrivals is Arrivals.TOGETHER:
        returns_s = [max(min(returns_s), *deaths_s)] * len(hosts)
    return [
        FaultEvent(round(death_s, DECIMALS), cause, (host,), burst.kind, round(return_s - death_s, DECIMALS))
        for host, death_s, return_s in zip(hosts, deaths_s, returns_s, strict=True)
    ]


def _hosts(spec: FaultSpec, burst: HostBurst, stream: Random) -> list[str]:
    """One of each domain that is hit, and the others from all of these together."""
    if burst.domains is None:
        return _drawn(sorted(spec.hosts), burst.hosts, stream)
    members = spec.members
    chosen: list[str] = []
    pool: set[str] = set()
    for domain in _drawn(sorted(members), burst.domains, stream):
        pool.update(members[domain])
        if left := sorted(set(members[domain]) - set(chosen)):
            chosen += _drawn(left, 1, stream)
    return chosen + _drawn(sorted(pool - set(chosen)), burst.hosts - len(chosen), stream)


def _drawn(names: list[str], count: int, stream: Random) -> list[str]:
    """`count` of the names, in random order. Uses only `random()`, which is the same in every version of Python."""
    return sorted(names, key=lambda _: stream.random())[:count]
