"""How long a plan for 10,000 hosts and a year takes: every host, rack, power unit and the cluster have clocks.

Target: under 2 s of one core, streamed. `extra_info` has the peak memory of Python objects while the plan passes by and
when all events are drawn first and sorted, as the plain way does it.
"""

import math
import time
import tracemalloc
from collections.abc import Callable, Iterator
from random import Random
from typing import cast

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from chaos.events import FaultEvent
from chaos.plan import draw
from experiments.delays import UniformDelay
from experiments.fault_kinds import FaultKind
from experiments.faults import FaultProcess, FaultSpec

HOSTS, YEAR_S, TARGET_S = 10_000, 365 * 86_400.0, 2.0
CLOUD_S = {"low": 120, "high": 360}


def cluster(hosts: int, years: float) -> FaultSpec:
    """Hosts in racks of 40 and power domains of 1,000, which fail alone, by domain and all at once."""
    return FaultSpec.model_validate(
        {
            "duration": years * YEAR_S,
            "hosts": {f"host-{i:05}": (f"rack-{i // 40}", f"power-{i // 1000}") for i in range(hosts)},
            "processes": [
                {"rate": 4 / YEAR_S, "heal_after": CLOUD_S},
                {"rate": 1 / YEAR_S, "scope": "domain", "domains": ["rack-*"], "spread": 120, "heal_after": CLOUD_S},
                {"rate": 0.5 / YEAR_S, "scope": "domain", "domains": ["power-*"], "heal_after": 600},
                {"rate": 0.5 / YEAR_S, "scope": "cluster", "heal_after": 3600},
            ],
        }
    )


SPEC = cluster(HOSTS, 1)


def streamed(seed: int, spec: FaultSpec = SPEC) -> int:
    """Draw the plan one event at a time and keep none; returns how many there were."""
    return sum(1 for _ in draw(spec, seed))


def by_hand(seed: int) -> int:
    """Every clock drawn to its end, and all events sorted at last: no streaming, and one stream of numbers a clock."""
    events = sorted(event for cause, process, hosts in _clocks() for event in _drawn(seed, cause, process, hosts))
    return len(events)


def _clocks() -> Iterator[tuple[str, FaultProcess, tuple[str, ...]]]:
    for index, process in enumerate(SPEC.processes):
        for name, hosts in SPEC.taken(process).items():
            yield f"{process.scope.value} {name} (process {index})", process, hosts


def _drawn(seed: int, cause: str, process: FaultProcess, hosts: tuple[str, ...]) -> Iterator[FaultEvent]:
    stream, at_s, heal = Random(f"{seed}\n{cause}"), 0.0, cast(UniformDelay, SPEC.heal_delay(process))
    while (at_s := at_s - math.log1p(-stream.random()) / process.rate) < YEAR_S:
        for targets in [(host,) for host in hosts] if process.spread else [hosts]:
            offset_s, heal_s = process.spread * stream.random(), heal.low + (heal.high - heal.low) * stream.random()
            yield FaultEvent(round(at_s + offset_s, 6), cause, targets, FaultKind.KILL, round(heal_s, 6))


def peak_mb(work: Callable[..., int], *arguments: FaultSpec) -> float:
    """The most memory [MB] that Python held at once while it drew a plan with seed 1."""
    tracemalloc.start()
    work(1, *arguments)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


@pytest.mark.parametrize("work", [streamed, by_hand])
def test_a_plan_for_10_000_hosts_and_a_year(benchmark: BenchmarkFixture, work: Callable[[int], int]) -> None:
    processor = time.process_time()
    count = benchmark.pedantic(work, args=(1,), rounds=3)
    processor = (time.process_time() - processor) / 3
    expected = SPEC.failure_rate * YEAR_S
    benchmark.extra_info |= {"processor_s": processor, "events": count, "peak_mb": peak_mb(work)}
    assert abs(count - expected) < 4 * math.sqrt(40 * expected)  # a burst is 40 events
    assert work is by_hand or processor < TARGET_S


def test_a_longer_plan_takes_no_more_memory(benchmark: BenchmarkFixture) -> None:
    """The state of the clocks' random streams is all that is held, once there are more faults than that."""
    decade_mb = peak_mb(streamed, cluster(1000, 10))
    century_mb = benchmark.pedantic(peak_mb, args=(streamed, cluster(1000, 100)), rounds=1)
    benchmark.extra_info |= {"decade_mb": decade_mb, "century_mb": century_mb}
    assert century_mb < 1.2 * decade_mb
