"""The clocks of a fault spec: each ticks by the law of its process and takes its hosts with it.

Every host, every domain or the cluster has a clock of its own for each process. The clocks tick on while hosts are
down, so the rate of the cluster is exactly the sum of the clocks' rates (for domains: Marshall and Olkin's shocks).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from chaos.events import DECIMALS, FaultEvent
from chaos.laws import delay_s, gaps
from experiments.delays import HealDelay
from experiments.faults import FaultProcess, FaultSpec

FEW_TICKS = 10.0


@dataclass(frozen=True)
class Clock:
    """One clock. Its cause names its random streams, which it therefore shares with no other clock."""

    cause: str
    process: FaultProcess
    hosts: tuple[str, ...]
    heal_delay: HealDelay

    def events(self, seed: int, duration_s: float) -> Iterator[FaultEvent]:
        """The faults within the duration in the order of their times.

        They are drawn as they are asked for, but those of a clock that ticks so seldom that they take less memory than
        the state of its random streams.
        """
        drawn = self._drawn(seed, duration_s)
        return iter(list(drawn)) if self.process.rate * duration_s < FEW_TICKS else drawn

    def _drawn(self, seed: int, duration_s: float) -> Iterator[FaultEvent]:
        """What a tick spreads over time may come after the next tick: it waits until no earlier fault can follow."""
        waiting: list[FaultEvent] = []
        struck: list[tuple[tuple[str, ...], Random]] = []
        for tick_s in self.ticks(seed, duration_s):
            struck = struck or self._struck(seed)
            while waiting and waiting[0].at < round(tick_s, DECIMALS):
                yield heapq.heappop(waiting)
            for targets, stream in struck:
                event = self._event(tick_s, targets, stream)
                if event.at < duration_s:
                    heapq.heappush(waiting, event)
        yield from sorted(waiting)

    def ticks(self, seed: int, duration_s: float) -> Iterator[float]:
        """The times [s] at which the clock ticks within the duration."""
        stream, law, rate = self._stream(seed, "clock"), gaps(self.process), self.process.rate
        at_s = law.first(stream) / rate
        while at_s < duration_s:
            yield at_s
            at_s += law.next(stream) / rate

    def _struck(self, seed: int) -> list[tuple[tuple[str, ...], Random]]:
        """What each tick strikes, one by one or at once, each with the stream of its offsets and heal delays."""
        if self.process.spread:
            return [((host,), self._stream(seed, f"host {host}")) for host in self.hosts]
        return [(self.hosts, self._stream(seed, "all hosts"))]

    def _event(self, tick_s: float, targets: tuple[str, ...], stream: Random) -> FaultEvent:
        process = self.process
        at_s = round(tick_s + process.spread * stream.random(), DECIMALS)
        heal_s = round(delay_s(self.heal_delay, stream), DECIMALS)
        return FaultEvent(at_s, self.cause, targets, process.kind, heal_s, process.options)

    def _stream(self, seed: int, use: str) -> Random:
        return Random(f"{seed}\n{self.cause}\n{use}")


def clocks(spec: FaultSpec) -> Iterator[Clock]:
    """Every clock of a spec that names its hosts."""
    for index in range(len(spec.processes)):
        yield from clocks_of(spec, index)


def clocks_of(spec: FaultSpec, index: int) -> Iterator[Clock]:
    """The clocks of one process of a spec, by its position."""
    process = spec.processes[index]
    whose, heal_delay = "service" if process.kind.service else process.scope.value, spec.heal_delay(process)
    for name, hosts in spec.taken(process).items():
        yield Clock(f"{whose} {name} (process {index})", process, hosts, heal_delay)
