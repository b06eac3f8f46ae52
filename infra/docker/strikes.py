"""What the daemon adds to a strike of a host's agent: the agent strikes when it is due, the daemon completes it.

A request to the daemon takes effect after 10 to 100 ms, as it comes; an agent strikes within a millisecond. So the
moment of the fault is the agent's, and the proof that nothing is left of the host is the daemon's.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

from docker.models.containers import Container

from infra.cluster import Handle, Host
from infra.docker import containers
from infra.strikes.strike import Proof, Strike

PROOF_LIMIT_S = 5.0  # the daemon looks at a container once a second


class Completed:
    """A strike of the host's agent that the daemon completes; implements `infra.strikes.strike.Strike`."""

    def __init__(self, inner: Strike, handle: Handle, host: Host) -> None:
        self._inner, self._handle, self._host = inner, handle, host

    @property
    def ports(self) -> set[int]:
        return self._inner.ports

    def refresh(self) -> bool:
        return self._inner.refresh()

    def shoot(self, due_ns: int = 0) -> None:
        self._inner.shoot(due_ns)

    def fire(self) -> Proof:
        proof = self._inner.fire()
        left = self.complete(containers.get(self._handle, self._host.name))
        return replace(proof, proved_ns=time.time_ns(), left={**proof.left, **left})

    def complete(self, container: Container) -> Mapping[str, int]:
        """What the daemon does, and what it then sees left."""
        raise NotImplementedError

    def close(self) -> None:
        self._inner.close()


class PowerOff(Completed):
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
        containers.freeze(container)
        deadline = time.monotonic() + PROOF_LIMIT_S
        then_ns, now_ns = containers.cpu_ns(container), containers.cpu_ns(container)
        while now_ns != then_ns and time.monotonic() < deadline:  # the first look may be from before the freeze
            then_ns, now_ns = now_ns, containers.cpu_ns(container)
        return {"containers awake": int(container.status != "paused"), "CPU clocks running": int(now_ns != then_ns)}
