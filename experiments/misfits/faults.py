"""Why a fault spec cannot give a plan, once its duration and hosts are known."""

from __future__ import annotations

import math
from collections.abc import Iterator

from experiments.documents.parsing import Misfit
from experiments.documents.repetition import repeated
from experiments.errors import LEFT_OUT
from experiments.fault_kinds import GATEWAY
from experiments.faults import (
    NOT_THE_GATEWAY,
    FaultAction,
    FaultProcess,
    FaultScope,
    FaultSpec,
    HostBurst,
    ListedFault,
    is_meant,
)
from experiments.wording import exact

MOST_FAULTS = 1_000_000
MOST_CLOCKS = 1_000_000


def misfits(spec: FaultSpec) -> Iterator[Misfit]:
    """What keeps a fault spec with its duration and hosts filled in from giving a plan, the first problem first."""
    if spec.duration is None:
        yield Misfit("duration", LEFT_OUT, "a finite number of seconds above 0")
    if not spec.hosts:
        yield Misfit("hosts", spec.hosts if "hosts" in spec.model_fields_set else LEFT_OUT, "at least one host")
    yield from _too_many_clocks(spec)
    for index, process in enumerate(spec.processes):
        struck = {host for hosts in spec.taken(process).values() for host in hosts}
        for misfit in (*_unknown_domains(spec, process), *_peer_misfits(spec, process, struck)):
            yield _within(f"processes.{index}", misfit)
    for index, fault in enumerate(spec.events):
        if spec.duration is not None and fault.at >= spec.duration:
            yield Misfit(f"events.{index}.at", fault.at, f"a time below the duration of {exact(spec.duration)} s")
        for misfit in listed_misfits(spec, fault):
            yield _within(f"events.{index}", misfit)
    for index, burst in enumerate(spec.bursts):
        for misfit in _burst_misfits(spec, burst):
            yield _within(f"bursts.{index}", misfit)
    expected = spec.failure_rate * (spec.duration or 0.0)
    if expected > MOST_FAULTS:
        allowed = f"rates and a duration that make at most {MOST_FAULTS:,} faults"
        yield Misfit("processes", f"{expected:.3g} expected faults", allowed)


def _too_many_clocks(spec: FaultSpec) -> Iterator[Misfit]:
    """Counted before any is made: some kilobytes of processes on some kilobytes of hosts would take for ever."""
    hosts, processes = len(spec.hosts), len(spec.processes)
    if hosts * processes > MOST_CLOCKS:
        allowed = f"at most {MOST_CLOCKS:,}: each process may have a clock for each host"
        yield Misfit("processes", f"{processes} processes times {hosts} hosts", allowed)
    patterns = sum(len(process.domains) for process in spec.processes)
    domains = len({domain for domains in spec.hosts.values() for domain in domains})
    if patterns * domains > MOST_CLOCKS:
        allowed = f"at most {MOST_CLOCKS:,}: each pattern is compared with each domain"
        yield Misfit("processes", f"{patterns} patterns times {domains} domains", allowed)


def _burst_misfits(spec: FaultSpec, burst: HostBurst) -> Iterator[Misfit]:
    """A burst after the end, or one that takes more than there is."""
    if spec.duration is not None and burst.at + burst.spread >= spec.duration:
        yield Misfit(
            "at",
            burst.at,
            f"a time more than {exact(burst.spread)} s, the spread, before the end of the duration of"
            f" {exact(spec.duration)} s",
        )
    if burst.hosts > len(spec.hosts):
        yield Misfit("hosts", burst.hosts, f"at most {len(spec.hosts)}, as many as there are")
    if burst.domains is None:
        return
    if burst.domains > len(spec.members):
        yield Misfit(
            "domains", burst.domains, f"at most {len(spec.members)}, the number of domains that the hosts name"
        )
    elif burst.hosts > (fewest := _fewest_hosts(spec, burst.domains)):
        yield Misfit("hosts", burst.hosts, f"at most {fewest}, which any {burst.domains} domains have")


def _fewest_hosts(spec: FaultSpec, domains: int) -> int:
    """A number of hosts that any so many domains have together, though they may nest and overlap.

    The largest of them has at least as many hosts as the last of the `domains` smallest. And the sum of their sizes
    counts each host at most as often as a host has domains.
    """
    smallest = sorted(map(len, spec.members.values()))[:domains]
    most_domains = max(len(set(of_host)) for of_host in spec.hosts.values())
    return max(smallest[-1], math.ceil(sum(smallest) / most_domains))


def listed_misfits(spec: FaultSpec, fault: ListedFault) -> Iterator[Misfit]:
    """Targets and peers of a listed fault that are no hosts of the spec, or that are named twice."""
    for host in fault.targets:
        if host == GATEWAY and not fault.kind.service:
            yield Misfit("targets", host, NOT_THE_GATEWAY)
        if host != GATEWAY and host not in spec.hosts:
            yield Misfit("targets", host, f"a host of the spec: {_some(list(spec.hosts))}")
    if repeated(fault.targets):
        yield Misfit("targets", list(fault.targets), "every host once")
    yield from _peer_misfits(spec, fault, set(fault.targets))


def _peer_misfits(spec: FaultSpec, fault: FaultAction, struck: set[str]) -> Iterator[Misfit]:
    """Peers that are unknown, twice there, or no others than the very host that is to be cut off from them."""
    for peer in fault.peers:
        if peer != GATEWAY and peer not in spec.hosts:
            yield Misfit("peers", peer, f"{GATEWAY}, or a host of the spec: {_some(list(spec.hosts))}")
    if repeated(fault.peers):
        yield Misfit("peers", list(fault.peers), "every host once")
    if len(fault.peers) == 1 and fault.peers[0] in struck:
        yield Misfit("peers", fault.peers[0], "another host: this one is struck itself, so it cannot be a peer")


def _unknown_domains(spec: FaultSpec, process: FaultProcess) -> Iterator[Misfit]:
    if process.scope is not FaultScope.DOMAIN:
        return
    if not spec.taken(process.model_copy(update={"domains": ()})):
        yield Misfit("scope", process.scope.value, "host or cluster, as long as no host names its domains")
    known = sorted({domain for domains in spec.hosts.values() for domain in domains})
    for pattern in process.domains:
        if not any(is_meant(domain, pattern) for domain in known):
            yield Misfit("domains", pattern, f"a domain of the hosts ({_some(known)}), or a pattern of them")


def _within(field: str, misfit: Misfit) -> Misfit:
    return Misfit(f"{field}.{misfit.field}", misfit.value, str(misfit))


def _some(names: list[str], most: int = 8) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
