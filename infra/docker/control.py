"""The control container of a cluster: services that use Docker's socket, isolated from containers that run other code.

A process that can write to the daemon's socket is root on the machine. So the injector and the sampler have a container
of their own on the cluster's network, and only this container has the socket. All other code treats both as services of
the gateway.
"""

from __future__ import annotations

from dataclasses import replace

from experiments.hosts import Role
from infra import namespaces
from infra.cluster import Handle, Host

NAME = "control"
NUMBER = namespaces.CONTROLLER_NUMBER - 1  # of its address; workers have lower ones
SERVICES = frozenset({"injector", "sampler"})


def host_of(handle: Handle) -> Host:
    """The control container as if it were a host."""
    gateway = handle.gateway
    prefix = gateway.address.rpartition(".")[0]
    return Host(NAME, f"{prefix}.{NUMBER}", Role.GATEWAY, gateway.cores, gateway.memory_mb)


def with_control(handle: Handle) -> Handle:
    """The handle with the control container as its last host, for those who ask the agent there."""
    return replace(handle, hosts={**handle.hosts, NAME: host_of(handle)})


def place_of(handle: Handle, host: str, service: str) -> str:
    """The name of the container in which a service of a host is."""
    return NAME if host == handle.gateway.name and service in SERVICES else host
