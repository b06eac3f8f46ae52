"""The drivers by name."""

from __future__ import annotations

import functools

from experiments.errors import EnvironmentFailure
from experiments.hosts import ClusterDriver
from infra.cluster import Driver, Handle


@functools.cache
def driver_of(name: ClusterDriver | str) -> Driver:
    """The driver of that name, as an experiment or a handle has it: one object in a process.

    Imported when it is asked for: what speaks SSH takes half a second to import.
    """
    match ClusterDriver(name):
        case ClusterDriver.LOCAL:
            from infra.local import LocalDriver

            return LocalDriver()
        case ClusterDriver.NETNS:
            from infra.netns.driver import NetnsDriver

            return NetnsDriver()
        case ClusterDriver.DOCKER:
            try:
                from infra.docker.driver import DockerDriver
            except ModuleNotFoundError as missing:
                cause = f"the Python package {missing.name} is missing, which driver docker needs"
                raise EnvironmentFailure(cause, "run `make setup`") from None

            return DockerDriver()
        case ClusterDriver.SSH:
            from infra.ssh.driver import SshDriver

            return SshDriver()
        case ClusterDriver.EXTERNAL:
            from infra.external.driver import ExternalDriver

            return ExternalDriver()


def driver_for(handle: Handle) -> Driver:
    """The driver that made the cluster of this handle; raises `EnvironmentFailure` if its package is missing."""
    return driver_of(handle.driver)
