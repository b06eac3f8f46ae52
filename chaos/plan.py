"""The fault plan: every fault of a run, drawn from its processes and a seed before the run starts.

Every host (or domain) has an exponential clock of its own for each process, and the clocks tick on while hosts are
down, so the rate of the cluster is exactly the sum of the clocks' rates (for domains: Marshall and Olkin's shocks).

All randomness is `random.Random` seeded by a text and read through `random()`, which Python's documentation
promises to keep: one seed gives one plan, on every machine and version.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from experiments.errors import BadInput
from experiments.parsing import parse, read_mapping
from experiments.spec import FaultKind, FaultProcess, FaultScope, FaultSpec, HealDelay

DECIMALS = 6  # a logarithm may differ in its last digit between machines; a plan in microseconds does not
MOST_EVENTS = 1_000_000


@dataclass(frozen=True, order=True)
class FaultEvent:
    """A planned fault: `at` seconds into the window the targets are struck; `heal_after` seconds later they return."""

    at: float
    cause: str
    targets: tuple[str, ...]
    kind: FaultKind
    heal_after: float

    def to_json(self) -> dict[str, Any]:
        return {
            "at": self.at,
            "kind": self.kind.value,
            "targets": list(self.targets),
            "cause": self.cause,
            "heal_after": self.heal_after,
        }


def load_fault_spec(path: str | Path) -> FaultSpec:
    """Load a fault spec from a YAML file; raises `BadInput` naming the field, its value and what is allowed."""
    return parse(FaultSpec, read_mapping(Path(path), "faults", str(path)), "faults")


def plan(spec: FaultSpec, seed: int) -> list[FaultEvent]:
    """Draw the faults of `spec` that fall within [0, duration), in the order of their times.

    The same spec and seed give the same plan. A further host, domain or process leaves the events of the others as
    they are. With a spread, a domain's shock becomes one event a host, each at a uniform offset from the shock; what
    falls beyond the duration is left out. Raises `BadInput` when the spec does not say what can fail, or for how long.
    """
    if spec.duration is None:
        raise BadInput("duration", None, "a finite number of seconds above 0")
    if not spec.hosts:
        raise BadInput("hosts", {}, "at least one host")
    if spec.failure_rate * spec.duration > MOST_EVENTS:
        expected = f"{spec.failure_rate * spec.duration:.3g} expected faults"
        raise BadInput("processes", expected, f"rates and a duration that make at most {MOST_EVENTS:,} faults")
    clocks = [clock for index, process in enumerate(spec.processes) for clock in _clocks(spec, index, process, seed)]
    return sorted(event for clock in clocks for event in clock.events(spec.duration))


@dataclass(frozen=True)
class _Clock:
    """One exponential clock. Its cause names its random streams, which it therefore shares with no other clock."""

    cause: str
    process: FaultProcess
    hosts: tuple[str, ...]
    seed: int

    def events(self, duration_s: float) -> Iterator[FaultEvent]:
        """The faults within the duration, shock by shock."""
        process = self.process
        if process.spread:
            struck = [((host,), self._stream(f"host {host}")) for host in self.hosts]
        else:
            struck = [(self.hosts, self._stream("all hosts"))]
        for shock_s in self._shocks(duration_s):
            for targets, stream in struck:
                at_s = round(shock_s + process.spread * stream.random(), DECIMALS)
                heal_s = _heal_delay(process.heal_after, stream.random())
                if at_s < duration_s:
                    yield FaultEvent(at_s, self.cause, targets, process.kind, heal_s)

    def _shocks(self, duration_s: float) -> Iterator[float]:
        stream = self._stream("clock")
        at_s = 0.0
        while (at_s := at_s - math.log1p(-stream.random()) / self.process.rate) < duration_s:
            yield at_s

    def _stream(self, use: str) -> Random:
        return Random(f"{self.seed}\n{self.cause}\n{use}")


def _clocks(spec: FaultSpec, index: int, process: FaultProcess, seed: int) -> list[_Clock]:
    scope = process.scope
    members = {host: (host,) for host in spec.hosts} if scope is FaultScope.HOST else _domains(spec)
    if not members:
        raise BadInput(f"processes.{index}.scope", scope.value, "host, as long as no host names its domains")
    return [_Clock(f"{scope.value} {name} (process {index})", process, hosts, seed) for name, hosts in members.items()]


def _domains(spec: FaultSpec) -> dict[str, tuple[str, ...]]:
    names = sorted({domain for domains in spec.hosts.values() for domain in domains})
    return {name: tuple(sorted(host for host, domains in spec.hosts.items() if name in domains)) for name in names}


def _heal_delay(law: float | HealDelay, share: float) -> float:
    """The delay at `share` (0 to 1) of a uniform law; a plain number is its own."""
    if isinstance(law, HealDelay):
        return round(law.low + (law.high - law.low) * share, DECIMALS)
    return law
