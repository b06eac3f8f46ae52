"""The drivers by name."""

from __future__ import annotations

import functools

from experiments.spec import ClusterDriver
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
            from infra.netns import NetnsDriver

            return NetnsDriver()


def driver_for(handle: Handle) -> Driver:
    return driver_of(handle.driver)
