"""A driver: hosts as those of driver `local`, each with CPU cores of its own, so that no host slows another down."""

from __future__ import annotations

import os
from collections.abc import Sequence

from experiments.errors import BadInput
from experiments.spec import ClusterSpec
from infra.cluster import Handle
from infra.local import LocalDriver


class PinnedDriver(LocalDriver):
    """Implements `infra.cluster.Driver`: the gateway shares the machine, a worker has `worker_cores` of it.

    Everything else is as in driver local: hosts are laid out, found, struck and healed by their marks.
    """

    def check(self, spec: ClusterSpec) -> None:
        """Raise `BadInput` for more workers than there are cores for."""
        cores, most = len(os.sched_getaffinity(0)), len(os.sched_getaffinity(0)) // spec.worker_cores
        if spec.workers > most:
            allowed = f"at most {most} of {spec.worker_cores} cores each with driver pinned: this machine has {cores}"
            raise BadInput("cluster.workers", spec.workers, allowed)

    def spawn(self, handle: Handle, host: str, service: str, command: Sequence[str]) -> int:
        """As `LocalDriver.spawn`; the child processes of a service inherit its cores."""
        return super().spawn(handle, host, service, [*_on_own_cores(handle, host), *command])


def _on_own_cores(handle: Handle, host: str) -> list[str]:
    names = [worker.name for worker in handle.workers]
    if host not in names:
        return []
    first = names.index(host) * handle.hosts[host].cores
    cores = sorted(os.sched_getaffinity(0))[first : first + handle.hosts[host].cores]
    return ["taskset", "--cpu-list", ",".join(map(str, cores))]
