"""What can fail, how often and for how long: the fault spec, by itself or inside an experiment.

A plan is drawn from random processes, from faults that are listed one by one, or from both. Times are in seconds,
rates per second.
"""

from __future__ import annotations

from collections import defaultdict
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Annotated

from pydantic import Field, ValidationInfo, field_validator, model_validator

from experiments.delays import Delay, HealAfter, HealDelay, new_machine, set_delay
from experiments.documents.field_types import Label
from experiments.documents.parsing import Misfit, NonNegative, Positive, Spec
from experiments.errors import LEFT_OUT, BadInput
from experiments.fault_kinds import GATEWAY, OPTIONS, PLAIN, Direction, FaultKind, FaultOptions


class FaultScope(StrEnum):
    """What one clock of a fault process strikes when it ticks."""

    HOST = "host"  # every host has a clock of its own
    DOMAIN = "domain"  # every domain has a clock that takes all of its hosts
    CLUSTER = "cluster"  # one clock takes all hosts


class Arrivals(StrEnum):
    """In which order the hosts that a burst has taken come back."""

    ONE_BY_ONE = "one-by-one"  # each after a delay of its own
    TOGETHER = "together"  # all when the first would, once the last has died: the best case of `incremental`


class GapLaw(StrEnum):
    """The law of the times between two ticks of a clock; its mean is 1 / rate."""

    EXPONENTIAL = "exponential"
    WEIBULL = "weibull"  # shape below 1: faults come in clusters; above 1: with age
    LOGNORMAL = "lognormal"  # shape: the standard deviation of the gap's logarithm


NOT_THE_GATEWAY = (
    "a worker: no fault strikes the gateway, since all depends on it; broker-kill, driver-kill and master-kill strike "
    "its services"
)
LARGEST_SCALE = 1e6  # a new machine then takes 4 to 11 years
LONGEST_PACKET_DELAY_S = 60.0  # to connect then takes longer than Kafka's clients wait: it is a kind of partition
SHAPES = {GapLaw.WEIBULL: (0.2, 100.0), GapLaw.LOGNORMAL: (0.01, 2.5)}  # wider, one gap is longer than any run


class FaultAction(Spec):
    """What a fault does, and for how long; see `FaultSpec.heal_delay` for those that do not say.

    `peers`, `direction`, `cpu_share` and `delay` are options of the kinds that know them.
    """

    kind: Annotated[FaultKind, Field(description="what the fault does")] = FaultKind.KILL
    peers: Annotated[
        tuple[Label, ...], Field(description="partition: hosts from which the target is cut off; by default all others")
    ] = ()
    direction: Annotated[Direction, Field(description="partition: which packets are dropped")] = Direction.BOTH
    cpu_share: Annotated[float, Field(gt=0, le=1, description="slow: share of time in which processes run")] = 1.0
    delay: Annotated[
        float, Field(ge=0, le=LONGEST_PACKET_DELAY_S, description="slow: delay of outgoing packets [s]")
    ] = 0.0
    heal_after: Annotated[
        HealAfter | None, Field(description="seconds from the strike to the heal: a number or a law")
    ] = None

    @property
    def options(self) -> FaultOptions:
        """The options as one value; they are `PLAIN` where none is set."""
        return FaultOptions(self.peers, self.direction, self.cpu_share, self.delay)

    @model_validator(mode="after")
    def _kind_knows_the_options(self) -> FaultAction:
        for name, value in self.options._asdict().items():
            if value != getattr(PLAIN, name) and name not in OPTIONS.get(self.kind, ()):
                knowing = next(kind for kind, names in OPTIONS.items() if name in names)
                written = self.model_dump(mode="json")[name]
                raise Misfit(name, written, f"an option of kind {knowing}: kind {self.kind} takes no {name}")
        if self.kind is FaultKind.SLOW and self.options == PLAIN:
            raise Misfit(
                "cpu_share", self.cpu_share, "a share below 1, or a delay above 0: kind slow needs one of them"
            )
        return self

    @model_validator(mode="after")
    def _kind_ends(self) -> FaultAction:
        if self.heal_after is None and self.kind.needs_an_end:
            raise Misfit("heal_after", LEFT_OUT, f"a delay in seconds: nothing else ends a fault of kind {self.kind}")
        return self


class FaultProcess(FaultAction):
    """A random law of faults: each host, each domain, or the cluster has a clock that ticks `rate` times a second.

    With a spread the hosts that a tick takes die one by one, each at a uniform offset from it.
    """

    scope: Annotated[FaultScope, Field(description="what has a clock: each host, each domain, or the cluster")] = (
        FaultScope.HOST
    )
    domains: Annotated[tuple[Label, ...], Field(description="for scope domain: names or patterns such as rack-*")] = ()
    rate: Annotated[Positive, Field(description="ticks of each clock per second")]
    law: Annotated[GapLaw, Field(description="law of the time between two ticks")] = GapLaw.EXPONENTIAL
    shape: Annotated[Positive | None, Field(description="parameter of laws weibull and lognormal")] = None
    spread: Annotated[NonNegative, Field(description="seconds over which the hosts of one tick are struck")] = 0.0

    @property
    def shows_its_law(self) -> bool:
        """Whether planned faults can be held against it: a spread hides the gaps, but for exponential ones."""
        return self.law is GapLaw.EXPONENTIAL or not self.spread

    @model_validator(mode="after")
    def _service_has_one_clock(self) -> FaultProcess:
        if self.kind.service and self.scope is not FaultScope.HOST:
            raise Misfit("scope", self.scope.value, f"no scope: {self.kind} strikes one service of the gateway")
        return self

    @model_validator(mode="after")
    def _fields_go_together(self) -> FaultProcess:
        if self.spread and self.scope is FaultScope.HOST:
            allowed = "none with scope host: only the hosts of a domain or cluster can be struck one after the other"
            raise Misfit("spread", self.spread, allowed)
        if self.domains and self.scope is not FaultScope.DOMAIN:
            raise Misfit("domains", list(self.domains), f"none with scope {self.scope}: they are for scope domain")
        if self.law in SHAPES:
            low, high = SHAPES[self.law]
            if not (self.shape and low <= self.shape <= high):
                shape = LEFT_OUT if self.shape is None else self.shape
                raise Misfit("shape", shape, f"a number from {low:g} to {high:g} with law {self.law}")
        elif self.shape is not None:
            raise Misfit("shape", self.shape, f"none with law {self.law}: it is for weibull and lognormal")
        return self


class ListedFault(FaultAction):
    """A fault at a set time, in the words of a plan's events. One that strikes a service needs no targets."""

    at: Annotated[NonNegative, Field(description="seconds from the start of the window")]
    targets: Annotated[tuple[Label, ...], Field(validate_default=True, description="hosts that are struck")] = ()
    cause: Annotated[Label, Field(description="label that is shown with the fault")] = "listed"
    heal_after: Annotated[Delay | None, Field(description="seconds from the strike to the heal")] = None

    @field_validator("targets")
    @classmethod
    def _targets_of_the_kind(cls, targets: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        kind = info.data.get("kind")  # None where that is wrong itself
        if kind is not None and kind.service:
            if targets not in ((), (GATEWAY,)):
                raise ValueError(f"no target, or {GATEWAY}: {kind} strikes a service there")
            return (GATEWAY,)
        return targets

    @model_validator(mode="after")
    def _strikes_something(self) -> ListedFault:
        if not self.targets:
            given = list(self.targets) if "targets" in self.model_fields_set else LEFT_OUT
            raise Misfit("targets", given, "one host or more: the field is required")
        return self


class HostBurst(FaultAction):
    """A correlated failure at a set time: some hosts, drawn by the seed, die one by one within the spread."""

    at: Annotated[NonNegative, Field(description="seconds from the start of the window")]
    hosts: Annotated[int, Field(ge=1, description="how many hosts are struck")]
    domains: Annotated[
        int | None,
        Field(ge=1, description="number of failure domains of these hosts, at least one host in each; by default any"),
    ] = None
    spread: Annotated[NonNegative, Field(description="seconds over which these hosts are struck")] = 0.0
    arrivals: Annotated[
        Arrivals, Field(description="whether the hosts return one by one, or all together with the first")
    ] = Arrivals.ONE_BY_ONE

    @model_validator(mode="after")
    def _takes_hosts(self) -> HostBurst:
        if not self.kind.loses_the_host:
            lose = ", ".join(kind for kind in FaultKind if kind.loses_the_host)
            raise Misfit("kind", self.kind.value, f"{lose}: new hosts replace those that a burst strikes")
        if self.domains is not None and self.domains > self.hosts:
            raise Misfit("domains", self.domains, f"at most {self.hosts}, as many as hosts are struck")
        return self


class FaultSpec(Spec):
    """Fault processes and listed faults on hosts (each with all the domains that it is in) over a duration.

    Domains may nest and overlap: they are sets of hosts. Inside an experiment the duration defaults to the measurement
    window and the hosts to all workers. `experiments.trace` reads the faults of a trace into the listed ones.
    """

    duration: Annotated[
        Positive | None, Field(description="seconds in which faults can begin; by default the window")
    ] = None
    hosts: dict[Label, tuple[Label, ...]] = Field({}, description="hosts with their domains; by default all workers")
    max_down: Annotated[int | None, Field(ge=1, le=1_000_000, description="the most hosts out of service at once")] = (
        None
    )
    time_scale: Annotated[
        float,
        Field(
            gt=0,
            le=LARGEST_SCALE,
            description="scale of the default `heal_after`: seconds in the run for one second in a cloud",
        ),
    ] = 1.0
    processes: Annotated[tuple[FaultProcess, ...], Field(description="random laws of faults")] = ()
    events: Annotated[tuple[ListedFault, ...], Field(description="faults at set times")] = ()
    bursts: Annotated[tuple[HostBurst, ...], Field(description="correlated failures at set times")] = ()
    trace: Annotated[str | None, Field(description="CSV or JSON file of further faults, which the run replays")] = None

    @property
    def duration_s(self) -> float:
        """The duration of a spec that has one. Raises `BadInput` if it has none."""
        if self.duration is None:
            raise BadInput("duration", LEFT_OUT, "a finite number of seconds above 0")
        return self.duration

    @property
    def can_fail(self) -> bool:
        """Whether there is anything that a plan could hold."""
        return bool(self.processes or self.events or self.bursts)

    @property
    def kinds(self) -> set[FaultKind]:
        """The kinds of faults that a plan could hold."""
        return {fault.kind for fault in (*self.processes, *self.events, *self.bursts)}

    @property
    def failure_rate(self) -> float:
        """Rate of fault events in the cluster [1/s]: the sum over all clocks, and what has a set time by the duration.

        A tick that is spread over time is one event for each host that it takes, and so is a burst.
        """
        at_set_times = len(self.events) + sum(burst.hosts for burst in self.bursts)
        listed = at_set_times / self.duration if self.duration else 0.0
        return sum(process.rate * self._events_per_tick(process) for process in self.processes) + listed

    @property
    def longest_heal_s(self) -> float:
        """The longest delay until what was struck returns."""
        faults = (*self.processes, *self.events, *self.bursts)
        return max((self.heal_delay(fault).longest_s for fault in faults), default=0.0)

    def heal_delay(self, fault: FaultAction) -> HealDelay:
        """Until what a fault struck returns: as it says; else a new machine takes a cloud's time, a service none.

        A listed fault takes the mean of a cloud's law.
        """
        if isinstance(fault.heal_after, float):
            return set_delay(fault.heal_after)
        if fault.heal_after is not None:
            return fault.heal_after
        law = new_machine(self.time_scale) if fault.kind.loses_the_host else set_delay(0.0)
        return set_delay(law.mean_s) if isinstance(fault, ListedFault) else law

    @field_validator("hosts")
    @classmethod
    def _gateway_stays(cls, hosts: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
        if GATEWAY in hosts:
            raise Misfit("", GATEWAY, NOT_THE_GATEWAY)
        return hosts

    def taken(self, process: FaultProcess) -> dict[str, tuple[str, ...]]:
        """The hosts that each clock of a process takes, by the name of the host or domain; "all" for the cluster."""
        if process.kind.service:
            return {process.kind.service: (GATEWAY,)}
        if process.scope is FaultScope.HOST:
            return {host: (host,) for host in self.hosts}
        if process.scope is FaultScope.CLUSTER:
            return {"all": tuple(sorted(self.hosts))}
        found = self.members
        wanted = process.domains or ("*",)
        return {name: tuple(found[name]) for name in sorted(found) if any(is_meant(name, by) for by in wanted)}

    @property
    def members(self) -> dict[str, list[str]]:
        """The hosts of each domain."""
        found = defaultdict(list)
        for host in sorted(self.hosts):
            for domain in set(self.hosts[host]):
                found[domain].append(host)
        return dict(found)

    def _events_per_tick(self, process: FaultProcess) -> int:
        """How many events there are when every clock of a process has ticked once."""
        taken = self.taken(process).values()
        return sum(map(len, taken)) if process.spread else len(taken)


def is_meant(domain: str, pattern: str) -> bool:
    """Whether a name or pattern of domains means this one."""
    return domain == pattern or fnmatchcase(domain, pattern)  # a name may hold brackets, too
