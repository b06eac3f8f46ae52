"""The drivers by name."""

from experiments.spec import ClusterDriver
from infra.cluster import Driver, Handle
from infra.local import LocalDriver

DRIVERS: dict[ClusterDriver, type[Driver]] = {ClusterDriver.LOCAL: LocalDriver}


def driver_of(name: str | ClusterDriver) -> Driver:
    """The driver of that name, as an experiment or a handle has it."""
    return DRIVERS[ClusterDriver(name)]()


def driver_for(handle: Handle) -> Driver:
    return driver_of(handle.driver)
