"""The injector and the sampler as services of a real cluster, killing and watching a real Spark worker."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from chaos.events import FaultEvent
from chaos.fault_plan import FaultPlan
from experiments.fault_kinds import FaultKind
from infra.cluster import Handle
from infra.launch import REPOSITORY
from infra.local import LocalDriver
from infra.processes import members
from journal.reader import raw_entries
from results.runs.store import write_json
from tests.unit.marked_processes import wait_for

LEAD_S = 2.0
LIMIT_S = 120.0  # more than the injector waits for a worker to join
STORY = ("striking", "injected", "healed")  # of one kill
ARM_AND_WAIT = """
import sys, time
from pathlib import Path
from infra.cluster import Handle
from infra.local import LocalDriver
command = [sys.executable, "-m", "chaos.injector", *sys.argv[1:]]
LocalDriver().spawn(Handle.load(Path(sys.argv[1])), "gateway", "injector", command)
time.sleep(600)
"""


class Injection:
    """A plan handed to an injector on the gateway, and what it journals."""

    def __init__(self, driver: LocalDriver, cluster: Handle, folder: Path) -> None:
        self.driver, self.cluster = driver, cluster
        self.plan, self.path = folder / "plan.json", folder / "injector.jsonl"

    def arm(self, *faults: tuple[float, float]) -> None:
        """Start an injector, and give it a plan once it stands by."""
        command = [sys.executable, "-m", "chaos.injector", self.cluster.root, str(self.plan), str(self.path)]
        self.driver.spawn(self.cluster, "gateway", "injector", command)
        wait_for(lambda: "standing-by" in [entry["event"] for entry in self.journal()])
        self.write_plan(*faults)

    def write_plan(self, *faults: tuple[float, float]) -> None:
        """Plan kills of worker-1 at seconds into the window, each with the delay of its return."""
        events = (FaultEvent(at, "test", ("worker-1",), FaultKind.KILL, heal_after) for at, heal_after in faults)
        start_ns = time.time_ns() + round(LEAD_S * 1e9)
        plan = FaultPlan(start_ns, start_ns + 60 * 10**9, tuple(events))
        write_json(self.plan, plan.to_json())

    def journal(self) -> list[dict[str, Any]]:
        return list(raw_entries(self.path))

    def events(self) -> list[str]:
        """Without the arrivals, which come when a worker has started, and what precedes the plan."""
        return [entry["event"] for entry in self.journal() if entry["event"] not in ("joined", "standing-by")]

    def is_up(self) -> bool:
        return bool(members(f"{self.cluster.token}/worker-1"))


@pytest.fixture
def injection(driver: LocalDriver, cluster: Handle, tmp_path: Path) -> Injection:
    return Injection(driver, cluster, tmp_path)


def test_planned_kills_wait_for_their_moment_and_land_with_their_proof_and_the_worker_returns(
    injection: Injection,
) -> None:
    injection.arm((0.5, 0.2), (2.5, 0.0))
    wait_for(lambda: "disarmed" in injection.events(), LIMIT_S)
    assert injection.events() == ["armed", *STORY, *STORY, "disarmed"]
    for entry in injection.journal():
        if entry["event"] == "injected":
            assert entry["fired_ns"] >= entry["planned_ns"], (
                "how late kills come, benchmarks/injector/kill_lateness.py measures"
            )
            assert entry["done"]["processes killed"] >= 1
            assert entry["left"] == {"survivors": 0, "open ports": 0}
    assert injection.is_up()
    arrivals = [entry["fault"] for entry in injection.journal() if entry["event"] == "joined"]
    assert arrivals[-1] == 1, "the master has registered the worker after its last death"


def test_the_injector_outlives_whoever_started_it(injection: Injection) -> None:
    """As when a worker of Airflow dies: the process group of the step that has armed it is killed outright."""
    injection.write_plan((1.0, 0.2))
    arguments = [injection.cluster.root, str(injection.plan), str(injection.path)]
    step = subprocess.Popen([sys.executable, "-c", ARM_AND_WAIT, *arguments], start_new_session=True, cwd=REPOSITORY)
    wait_for(lambda: "armed" in injection.events())
    os.killpg(step.pid, signal.SIGKILL)
    assert step.wait(60) == -signal.SIGKILL
    wait_for(lambda: "disarmed" in injection.events(), LIMIT_S)
    assert injection.events() == ["armed", *STORY, "disarmed"]
    assert injection.is_up()


def test_stopping_the_injector_brings_back_what_is_down(injection: Injection) -> None:
    injection.arm((0.2, 600.0), (500.0, 1.0))
    wait_for(lambda: "injected" in injection.events())
    assert not injection.is_up()
    injection.driver.stop(injection.cluster, "gateway", "injector", LIMIT_S)
    assert injection.events() == ["armed", *STORY, "disarmed"]
    assert injection.is_up()


def test_an_injector_that_is_killed_leaves_its_kills_on_record(injection: Injection) -> None:
    injection.arm((0.2, 600.0))
    wait_for(lambda: "injected" in injection.events())
    (injector,) = members(f"{injection.cluster.token}/gateway/injector")
    os.kill(injector, signal.SIGKILL)
    wait_for(lambda: "injector" not in injection.driver.running(injection.cluster, "gateway"))
    assert injection.events() == ["armed", "striking", "injected"]
    injection.driver.heal(injection.cluster, "worker-1", FaultKind.KILL)
    assert injection.is_up()


def test_the_sampler_sees_a_host_die(driver: LocalDriver, cluster: Handle, tmp_path: Path) -> None:
    journal = tmp_path / "hosts.jsonl"
    driver.spawn(cluster, "gateway", "sampler", [sys.executable, "-m", "infra.sampler", cluster.root, str(journal)])

    def last(host: str) -> dict[str, Any] | None:
        return next((entry for entry in reversed(list(raw_entries(journal))) if entry["host"] == host), None)

    wait_for(lambda: last("worker-1") is not None)
    assert last("worker-1")["rss_bytes"] > 0
    driver.prepare(cluster, "worker-1", FaultKind.KILL).fire()
    wait_for(lambda: last("worker-1")["rss_bytes"] == last("worker-1")["cpu_s"] == 0)
    assert last("gateway")["cpu_s"] > 0
    driver.stop(cluster, "gateway", "sampler", 1)
    driver.heal(cluster, "worker-1", FaultKind.KILL)
