"""Kills of a host that is reached over a session, at planned moments: never before, and each with its proof.

How late they come, `benchmarks/injector/kill_lateness.py` measures.
"""

from __future__ import annotations

import time

from experiments.fault_kinds import FaultKind
from infra.cluster import Driver, Handle

KILLS, AHEAD_NS = 5, 50_000_000


def assert_kills_wait_for_their_moment(driver: Driver, cluster: Handle) -> None:
    """Kill a process on worker-1 again and again, each at a planned moment; the worker is up again afterwards."""
    driver.prepare(cluster, "worker-1", FaultKind.KILL).fire()
    for _ in range(KILLS):
        driver.spawn(cluster, "worker-1", "victim", ["sleep", "60"])
        strike = driver.prepare(cluster, "worker-1", FaultKind.KILL)
        assert strike.refresh()
        due_ns = time.time_ns() + AHEAD_NS
        strike.shoot(due_ns)
        proof = strike.fire()
        assert proof.holds
        assert proof.fired_ns >= due_ns
        assert proof.done["processes killed"] >= 1
    assert driver.heal(cluster, "worker-1", FaultKind.KILL).holds
