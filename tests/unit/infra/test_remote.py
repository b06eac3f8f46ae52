"""What is asked of hosts over sessions, here through pipes to real agents, of which one lives by a clock of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from experiments.fault_kinds import FaultKind
from infra.cluster import Handle, Host, Role
from infra.remote import RemoteHosts
from infra.services import REPOSITORY
from infra.session import Disconnected
from tests.unit.marked_processes import start, start_python, wait_for

AHEAD_NS = 5_000_000_000
WITH_ANOTHER_CLOCK = f"""
import sys, time
ours = time.time_ns
time.time_ns = lambda: ours() + {AHEAD_NS}
from infra import agent
agent.serve(agent.Agent(*sys.argv[1:]))
"""


class Pipes:
    """A session with a command of this machine; its clock is ahead."""

    def __init__(self, command: Sequence[str], address: str) -> None:
        words = [*command[: command.index("-m")], "-c", WITH_ANOTHER_CLOCK, *command[command.index("-m") + 2 :]]
        self.process = subprocess.Popen(
            words,
            env={**os.environ, "SSH_CONNECTION": f"{address} 1 {address} 22"},
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def tell(self, **request: Any) -> None:
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
        except OSError as error:
            raise Disconnected(str(error)) from None

    def ask(self, within_s: float, **request: Any) -> Any:
        self.tell(**request)
        line = self.process.stdout.readline()
        if not line:
            raise Disconnected("it ended")
        return json.loads(line)

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait(5)


@pytest.fixture
def handle(token: str, tmp_path: Path) -> Handle:
    hosts = {f"worker-{i}": Host(f"worker-{i}", f"127.0.250.{i}", Role.WORKER, 1, 512) for i in (1, 2)}
    return Handle("run-1", "ssh", token, str(tmp_path), hosts)


@pytest.fixture
def hosts(handle: Handle) -> Iterator[RemoteHosts]:
    made = RemoteHosts(lambda _handle, host, command: Pipes(command, host.address))
    yield made
    made.close(handle)


def test_a_strike_is_due_by_our_clock_whatever_the_hosts_own_says(hosts: RemoteHosts, handle: Handle) -> None:
    clock = hosts.clocks(handle)["worker-1"]
    assert abs(clock.offset_ns - AHEAD_NS) <= clock.uncertainty_ns < 100_000_000
    victim = start(f"{handle.token}/worker-1/a")
    strike = hosts.aim(handle, "worker-1", FaultKind.KILL)
    assert strike.refresh()
    due_ns = time.time_ns() + 300_000_000
    strike.shoot(due_ns)
    assert victim.poll() is None, "a host that is ahead does not strike early"
    proof = strike.fire()
    assert victim.wait(5) == -signal.SIGKILL
    assert 0 <= proof.fired_ns - due_ns + clock.uncertainty_ns < 150_000_000
    assert proof.fired_ns <= proof.proved_ns <= time.time_ns() + clock.uncertainty_ns
    assert proof.holds


def test_an_agent_that_has_died_is_replaced_and_its_aim_made_again(hosts: RemoteHosts, handle: Handle) -> None:
    victim = start(f"{handle.token}/worker-1/a")
    strike = hosts.aim(handle, "worker-1", FaultKind.KILL)
    before = hosts.session(handle, handle.hosts["worker-1"])
    before.process.kill()
    before.process.wait()
    strike.shoot(time.time_ns())
    assert strike.fire().done == {"processes killed": 1}
    assert victim.wait(5) == -signal.SIGKILL
    assert hosts.session(handle, handle.hosts["worker-1"]) is not before


def test_what_a_host_uses_is_asked_of_its_agent(hosts: RemoteHosts, handle: Handle) -> None:
    assert hosts.usage(handle, "worker-1").rss_bytes == 0
    start_python(f"{handle.token}/worker-1/a", "import time\nwhile True: time.process_time()")
    wait_for(lambda: hosts.usage(handle, "worker-1").cpu_s > 0.05)
    assert hosts.usage(handle, "worker-1").rss_bytes > 2**20
    assert hosts.usage(handle, "worker-2").cpu_s == 0
    assert [(state.name, state.up) for state in hosts.inspect(handle)] == [("worker-1", True), ("worker-2", False)]
