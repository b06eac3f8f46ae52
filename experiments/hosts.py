"""The drivers that make the hosts of a cluster, and the roles of hosts."""

from __future__ import annotations

from enum import StrEnum


class ClusterDriver(StrEnum):
    """What makes the hosts."""

    LOCAL = "local"  # process trees on loopback addresses
    NETNS = "netns"  # network namespaces, over SSH; needs root
    DOCKER = "docker"  # containers; needs a Docker daemon
    SSH = "ssh"  # machines that exist, by their inventory
    EXTERNAL = "external"  # an existing cluster, by its user's commands


class Role(StrEnum):
    """What a host is for."""

    GATEWAY = "gateway"  # broker, Spark master, query driver, generator, injector; never killed by a plan
    WORKER = "worker"
