"""The daemon's part of a strike: the agent on the host strikes when due, then the daemon completes the fault.

A request to the daemon takes effect after 10 to 100 ms, as it comes; an agent strikes within a millisecond. So the
moment of the fault is the agent's, and the proof that nothing is left of the host is the daemon's.

A host may be paused while a further strike on it is being prepared or carried out. Then its agent stands still, too.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

from docker.models.containers import Container

from experiments.fault_kinds import FaultKind, FaultOptions
from experiments.waiting import Deadline
from infra.cluster import Handle, Host
from infra.docker import containers, mounts
from infra.remote.hosts import RemoteHosts
from infra.remote.session import Disconnected
from infra.strikes import partition
from infra.strikes.strike import Proof, Strike, wait_until

PROOF_LIMIT_S = 5.0  # the daemon looks at a container once a second
ResultT = TypeVar("ResultT")
_stays_paused: defaultdict[tuple[str, str], threading.Lock] = defaultdict(threading.Lock)  # by token and host


def reached(handle: Handle, host: Host, act: Callable[[], ResultT]) -> ResultT:
    """Act through the agent of a host: a paused container is let go on for it, and again if it is paused meanwhile."""
    _let_go_on(handle, host)
    with suppress(Disconnected):
        return act()
    _let_go_on(handle, host)
    return act()


def _let_go_on(handle: Handle, host: Host) -> None:
    """Let a container go on that is paused; one whose pause is being proved, after that."""
    with _stays_paused[handle.token, host.name]:
        containers.thaw(containers.get(handle, host.name))


def is_up(handle: Handle, host: Host, look: Callable[[], bool]) -> bool:
    """Whether a host is up. One that is paused is, and stays so: it is not looked into, which may be for nothing."""
    with suppress(Disconnected):  # it was paused amid the look
        return containers.stands_still(handle, host.name) or look()
    return containers.stands_still(handle, host.name) or look()


class Completed(Strike):
    """A strike of the host's agent that the daemon completes, if it can.

    It may be paused since it was made: `fire` lets it go on, no earlier, for a strike that is absorbed leaves it so.
    """

    def __init__(self, inner: Strike, handle: Handle, host: Host, options: FaultOptions) -> None:
        self._inner, self._handle, self._host, self._options = inner, handle, host, options
        self._not_before_ns = 0

    def refresh(self) -> bool:
        return is_up(self._handle, self._host, self._inner.refresh)

    def shoot(self, due_ns: int = 0) -> None:
        self._not_before_ns = due_ns  # no agent is to be had while it is paused: then `fire` strikes
        self._inner.shoot(due_ns)

    def fire(self) -> Proof:
        wait_until(self._not_before_ns)
        proof = reached(self._handle, self._host, self._inner.fire)
        left = self.complete(containers.get(self._handle, self._host.name))
        return replace(proof, proved_ns=time.time_ns(), left={**proof.left, **left}) if left else proof

    def complete(self, container: Container) -> Mapping[str, int]:
        """What the daemon does, and what it then sees left: nothing, for most kinds."""
        return {}

    def close(self) -> None:
        self._inner.close()


class DockerPowerOff(Completed):
    """The container ends, and its address is gone; it has no process then, not even the agent."""

    def complete(self, container: Container) -> Mapping[str, int]:
        containers.power_off(container)
        state = container.attrs["State"]
        addresses = [network["IPAddress"] for network in container.attrs["NetworkSettings"]["Networks"].values()]
        running = state["Running"] or state["Pid"] > 0
        return {"containers running": int(running), "addresses": len(list(filter(None, addresses)))}


class Pause(Completed):
    """The container is frozen by its cgroup, the agent included, and uses no CPU time any more."""

    def complete(self, container: Container) -> Mapping[str, int]:
        with _stays_paused[self._handle.token, self._host.name]:
            containers.freeze(container)
            deadline = Deadline(PROOF_LIMIT_S)
            then_ns, now_ns = containers.cpu_ns(container), containers.cpu_ns(container)
            while now_ns != then_ns and not deadline.passed:  # the first look may be from before the freeze
                then_ns, now_ns = now_ns, containers.cpu_ns(container)
            return {
                "containers awake": int(container.status != containers.Status.PAUSED),
                "CPU clocks running": int(now_ns != then_ns),
            }


class DockerPartition(Completed):
    """The rules are kept where the container finds them when it starts again: they are its network's."""

    def complete(self, container: Container) -> Mapping[str, int]:
        peers = [self._handle.hosts[name].address for name in self._options.peers]
        text = partition.CHAINS + partition.rules(peers, self._options.direction, machine_ports=())
        mounts.rules_of(self._handle, self._host.name).write_text(text, encoding="utf-8")
        return {}


COMPLETED = {FaultKind.POWER_OFF: DockerPowerOff, FaultKind.PAUSE: Pause, FaultKind.PARTITION: DockerPartition}


class Disconnection(Strike):
    """A partition from all other hosts where nftables does not work: the daemon takes the container off its network.

    It takes effect some tens of milliseconds after it is due.
    """

    def __init__(self, hosts: RemoteHosts, handle: Handle, host: Host) -> None:
        self._hosts, self._handle, self._host = hosts, handle, host
        self._due_ns = 0

    def refresh(self) -> bool:
        return is_up(self._handle, self._host, lambda: bool(self._hosts.running(self._handle, self._host.name)))

    def shoot(self, due_ns: int = 0) -> None:
        self._due_ns = due_ns

    def fire(self) -> Proof:
        wait_until(self._due_ns)
        container, token = containers.get(self._handle, self._host.name), self._handle.token
        containers.leave(container, token)
        left = {"networks": int(containers.is_joined(container, token))}
        now_ns = time.time_ns()
        return Proof(now_ns, now_ns, {"networks left": 1}, left)

    def close(self) -> None:
        """Nothing was opened ahead."""
