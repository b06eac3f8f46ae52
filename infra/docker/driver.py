"""The docker driver: hosts are containers of this machine, joined by a bridge, and reached over `docker exec`.

Needs a Docker daemon of this machine that its user may use. Nothing is pulled: programs are the machine's, mounted.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from docker.models.containers import Container

from experiments.fault_kinds import PLAIN, FaultKind, FaultOptions
from experiments.hosts import ClusterDriver
from experiments.spec import ClusterSpec
from infra.cluster import Handle, Host, untold
from infra.docker import containers, control, creation, daemon, mounts
from infra.docker.stream import ExecSession
from infra.docker.strikes import COMPLETED, Completed, Disconnection, reached
from infra.processes import Usage
from infra.remote.answers import Refused
from infra.remote.hosts import ANSWER_LIMIT_S, RemoteHosts, StandsStill, SwitchedOff
from infra.remote.requests import AgentRequest, AnswerT, EmptyDisk
from infra.services import startup
from infra.strikes import delay, partition
from infra.strikes.ready import merged
from infra.strikes.strike import Proof, Strike


class DockerDriver(RemoteHosts):
    """Implements `infra.cluster.Driver` by containers of this machine."""

    name = ClusterDriver.DOCKER

    def __init__(self) -> None:
        super().__init__(_session)

    def check(self, spec: ClusterSpec) -> None:
        """Raise `EnvironmentFailure` without a daemon whose containers can be reached from here."""
        daemon.check()
        mounts.check_socket()

    def obstacle(self, spec: ClusterSpec, kind: FaultKind, options: FaultOptions) -> str | None:
        """What the kernel, or the user, cannot do. The daemon can only take a host off its network as a whole."""
        if kind is FaultKind.POWER_OFF and os.geteuid():  # who is the containers' user, and NET_ADMIN is root's
            return "power-off as root: the containers of another user may not take their network down"
        in_part = kind is FaultKind.PARTITION and options != PLAIN
        if in_part and (reason := partition.refusal()):
            return f"a partition from all hosts, both ways, where nftables does not work ({reason})"
        if options.delay and (reason := delay.refusal()):
            return f"no delay on this machine ({reason}), but cpu_share"
        return None

    def provision(self, spec: ClusterSpec, run_id: str, root: Path, tell: Callable[[str], None] = untold) -> Handle:
        """Check the spec, create the hosts and start what runs on them (`infra.services.startup.provision`)."""
        self.check(spec)
        lay_out = partial(startup.lay_out_on_bridge, spec, run_id, root)
        return startup.provision(self, spec, root, lay_out, partial(creation.make_hosts, spec), tell)

    def ask(
        self, handle: Handle, host: Host, request: AgentRequest[AnswerT], within_s: float = ANSWER_LIMIT_S
    ) -> AnswerT:
        """As `RemoteHosts.ask`; raises `StandsStill` at once for a host whose container this process has paused.

        A request would wait in vain, and cost the session: another one takes a second of a busy machine.
        """
        if containers.is_frozen_here(handle, host.name):
            raise StandsStill("it is paused")
        return super().ask(handle, host, request, within_s)

    def spawn(self, handle: Handle, host: str, service: str, command: Sequence[str]) -> int:
        place = control.place_of(handle, host, service)
        return super().spawn(control.with_control(handle), place, service, command)

    def stop(self, handle: Handle, host: str, service: str, limit_s: float) -> None:
        place = control.place_of(handle, host, service)
        super().stop(control.with_control(handle), place, service, limit_s)

    def running(self, handle: Handle, host: str) -> set[str]:
        found = super().running(handle, host)
        beside = host == handle.gateway.name
        return found | super().running(control.with_control(handle), control.NAME) if beside else found

    def usage(self, handle: Handle, host: str) -> Usage:
        used = super().usage(handle, host)
        if host != handle.gateway.name:
            return used
        beside = super().usage(control.with_control(handle), control.NAME)
        return Usage(used.cpu_s + beside.cpu_s, used.rss_bytes + beside.rss_bytes)

    def prepare(self, handle: Handle, host: str, kind: FaultKind, options: FaultOptions = PLAIN) -> Strike:
        """Ready the host's agent, and the daemon where that completes the strike.

        A container that is paused is let go on for it; its host's processes stay stopped, each by itself.
        """
        if kind.service:
            return super().prepare(handle, host, kind, options)
        worker = startup.struck(handle, host, kind)
        try:
            strike = reached(handle, worker, partial(super().prepare, handle, host, kind, options))
        except Refused:
            if kind is not FaultKind.PARTITION or options != PLAIN:
                raise
            return Disconnection(self, handle, worker)
        return COMPLETED.get(kind, Completed)(strike, handle, worker, options)

    def heal(self, handle: Handle, host: str, kind: FaultKind) -> Proof:
        """As `Driver.heal`: a container that has ended is started again, with an empty disk.

        A worker would end at once on a host that the daemon has taken off its network. So if a host was lost meanwhile,
        its worker is started when it has its network again.
        """
        if kind.service:
            return super().heal(handle, host, kind)
        worker = startup.struck(handle, host, kind)
        container = containers.get(handle, host)
        containers.thaw(container)
        if kind is FaultKind.PARTITION:
            mounts.rules_of(handle, host).unlink(missing_ok=True)
            if proof := self._joined(handle, worker, container):
                return proof
        if kind.loses_the_host:
            if containers.power_on(container):
                creation.await_rules(handle, host, container)
            elif not self.running(handle, host):
                self.ask(handle, worker, EmptyDisk())
            if not containers.is_joined(container, handle.token):
                return _worker_due(handle, host)
        return super().heal(handle, host, kind)

    def heal_with_power(self, handle: Handle, host: str, kind: FaultKind) -> Proof:
        """As `RemoteHosts.heal_with_power`. Where nftables does not work there are no rules, and datagrams prove it."""
        fired_ns = time.time_ns()
        try:
            return super().heal_with_power(handle, host, kind)
        except Refused:
            if kind is not FaultKind.PARTITION:
                raise
        return self.reconnected(handle, handle.hosts[host], Proof(fired_ns, time.time_ns(), {"rules removed": 0}, {}))

    def _joined(self, handle: Handle, host: Host, container: Container) -> Proof | None:
        """The proof that a host has its network again, and its worker if that is due.

        None when its own rules have to be removed.
        """
        fired_ns, found = time.time_ns(), containers.join(container, handle.token, host.address)
        if not found and container.status == containers.Status.RUNNING:
            return None
        missing = int(not containers.is_joined(container, handle.token))
        proof = Proof(fired_ns, time.time_ns(), {"networks joined": found}, {"networks missing": missing})
        due = mounts.due_worker_of(handle, host.name)
        if not due.exists():
            return proof
        worker = startup.revive(self, handle, host)
        due.unlink()
        return merged([proof, worker])

    def destroy(self, handle: Handle) -> None:
        """Remove the cluster's containers and network, and end what carries its token; the directories stay."""
        self.close(handle)
        containers.remove_cluster(handle.label, os.geteuid())


def _session(handle: Handle, host: Host, command: Sequence[str]) -> ExecSession:
    container = containers.get(handle, host.name)
    if container.status == containers.Status.EXITED:
        raise SwitchedOff(host.name)
    if container.status == containers.Status.PAUSED:
        raise StandsStill("it is paused")
    return ExecSession(container, command)


def _worker_due(handle: Handle, host: str) -> Proof:
    """Note that the worker of a host is due when the host has its network again."""
    mounts.due_worker_of(handle, host).touch()
    now_ns = time.time_ns()
    return Proof(now_ns, now_ns, {"workers due with the network": 1}, {})
