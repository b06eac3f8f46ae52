"""The common part of drivers that reach hosts over a session: spawn, stop, inspect, strike, heal.

An agent on each host (`infra.remote.agent`) carries requests out. A process keeps one session with each host, which all
driver objects share, and connects again when a connection breaks. A host may have a clock of its own: its offset from
ours is measured when a session begins, and again before use if that was long ago.
"""

from __future__ import annotations

import itertools
import os
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

from experiments.errors import EnvironmentFailure
from experiments.fault_kinds import PLAIN, FaultKind, FaultOptions
from experiments.waiting import Deadline, poll_until, retry
from infra import launch
from infra.clocks import ClockOffset
from infra.cluster import Driver, Handle, Host
from infra.processes import MACHINE, MARK, Usage
from infra.refusals import DeclaredFaults
from infra.remote import answers, reach, requests
from infra.remote.requests import AgentRequest, AnswerT
from infra.remote.session import Disconnected, Session, Unsent, measure_offset
from infra.services import gateway, startup
from infra.strikes.strike import Proof, Strike, wait_until
from infra.threads import precedence_here

ANSWER_LIMIT_S = 15.0
ATTEMPTS = 3
PROOF_POLL_S = 0.02
# What a session runs: its first line is the mark, which must not be among the arguments, where all users could read it.
MARKED = f"""IFS='"' read -r _ _ _ {MARK} _; export {MARK}; exec "$@\""""
CLOCK_HOLDS_S = 30.0  # a clock that is not synchronized drifts by 50 ppm, so by 1.5 ms in this time


class SwitchedOff(EnvironmentFailure):
    """The host's machine has no power: a fault took it, and nothing can be asked there."""

    def __init__(self, host: str) -> None:
        super().__init__(f"{host} is switched off", "wait until it is healed")


class StandsStill(Disconnected):
    """The host's machine is frozen: a fault froze it, and nothing can be asked there before it is let go on."""


class Tried(NamedTuple):
    """What a proof by datagrams adds to `Proof.done` and `Proof.left` about the peers with which they were tried."""

    done: dict[str, int]
    left: dict[str, int]


@dataclass
class AgentLink:
    """A session with the agent of a host, and that host's clock."""

    session: Session
    clock: ClockOffset
    measured: float = field(default_factory=time.monotonic)


class RemoteHosts(DeclaredFaults, Driver):
    """The part of `infra.cluster.Driver` that works over sessions; `begin` starts a command on a host of a handle.

    Every method raises `EnvironmentFailure` for a host that cannot be reached, or that is not the one expected.
    """

    agent = "infra.remote.agent"  # the module that a session runs

    def __init__(self, begin: Callable[[Handle, Host, Sequence[str]], Session]) -> None:
        self._begin = begin
        self._links: dict[tuple[int, str, str], AgentLink] = {}
        self._locks: defaultdict[tuple[int, str, str], threading.Lock] = defaultdict(threading.Lock)

    def clocks(self, handle: Handle) -> dict[str, ClockOffset]:
        """The clocks of the hosts that can be reached."""
        return {name: clock for name, clock in self.at_once(handle, self._clock_of) if clock}

    def at_once(self, handle: Handle, act: Callable[[Handle, Host], Any]) -> list[Any]:
        """Act on every host of the cluster, all at the same time: one that does not answer holds up no other.

        The threads for it have the precedence of this one.
        """
        with ThreadPoolExecutor(max(len(handle.hosts), 1), initializer=precedence_here()) as pool:
            return list(pool.map(partial(act, handle), handle.hosts.values()))

    def _clock_of(self, handle: Handle, host: Host) -> tuple[str, ClockOffset | None]:
        with suppress(EnvironmentFailure):
            return host.name, self.clock(handle, host)
        return host.name, None

    def spawn(self, handle: Handle, host: str, service: str, command: Sequence[str]) -> int:
        """As `Driver.spawn`; not tried again when the connection is lost: it would start the service twice."""
        folder, target = handle.directory(host), handle.hosts[host]
        log, variables = folder / "logs" / f"{service}.log", startup.service_environment(handle, host, service)
        request = requests.SpawnService(list(command), str(folder), str(log), variables)
        # A connection that broke while it was idle is noticed and made again here.
        self.ask(handle, target, requests.ReadClock())
        return _reconnecting(lambda: _answer(self.session(handle, target), target, request, ANSWER_LIMIT_S), attempts=1)

    def stop(self, handle: Handle, host: str, service: str, limit_s: float) -> None:
        self.ask(handle, handle.hosts[host], requests.StopService(service, limit_s), limit_s + ANSWER_LIMIT_S)

    def running(self, handle: Handle, host: str) -> set[str]:
        services = self.ask(handle, handle.hosts[host], requests.ListServices())
        return set(services)

    def usage(self, handle: Handle, host: str) -> Usage:
        return Usage(**self.ask(handle, handle.hosts[host], requests.MeasureUsage()))

    def prepare(self, handle: Handle, host: str, kind: FaultKind, options: FaultOptions = PLAIN) -> Strike:
        strike = RemotePartition if kind is FaultKind.PARTITION else RemoteStrike
        return strike(self, handle, startup.struck(handle, host, kind), kind, options)

    def heal(self, handle: Handle, host: str, kind: FaultKind) -> Proof:
        fired_ns = time.time_ns()
        try:
            return self.heal_with_power(handle, host, kind)
        except SwitchedOff:
            return overtaken(fired_ns)

    def heal_with_power(self, handle: Handle, host: str, kind: FaultKind) -> Proof:
        """As `heal`; raises `SwitchedOff` for a host that has no power, or loses it meanwhile."""
        target = startup.struck(handle, host, kind)
        if kind.loses_the_host:
            return startup.revive(self, handle, target)
        if kind in gateway.STARTS:
            return gateway.restart(self, handle, kind)
        undone = self.ask(handle, target, requests.UndoFault(kind))  # it makes a connection that broke while idle again
        proof = self.clock(handle, target).here(Proof(**undone))
        return self.reconnected(handle, target, proof) if kind is FaultKind.PARTITION else proof

    def reconnected(self, handle: Handle, host: Host, proof: Proof) -> Proof:
        """The proof that a partition was undone, and what is seen of it: others reach the host, and it them.

        Another fault may cut the host off meanwhile: amid a power-off its interface is down, and its agent answers.
        """
        found, peers = self.tried(handle, host, others(handle, host))
        left = {**proof.left, "peers cut off": found.lost(None), **peers.left}
        done = {**proof.done, **peers.done} | ({"cut off by another fault": 1} if found.host_drops else {})
        return replace(proof, proved_ns=time.time_ns(), done=done, left=left)

    def tried(self, handle: Handle, host: Host, peers: Sequence[Host]) -> tuple[reach.Reach, Tried]:
        """Who reaches a host, and whom it reaches; and what that is worth as a proof.

        Peers that are down cannot be tried. A proof may hold without them, but not if no other peer was tried. How many
        of those tried tell nothing by a loss is said beside it.
        """
        test = partial(reach.between, self, handle, host, peers)
        found = retry(test, reach.ListenerLost, interval_s=0.0, limit_s=ANSWER_LIMIT_S)
        done = {"peers tried": len(found.came)}
        if doubtful := len(found.doubtful & found.came.keys()):
            done["peers doubtful"] = doubtful
        if found.came:
            return found, Tried(done, {})
        down = sum(self.is_down(handle, peer) for peer in peers)
        return found, Tried({**done, "peers down": down}, {"peers untried": len(peers) - down})

    def is_down(self, handle: Handle, host: Host) -> bool:
        """Whether a host has no power or stands still, so that it cannot be asked; not one that is just not reached."""
        try:
            self.ask(handle, host, requests.ReadClock())
        except (SwitchedOff, StandsStill):
            return True
        except EnvironmentFailure:
            return False
        return False

    def ask(
        self, handle: Handle, host: Host, request: AgentRequest[AnswerT], within_s: float = ANSWER_LIMIT_S
    ) -> AnswerT:
        """What the agent of the host answers; a lost connection is made again, so it may carry `request` out twice."""
        return _reconnecting(lambda: _answer(self.session(handle, host), host, request, within_s))

    def session(self, handle: Handle, host: Host) -> Session:
        """This process's session with the agent of the host."""
        return self._link(handle, host).session

    def clock(self, handle: Handle, host: Host) -> ClockOffset:
        """How far the host's clock is ahead, as measured lately."""
        link = self._link(handle, host)
        if time.monotonic() - link.measured > CLOCK_HOLDS_S:
            ask_clock = partial(self.ask, handle, host, requests.ReadClock())
            link.clock, link.measured = measure_offset(ask_clock), time.monotonic()
        return link.clock

    def _link(self, handle: Handle, host: Host) -> AgentLink:
        """A fork must not speak on its parent's connection."""
        key = (os.getpid(), handle.token, host.name)
        with self._locks[key]:  # one for each host: none waits while another one does not answer
            found = self._links.get(key)
            if found is None or not found.session.alive:
                if found:
                    found.session.close()  # its program may have ended, and left the connection open
                session = self._open(handle, host)
                try:
                    found = self._links[key] = AgentLink(session, clock_behind(host, session))
                except EnvironmentFailure:  # what speaks there is no agent, perhaps
                    session.close()
                    raise
            return found

    def _open(self, handle: Handle, host: Host) -> Session:
        mark = f"{handle.token}/{MACHINE}/{host.name}"
        environment = launch.environment(mark, handle.root)
        variables = [f"{name}={value}" for name, value in environment.items() if name != MARK]
        agent = [sys.executable, "-S", "-m", self.agent, host.name, host.address, str(handle.disk(host.name))]
        session = self._begin(handle, host, ["sh", "-c", MARKED, "sh", "env", *variables, *agent])
        session.tell(mark=mark)
        return session

    def forget(self, handle: Handle, host: Host) -> None:
        """End this process's session with a host that does not answer any more. Calls that wait for an answer fail."""
        link = self._links.pop((os.getpid(), handle.token, host.name), None)
        if link:
            link.session.close()

    def close(self, handle: Handle) -> None:
        """End this process's sessions with the hosts of a cluster."""
        for key in [key for key in self._links if key[1] == handle.token]:
            self._links.pop(key).session.close()


class RemoteStrike(Strike):
    """A strike by the agent of the host: told ahead, it strikes by itself when due.

    What passes between them is by the host's clock; what is asked of it and what it returns, by this machine's.
    """

    _numbers = itertools.count()

    def __init__(self, hosts: RemoteHosts, handle: Handle, host: Host, kind: FaultKind, options: FaultOptions) -> None:
        self._hosts, self._handle, self._host, self._number = hosts, handle, host, next(self._numbers)
        self._options = options
        peers = [handle.hosts[name].address for name in options.peers]
        self._request = requests.PrepareStrike(self._number, kind, options._replace(peers=tuple(peers)))
        self._clock: ClockOffset
        self._ordered_ns = 0
        self._session: Session | None = None  # none with a machine that is switched off
        with suppress(SwitchedOff):
            _reconnecting(self._prepared)

    def _prepared(self) -> Session:
        """A session with an agent that has prepared the strike."""
        if self._session is None or not self._session.alive:
            session = self._hosts.session(self._handle, self._host)
            _answer(session, self._host, self._request, ANSWER_LIMIT_S)
            self._clock = self._hosts.clock(self._handle, self._host)
            self._session = session
        return self._session

    def refresh(self) -> bool:
        try:
            return self._ask(requests.RefreshStrike(self._number))
        except SwitchedOff:
            return False

    def shoot(self, due_ns: int = 0) -> None:
        """Order the strike without waiting for the host. If the connection is lost, `fire` strikes late."""
        self._ordered_ns = max(due_ns, time.time_ns())
        if self._session:
            with suppress(Disconnected):
                self._session.tell(**requests.Shoot(self._number, self._clock.there(due_ns)).to_json())

    def fire(self) -> Proof:
        """Complete it and prove it; a host that loses its power meanwhile has nothing left to be proved."""
        wait_until(self._ordered_ns)  # an order that did not get through must not be made good for early
        try:
            return self._prove()
        except SwitchedOff:
            return overtaken(self._ordered_ns or time.time_ns())

    def _prove(self) -> Proof:
        """Two proofs: the host's own, and that none of the ports it closed answers from outside."""
        fire = requests.Fire(self._number)
        # The answer is None while the proof goes on, and without a limit this waits for another one.
        found: Any = poll_until(lambda: self._ask(fire), interval_s=PROOF_POLL_S)
        proof = self._clock.here(Proof(**found["proof"]))
        answering = gateway.answering(self._host.address, found["ports"])
        left = {**proof.left, "open ports": max(proof.left.get("open ports", 0), answering)}
        return replace(proof, left=left, proved_ns=time.time_ns()) if found["ports"] else proof

    def close(self) -> None:
        if self._session:
            with suppress(Disconnected):  # then the agent has ended, and the prepared strike with it
                self._session.tell(**requests.CloseStrike(self._number).to_json())

    def _ask(self, request: AgentRequest[AnswerT]) -> AnswerT:
        """Ask the agent that prepared the strike. If the connection was lost, connect and prepare again."""
        return _reconnecting(lambda: _answer(self._prepared(), self._host, request, ANSWER_LIMIT_S))


class RemotePartition(RemoteStrike):
    """Proves from outside, too, that packets of the directions that are cut do not come through, and others do."""

    def _prove(self) -> Proof:
        proof, direction = super()._prove(), self._options.direction
        named = [self._handle.hosts[name] for name in self._options.peers if name != self._host.name]
        found, peers = self._hosts.tried(self._handle, self._host, named or others(self._handle, self._host))
        seen = {"packets through": found.through(direction), "peers lost": found.lost(direction)}
        left = {**proof.left, **seen, **peers.left}
        return replace(proof, proved_ns=time.time_ns(), done={**proof.done, **peers.done}, left=left)


def overtaken(fired_ns: int) -> Proof:
    """What there is to say of a strike or a heal amid which its host was switched off, by a fault of its own."""
    return Proof(fired_ns, time.time_ns(), {"overtaken by a loss of power": 1}, {"hosts with power": 0})


def others(handle: Handle, host: Host) -> list[Host]:
    """All hosts of the cluster but this one."""
    return [other for other in handle.hosts.values() if other.name != host.name]


def clock_behind(host: Host, session: Session) -> ClockOffset:
    """The clock of the host that a session reaches, measured now."""
    return measure_offset(lambda: _answer(session, host, requests.ReadClock(), ANSWER_LIMIT_S))


def _reconnecting(act: Callable[[], AnswerT], attempts: int = ATTEMPTS) -> AnswerT:
    """What an act over a session returns. If the connection is lost, it acts again, over another one.

    Threads share a session. One that another thread had lost before this one's turn came was no attempt.
    """
    deadline = Deadline(ANSWER_LIMIT_S)
    while True:
        try:
            return act()
        except Unsent:
            if deadline.passed:
                raise
        except Disconnected:
            attempts -= 1
            if not attempts:
                raise


def _answer(session: Session, host: Host, request: AgentRequest[AnswerT], within_s: float) -> AnswerT:
    """What the agent at the far end of a session answers, checked."""
    found: AnswerT = answers.done(host.name, request.do, session.ask(within_s, **request.to_json()))
    return found
