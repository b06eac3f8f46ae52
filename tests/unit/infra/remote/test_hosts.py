"""What is asked of hosts over sessions, here through pipes to real agents, of which one lives by a clock of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments.errors import EnvironmentFailure
from experiments.fault_kinds import FaultKind, FaultOptions
from infra.cluster import Handle, Host, Role
from infra.launch import REPOSITORY
from infra.processes import has_precedence, listening, members, take_precedence
from infra.remote import hosts as module
from infra.remote import reach
from infra.remote.answers import Misspoken
from infra.remote.hosts import RemoteHosts, StandsStill, SwitchedOff
from infra.remote.requests import AgentRequest, TakeHeard
from infra.remote.session import Disconnected, Unsent
from tests.unit.marked_processes import start, start_python, wait_for

AHEAD_NS = 5_000_000_000
WITH_ANOTHER_CLOCK = f"""
import sys, time
ours = time.time_ns
time.time_ns = lambda: ours() + {AHEAD_NS}
from infra.remote import agent
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
        except (OSError, ValueError) as error:  # the pipe is broken, or was closed here
            raise self._lost(str(error)) from None

    def ask(self, within_s: float, **request: Any) -> Any:
        if self.process.stdin.closed:
            raise Unsent("it was gone already")
        self.tell(**request)
        line = self.process.stdout.readline()
        if not line:
            raise self._lost("it ended")
        return json.loads(line)

    def _lost(self, reason: str) -> Disconnected:
        """As with real sessions, one that is lost is not alive any more: its program may take a moment to end."""
        self.close()
        return Disconnected(reason)

    def close(self) -> None:
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait(60)


@pytest.fixture
def handle(token: str, tmp_path: Path) -> Handle:
    hosts = {f"worker-{i}": Host(f"worker-{i}", f"127.0.250.{i}", Role.WORKER, 1, 512) for i in (1, 2)}
    return Handle("run-1", "ssh", token, str(tmp_path), hosts)


@pytest.fixture
def switched_off() -> set[str]:
    """The hosts of which no session is to be had."""
    return set()


@pytest.fixture
def hosts(handle: Handle, switched_off: set[str]) -> Iterator[RemoteHosts]:
    def begin(_handle: Handle, host: Host, command: Sequence[str]) -> Pipes:
        if host.name in switched_off:
            raise SwitchedOff(host.name)
        return Pipes(command, host.address)

    made = RemoteHosts(begin)
    yield made
    made.close(handle)


def switch_off(hosts: RemoteHosts, handle: Handle, host: str, switched_off: set[str]) -> None:
    """Take a host's agent away, and any further one."""
    switched_off.add(host)
    hosts.session(handle, handle.hosts[host]).process.kill()


def test_a_strike_is_due_by_our_clock_whatever_the_hosts_own_says(hosts: RemoteHosts, handle: Handle) -> None:
    clock = hosts.clocks(handle)["worker-1"]
    assert abs(clock.offset_ns - AHEAD_NS) <= clock.uncertainty_ns < AHEAD_NS / 2
    victim = start(f"{handle.token}/worker-1/a")
    strike = hosts.prepare(handle, "worker-1", FaultKind.KILL)
    assert strike.refresh()
    due_ns = time.time_ns() + 3 * 10**9
    strike.shoot(due_ns)
    assert victim.poll() is None, "a host that is ahead does not strike early"
    proof = strike.fire()
    assert victim.wait(60) == -signal.SIGKILL
    assert 0 <= proof.fired_ns - due_ns + clock.uncertainty_ns < AHEAD_NS  # by the host's own clock it is further off
    assert proof.fired_ns <= proof.proved_ns <= time.time_ns() + clock.uncertainty_ns
    assert proof.holds


def test_an_agent_that_has_died_is_replaced_and_its_aim_made_again(hosts: RemoteHosts, handle: Handle) -> None:
    victim = start(f"{handle.token}/worker-1/a")
    strike = hosts.prepare(handle, "worker-1", FaultKind.KILL)
    before = hosts.session(handle, handle.hosts["worker-1"])
    before.process.kill()
    before.process.wait()
    strike.shoot(time.time_ns())
    assert strike.fire().done == {"processes killed": 1}
    assert victim.wait(60) == -signal.SIGKILL
    assert hosts.session(handle, handle.hosts["worker-1"]) is not before


ACTS: dict[str, Callable[[RemoteHosts, Handle], object]] = {
    "ask": lambda hosts, handle: hosts.running(handle, "worker-1"),
    "spawn": lambda hosts, handle: hosts.spawn(for_services(handle), "worker-1", "a", ["true"]),
    "prepare": lambda hosts, handle: hosts.prepare(handle, "worker-1", FaultKind.KILL).close(),
}


def for_services(handle: Handle) -> Handle:
    """The cluster with what services need: folders for their logs, and a gateway with the broker."""
    for host in handle.hosts:
        (handle.directory(host) / "logs").mkdir(parents=True)
    gateway = Host("gateway", "127.0.250.3", Role.GATEWAY, 1, 512)
    return replace(handle, hosts={**handle.hosts, gateway.name: gateway})


@pytest.fixture(params=ACTS)
def act(request: pytest.FixtureRequest) -> Callable[[RemoteHosts, Handle], object]:
    return ACTS[request.param]


def lose_meanwhile(hosts: RemoteHosts, monkeypatch: pytest.MonkeyPatch, times: int) -> list[None]:
    """So many times another thread finds the session lost, and closes it, before the turn of who got it.

    Returns those that are left.
    """
    session, left = hosts.session, [None] * times

    def lost(handle: Handle, host: Host) -> Any:
        found = session(handle, host)
        if left:
            left.pop()
            found.close()
        return found

    monkeypatch.setattr(hosts, "session", lost)
    return left


def test_a_session_that_another_thread_loses_is_made_again_as_often_as_needed(
    hosts: RemoteHosts, handle: Handle, monkeypatch: pytest.MonkeyPatch, act: Callable[[RemoteHosts, Handle], object]
) -> None:
    left = lose_meanwhile(hosts, monkeypatch, module.ATTEMPTS + 1)
    act(hosts, handle)
    assert left == []


def test_sessions_that_are_always_lost_meanwhile_end_it_in_time(
    hosts: RemoteHosts, handle: Handle, monkeypatch: pytest.MonkeyPatch, act: Callable[[RemoteHosts, Handle], object]
) -> None:
    monkeypatch.setattr(module, "ANSWER_LIMIT_S", 0.5)
    lose_meanwhile(hosts, monkeypatch, 1_000)
    with pytest.raises(Unsent):
        act(hosts, handle)


def test_a_heal_does_without_a_connection_that_broke_while_it_was_idle(
    handle: Handle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody has used it since the strike, so nobody has noticed; and the host's clock has to be asked again."""

    class Unnoticed(Pipes):
        alive = True

        def close(self) -> None:
            self.alive = False
            super().close()

    hosts = RemoteHosts(lambda _handle, host, command: Unnoticed(command, host.address))
    monkeypatch.setattr(module, "CLOCK_HOLDS_S", 0.0)
    broken = hosts.session(handle, handle.hosts["worker-1"])
    broken.process.kill()
    broken.process.wait(60)
    assert hosts.heal(handle, "worker-1", FaultKind.PAUSE).holds
    hosts.close(handle)


def test_a_connection_whose_program_has_ended_is_closed_when_another_is_made(handle: Handle) -> None:
    """The connection itself may still stand: it would keep a socket, and over SSH a thread."""
    begun: list[Pipes] = []

    class Left(Pipes):
        closed = False

        def close(self) -> None:
            self.closed = True
            super().close()

    def begin(_handle: Handle, host: Host, command: Sequence[str]) -> Left:
        begun.append(Left(command, host.address))
        return begun[-1]

    hosts, worker = RemoteHosts(begin), handle.hosts["worker-1"]
    first = hosts.session(handle, worker)
    first.process.kill()
    first.process.wait(60)
    assert hosts.session(handle, worker) is begun[1]
    assert (first.closed, begun[1].closed) == (True, False)
    hosts.close(handle)


def test_a_connection_to_what_is_no_agent_is_closed(handle: Handle) -> None:
    class Stranger:
        closed = False

        def tell(self, **request: Any) -> None:
            pass

        def ask(self, within_s: float, **request: Any) -> Any:
            return {"done": "noon"}

        def close(self) -> None:
            self.closed = True

    stranger = Stranger()
    with pytest.raises(Misspoken, match="'clock'"):
        RemoteHosts(lambda *_: stranger).session(handle, handle.hosts["worker-1"])
    assert stranger.closed


LISTENER = "import socket, time; s = socket.create_server(('127.0.250.1', 0)); time.sleep(60)"


def test_no_thread_is_started_to_prove_a_strike(
    hosts: RemoteHosts, handle: Handle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next strike would wait for a thread of the usual priority that has the interpreter and no core."""
    start_python(f"{handle.token}/worker-1/a", LISTENER)
    wait_for(lambda: bool(listening("127.0.250.1")))
    strike = hosts.prepare(handle, "worker-1", FaultKind.KILL)
    monkeypatch.setattr(threading.Thread, "start", lambda thread: pytest.fail(f"{thread.name} is started"))
    strike.shoot(time.time_ns())
    proof = strike.fire()
    assert (proof.done, proof.left) == ({"processes killed": 1}, {"survivors": 0, "open ports": 0})


@pytest.mark.parametrize("initializer", [None, take_precedence])
def test_hosts_are_asked_at_once_with_the_precedence_of_who_asks(hosts: RemoteHosts, handle: Handle, initializer):
    with ThreadPoolExecutor(1, initializer=initializer) as asks:
        found = asks.submit(hosts.at_once, handle, lambda *_: has_precedence()).result(60)
    assert found == [initializer is take_precedence] * 2


OVERTAKEN = ({"overtaken by a loss of power": 1}, {"hosts with power": 0})


def test_a_loss_of_power_amid_a_strike_or_a_heal_loses_no_proof(
    hosts: RemoteHosts, handle: Handle, switched_off: set[str]
) -> None:
    start(f"{handle.token}/worker-1/a")
    strike = hosts.prepare(handle, "worker-1", FaultKind.TERMINATE)
    due_ns = time.time_ns()
    strike.shoot(due_ns)
    switch_off(hosts, handle, "worker-1", switched_off)
    proof, healed = strike.fire(), hosts.heal(handle, "worker-1", FaultKind.PAUSE)
    assert (proof.done, proof.left) == (healed.done, healed.left) == OVERTAKEN
    assert due_ns <= proof.fired_ns <= proof.proved_ns <= healed.fired_ns
    strike = hosts.prepare(handle, "worker-1", FaultKind.PAUSE)
    assert not strike.refresh(), "a host without power is in no state to be struck"
    strike.close()


def test_a_peer_that_loses_its_power_while_it_is_tried_is_left_out(
    hosts: RemoteHosts, handle: Handle, switched_off: set[str]
) -> None:
    one, two = (handle.hosts[name] for name in ("worker-1", "worker-2"))
    assert reach.between(hosts, handle, one, [two]) == reach.Reach(
        {"worker-2": 5}, {"worker-2": 5}, frozenset(), host_drops=False
    )

    class LosesPower:
        """Asks as `hosts`, and switches the peer off once both have called."""

        def ask(self, handle: Handle, host: Host, request: AgentRequest) -> Any:
            if isinstance(request, TakeHeard) and host is two:
                switch_off(hosts, handle, "worker-2", switched_off)
            return hosts.ask(handle, host, request)

    assert reach.between(LosesPower(), handle, one, [two]) == reach.Reach({}, {}, frozenset(), host_drops=False)


class LosesAgents(RemoteHosts):
    """Loses, once, the agent of each of these hosts, after both sides have sent and before anybody tells what came."""

    def __init__(self, *lost: str) -> None:
        super().__init__(self._begin_one)
        self.lost, self.begun = list(lost), list[str]()

    def _begin_one(self, _handle: Handle, host: Host, command: Sequence[str]) -> Pipes:
        self.begun.append(host.name)
        return Pipes(command, host.address)

    def ask(self, handle: Handle, host: Host, request: AgentRequest, within_s: float = 1.0) -> Any:
        while isinstance(request, TakeHeard) and self.lost:
            session = self.session(handle, handle.hosts[self.lost.pop()])
            session.process.kill()
            session.process.wait(60)
        return super().ask(handle, host, request)


@pytest.mark.parametrize(
    ("lost", "done", "left"),
    [("worker-1", {"peers tried": 1}, {}), ("worker-2", {"peers tried": 0, "peers down": 0}, {"peers untried": 1})],
    ids=["the host's", "the peer's"],
)
def test_an_agent_that_is_replaced_amid_a_test_of_the_network_ends_neither_the_proof_nor_its_successor(
    handle: Handle, lost: str, done: dict[str, int], left: dict[str, int]
) -> None:
    """The test is made again if it lost what arrived at the host itself; a peer is left out."""
    hosts = LosesAgents(lost)
    one, two = (handle.hosts[name] for name in ("worker-1", "worker-2"))
    found, tried = hosts.tried(handle, one, [two])
    assert (tried, hosts.lost) == ((done, left), [])
    if lost == "worker-1":
        assert found == reach.Reach({"worker-2": 5}, {"worker-2": 5}, frozenset(), host_drops=False)
    hosts.running(handle, lost)
    assert hosts.begun.count(lost) == 2
    hosts.close(handle)


@pytest.mark.extended
@pytest.mark.parametrize(
    ("lost", "done", "left"),
    [
        (None, {"peers tried": 1}, {}),
        (SwitchedOff("worker-2"), {"peers tried": 0, "peers down": 1}, {"peers untried": 0}),
        (StandsStill("it is paused"), {"peers tried": 0, "peers down": 1}, {"peers untried": 0}),
        (Disconnected("no route to host"), {"peers tried": 0, "peers down": 0}, {"peers untried": 1}),
    ],
)
def test_a_proof_that_tried_nobody_does_not_hold_unless_all_peers_are_down(
    handle: Handle, lost: EnvironmentFailure | None, done: dict[str, int], left: dict[str, int]
) -> None:
    def begin(_handle: Handle, host: Host, command: Sequence[str]) -> Pipes:
        if lost and host.name == "worker-2":
            raise lost
        return Pipes(command, host.address)

    hosts = RemoteHosts(begin)
    one, two = (handle.hosts[name] for name in ("worker-1", "worker-2"))
    assert hosts.tried(handle, one, [two])[1] == (done, left)
    hosts.close(handle)


def test_what_a_host_uses_is_asked_of_its_agent(hosts: RemoteHosts, handle: Handle) -> None:
    assert hosts.usage(handle, "worker-1").rss_bytes == 0
    start_python(f"{handle.token}/worker-1/a", "import time\nwhile True: time.process_time()")
    wait_for(lambda: hosts.usage(handle, "worker-1").cpu_s > 0.05)
    assert hosts.usage(handle, "worker-1").rss_bytes > 2**20
    assert hosts.usage(handle, "worker-2").cpu_s == 0
    assert hosts.running(handle, "worker-1") == {"a"}
    assert hosts.running(handle, "worker-2") == set()


@pytest.mark.extended
def test_no_argument_of_any_process_tells_the_token(hosts: RemoteHosts, handle: Handle) -> None:
    start_python(f"{handle.token}/worker-1/a", "import time\nwhile True: time.sleep(0.001)")
    strike = hosts.prepare(handle, "worker-1", FaultKind.SLOW, FaultOptions(cpu_share=0.5))
    throttler = f"{handle.token}/machine/worker-1/throttler"
    wait_for(lambda: len(members(throttler)) == 1)
    shown = {path: arguments_of(path) for path in Path("/proc").glob("[0-9]*/cmdline")}
    assert sum("infra.strikes.throttle" in arguments for arguments in shown.values()) >= 1
    assert [path for path, arguments in shown.items() if handle.token in arguments] == []
    strike.close()


def arguments_of(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:  # it has ended
        return ""
