"""What can fail, how often and for how long: the fault spec, by itself or inside an experiment.

A plan is drawn from random processes, from faults that are listed one by one, or from both. Times are in seconds,
rates per second.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Annotated

from pydantic import Field, model_validator

from experiments.fault_kinds import GATEWAY, Direction, FaultKind, FaultOptions
from experiments.parsing import Misfit, NonNegative, Positive, Spec

MOST_FAULTS = 1_000_000


class FaultScope(StrEnum):
    HOST = "host"  # every host has a clock of its own
    DOMAIN = "domain"  # every domain has a clock that takes all of its hosts
    CLUSTER = "cluster"  # one clock takes all hosts


class GapLaw(StrEnum):
    """The law of the times between two ticks of a clock; its mean is 1 / rate."""

    EXPONENTIAL = "exponential"
    WEIBULL = "weibull"  # shape below 1: faults come in clusters; above 1: with age
    LOGNORMAL = "lognormal"  # shape: the standard deviation of the gap's logarithm


SHAPES = {GapLaw.WEIBULL: (0.2, 100.0), GapLaw.LOGNORMAL: (0.01, 2.5)}  # wider, one gap is longer than any run


class HealDelay(Spec):
    """A uniform delay between two bounds."""

    low: NonNegative
    high: NonNegative

    @model_validator(mode="after")
    def _ordered(self) -> HealDelay:
        if self.high < self.low:
            raise ValueError(f"high ({self.high:g}) must not be below low ({self.low:g})")
        return self


class FaultAction(Spec):
    """What a fault does. `peers`, `direction`, `cpu_share` and `delay` are options of the kinds that know them."""

    kind: FaultKind = FaultKind.KILL
    peers: Annotated[tuple[str, ...], Field(description="partition: from which hosts; by default from all others")] = ()
    direction: Annotated[Direction, Field(description="partition: which packets are dropped")] = Direction.BOTH
    cpu_share: Annotated[float, Field(gt=0, le=1, description="slow: share of time in which processes run")] = 1.0
    delay: Annotated[NonNegative, Field(description="slow: seconds by which messages leave later")] = 0.0

    @property
    def options(self) -> FaultOptions:
        return FaultOptions(self.peers, self.direction, self.cpu_share, self.delay)


class FaultProcess(FaultAction):
    """A random law of faults: each host, each domain, or the cluster has a clock that ticks `rate` times a second.

    With a spread the hosts that a tick takes die one by one, each at a uniform offset from it.
    """

    scope: FaultScope = FaultScope.HOST
    domains: Annotated[tuple[str, ...], Field(description="for scope domain: names or patterns such as rack-*")] = ()
    rate: Positive
    law: GapLaw = GapLaw.EXPONENTIAL
    shape: Positive | None = None
    spread: NonNegative = 0.0
    heal_after: NonNegative | HealDelay = 0.0

    @property
    def heal_bounds_s(self) -> tuple[float, float]:
        """The bounds of the uniform delay until a struck host returns."""
        heal = self.heal_after
        return (heal.low, heal.high) if isinstance(heal, HealDelay) else (heal, heal)

    @property
    def shows_its_law(self) -> bool:
        """Whether planned faults can be held against it: a spread hides the gaps, but for exponential ones."""
        return self.law is GapLaw.EXPONENTIAL or not self.spread

    @model_validator(mode="after")
    def _fields_go_together(self) -> FaultProcess:
        if self.spread and self.scope is FaultScope.HOST:
            raise ValueError("spread is for scope domain or cluster: one host cannot die spread over time")
        if self.domains and self.scope is not FaultScope.DOMAIN:
            raise ValueError("domains is for scope domain")
        low, high = SHAPES.get(self.law, (None, None))
        if low is None and self.shape is not None:
            raise ValueError("shape is for law weibull or lognormal")
        if low is not None and not (self.shape and low <= self.shape <= high):
            raise ValueError(f"shape must be from {low:g} to {high:g} with law {self.law.value}")
        return self


class ListedFault(FaultAction):
    """A fault at a set time, in the words of a plan's events."""

    at: NonNegative
    targets: Annotated[tuple[str, ...], Field(min_length=1)]
    cause: str = "listed"
    heal_after: NonNegative = 0.0


class FaultSpec(Spec):
    """Fault processes and listed faults on hosts (each with all the domains that it is in) over a duration.

    Domains may nest and overlap: they are sets of hosts. Inside an experiment the duration defaults to the measurement
    window and the hosts to all workers. `experiments.trace` reads the faults of a trace into the listed ones.
    """

    duration: Positive | None = None
    hosts: dict[str, tuple[str, ...]] = Field({})
    max_down: Annotated[int | None, Field(ge=1, description="the most hosts out of service at once")] = None
    processes: tuple[FaultProcess, ...] = ()
    events: tuple[ListedFault, ...] = ()
    trace: Annotated[str | None, Field(description="CSV or JSON file of faults to replay as well")] = None

    @property
    def can_fail(self) -> bool:
        """Whether there is anything that a plan could hold."""
        return bool(self.processes or self.events)

    @property
    def failure_rate(self) -> float:
        """Rate of fault events in the cluster [1/s]: the sum over all clocks, and the listed faults by the duration.

        A tick that is spread over time is one event for each host that it takes.
        """
        listed = len(self.events) / self.duration if self.duration else 0.0
        return sum(process.rate * self._events_per_tick(process) for process in self.processes) + listed

    @property
    def longest_heal_s(self) -> float:
        """The longest delay until a struck host returns."""
        drawn = [process.heal_bounds_s[1] for process in self.processes]
        return max([*drawn, *(fault.heal_after for fault in self.events)], default=0.0)

    def taken(self, process: FaultProcess) -> dict[str, tuple[str, ...]]:
        """The hosts that each clock of a process takes, by the name of the host or domain; "all" for the cluster."""
        if process.kind.service:
            return {process.kind.service: (GATEWAY,)}
        if process.scope is FaultScope.HOST:
            return {host: (host,) for host in self.hosts}
        if process.scope is FaultScope.CLUSTER:
            return {"all": tuple(sorted(self.hosts))}
        found = defaultdict(list)
        for host in sorted(self.hosts):
            for domain in set(self.hosts[host]):
                found[domain].append(host)
        wanted = process.domains or ("*",)
        return {name: tuple(found[name]) for name in sorted(found) if any(_is_meant(name, by) for by in wanted)}

    def _events_per_tick(self, process: FaultProcess) -> int:
        """How many events there are when every clock of a process has ticked once."""
        taken = self.taken(process).values()
        return sum(map(len, taken)) if process.spread else len(taken)


def misfits(spec: FaultSpec) -> Iterator[Misfit]:
    """What keeps a fault spec with its duration and hosts filled in from giving a plan, the first problem first."""
    if spec.duration is None:
        yield Misfit("duration", None, "a finite number of seconds above 0")
    if not spec.hosts:
        yield Misfit("hosts", {}, "at least one host")
    for index, process in enumerate(spec.processes):
        yield from _unknown_domains(spec, f"processes.{index}", process)
    for index, fault in enumerate(spec.events):
        yield from _listed_misfits(spec, f"events.{index}", fault)
    expected = spec.failure_rate * (spec.duration or 0.0)
    if expected > MOST_FAULTS:
        allowed = f"rates and a duration that make at most {MOST_FAULTS:,} faults"
        yield Misfit("processes", f"{expected:.3g} expected faults", allowed)


def _unknown_domains(spec: FaultSpec, field: str, process: FaultProcess) -> Iterator[Misfit]:
    if process.scope is not FaultScope.DOMAIN:
        return
    if not spec.taken(process.model_copy(update={"domains": ()})):
        yield Misfit(f"{field}.scope", process.scope.value, "host or cluster, as long as no host names its domains")
    known = sorted({domain for domains in spec.hosts.values() for domain in domains})
    for pattern in process.domains:
        if not any(_is_meant(domain, pattern) for domain in known):
            yield Misfit(f"{field}.domains", pattern, f"a domain of the hosts ({_some(known)}), or a pattern of them")


def _listed_misfits(spec: FaultSpec, field: str, fault: ListedFault) -> Iterator[Misfit]:
    if spec.duration is not None and fault.at >= spec.duration:
        yield Misfit(f"{field}.at", fault.at, f"a time below the duration of {spec.duration:g} s")
    yield from target_misfits(spec, f"{field}.targets", fault)


def target_misfits(spec: FaultSpec, field: str, fault: ListedFault) -> Iterator[Misfit]:
    """Targets that are no hosts of the spec, or that are named twice."""
    for host in fault.targets:
        if host not in spec.hosts:
            yield Misfit(field, host, f"a host of the spec: {_some(list(spec.hosts))}")
    if len(set(fault.targets)) < len(fault.targets):
        yield Misfit(field, list(fault.targets), "every host once")


def _is_meant(domain: str, pattern: str) -> bool:
    return domain == pattern or fnmatchcase(domain, pattern)  # a name may hold brackets, too


def _some(names: list[str], most: int = 8) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
