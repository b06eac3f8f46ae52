"""Kills of a host that is reached over a session, held against the moments at which they were due."""

from __future__ import annotations

import time

from experiments.fault_kinds import FaultKind
from infra.cluster import Driver, Handle

KILLS, AHEAD_NS = 20, 50_000_000
LATEST_KILL_S = 0.025  # after the planned moment, of 99 in 100 kills


def assert_kills_are_on_time(driver: Driver, cluster: Handle) -> None:
    """Kill a process on worker-1 again and again, each at a planned moment; the worker is up again afterwards."""
    driver.aim(cluster, "worker-1", FaultKind.KILL).fire()
    late_s = []
    for _ in range(KILLS):
        driver.spawn(cluster, "worker-1", "victim", ["sleep", "60"])
        aim = driver.aim(cluster, "worker-1", FaultKind.KILL)
        assert aim.refresh()
        due_ns = time.time_ns() + AHEAD_NS
        aim.shoot(due_ns)
        late_s.append((aim.fire().fired_ns - due_ns) / 1e9)
    driver.heal(cluster, "worker-1", FaultKind.KILL)
    assert min(late_s) >= 0
    assert sorted(late_s)[-2] < LATEST_KILL_S
