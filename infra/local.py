"""The local driver: hosts are process trees on loopback addresses of their own. Needs no root."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from experiments.errors import EnvironmentFailure
from experiments.fault_kinds import PLAIN, FaultKind, FaultOptions
from experiments.hosts import ClusterDriver
from experiments.spec import ClusterSpec
from infra import launch, tokens
from infra.clocks import ClockOffset
from infra.cluster import Driver, Handle, untold
from infra.processes import Usage, is_taken, marks, members, subnets_in_use, usage
from infra.refusals import DeclaredFaults
from infra.services import gateway, startup
from infra.strikes.death import Death
from infra.strikes.ready import Target, ready, undo
from infra.strikes.strike import Proof, Strike

TOKEN_LETTER = tokens.LETTERS["local"]


class LocalDriver(DeclaredFaults, Driver):
    """Implements `infra.cluster.Driver` on this machine; what starts a JVM raises `EnvironmentFailure` without one."""

    name = ClusterDriver.LOCAL

    def check(self, spec: ClusterSpec) -> None:
        """Any machine will do."""

    def obstacle(self, spec: ClusterSpec, kind: FaultKind, options: FaultOptions) -> str | None:
        """What a host sends cannot be delayed."""
        return "cpu_share only with driver local, whose hosts share the machine's network" if options.delay else None

    def provision(self, spec: ClusterSpec, run_id: str, root: Path, tell: Callable[[str], None] = untold) -> Handle:
        """Create the hosts and start what runs on them, as `infra.services.startup.provision` says."""
        return startup.provision(self, spec, root, lambda: lay_out(spec, run_id, root), partial(make_hosts, spec), tell)

    def usage(self, handle: Handle, host: str) -> Usage:
        return usage(members(f"{handle.token}/{host}"))

    def clocks(self, handle: Handle) -> dict[str, ClockOffset]:
        """None: this machine's is theirs."""
        return {}

    def spawn(self, handle: Handle, host: str, service: str, command: Sequence[str]) -> int:
        """Start a service in a session of its own, its output appended to `logs/<service>.log`."""
        folder = handle.directory(host)
        variables = startup.service_environment(handle, host, service)
        return launch.spawn(command, folder, folder / "logs" / f"{service}.log", variables)

    def stop(self, handle: Handle, host: str, service: str, limit_s: float) -> None:
        """Ask a service's first process to end; after `limit_s` every process of it is killed."""
        launch.stop(f"{handle.token}/{host}/{service}", limit_s)

    def running(self, handle: Handle, host: str) -> set[str]:
        """Names of the services of the host that have a live process."""
        return launch.running(f"{handle.token}/{host}")

    def prepare(self, handle: Handle, host: str, kind: FaultKind, options: FaultOptions = PLAIN) -> Strike:
        """Open handles on the host's processes; raises `BadInput` for a host that is not of this cluster."""
        return ready(self._target(handle, host, kind), kind, options)

    def heal(self, handle: Handle, host: str, kind: FaultKind) -> Proof:
        """Start a lost worker again, its disk an empty folder; undo any other fault."""
        if kind.loses_the_host:
            return startup.revive(self, handle, startup.struck(handle, host, kind))
        if kind in gateway.STARTS:
            return gateway.restart(self, handle, kind)
        return undo(self._target(handle, host, kind), kind)

    @staticmethod
    def _target(handle: Handle, host: str, kind: FaultKind) -> Target:
        target = startup.struck(handle, host, kind)
        return Target(f"{handle.token}/{target.name}", target.address)

    def destroy(self, handle: Handle) -> None:
        """Kill everything that carries the cluster's token; the directories stay until the run is published."""
        proof = Death(handle.token, handle.gateway.address).fire()
        if survivors := proof.left["survivors"]:
            cause = f"{survivors} processes of run {handle.run_id} survive SIGKILL"
            raise EnvironmentFailure(cause, "look for them with ps, then destroy again")


def lay_out(spec: ClusterSpec, run_id: str, root: Path) -> Handle:
    """The handle of a cluster on a free subnet, which is its own once a process of the cluster runs."""
    subnet = _free_subnet()
    return startup.handle_of(spec, run_id, root, subnet=subnet, network=f"127.0.{subnet}")


def make_hosts(spec: ClusterSpec, handle: Handle) -> None:
    """Nothing is to be made: a host is the processes that carry its mark."""


def _free_subnet() -> int:
    """The first 127.0.N.0/24 that no cluster uses and whose gateway ports are free.

    Other users' clusters do not show their marks. While faults hold their broker and their master down, their workers
    still listen.
    """
    numbers = (mark.removeprefix(TOKEN_LETTER).partition("-")[0] for mark in marks(TOKEN_LETTER))
    taken = {int(number) for number in numbers if number.isdecimal()}  # a mark of somebody else's may begin alike
    busy: set[int] = set()
    for subnet in sorted(set(range(1, 255)) - taken - subnets_in_use()):
        found = [port for port in gateway.GATEWAY_PORTS if is_taken(f"127.0.{subnet}.1", port)]
        if not found:
            return subnet
        busy.update(found)
    ports = ", ".join(map(str, sorted(busy))) or "all"
    raise EnvironmentFailure(
        f"no loopback subnet is free: port {ports} taken on every one of them",
        "stop the program that listens there (ss -ltnp)",
    )
