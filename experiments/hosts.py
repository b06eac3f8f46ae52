"""What a host of a cluster is: by the driver that makes it, and by its role."""

from __future__ import annotations

from enum import StrEnum


class ClusterDriver(StrEnum):
    """What makes the hosts."""

    LOCAL = "local"  # process trees on loopback addresses
    NETNS = "netns"  # network namespaces, over SSH; needs root
    DOCKER = "docker"  # containers; needs a Docker daemon
    SSH = "ssh"  # machines that exist, by their inventory
    EXTERNAL = "external"  # a cluster that is already there, by its user's commands


class Role(StrEnum):
    """What a host is for."""

    GATEWAY = "gateway"  # broker, Spark master, query driver, generator, injector; never killed by a plan
    WORKER = "worker"
