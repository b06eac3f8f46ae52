"""The kinds of faults: the effect of each on a host, its options, and which drivers can inject it."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from experiments.hosts import ClusterDriver

GATEWAY = "gateway"  # the host of broker, Spark master and query driver, which no fault takes as a whole


class Effect(StrEnum):
    """What a fault holds a host in. A host may be held in several of them at once."""

    DOWN = "down"  # its processes are gone
    FROZEN = "frozen"  # they stand still
    SLOW = "slow"
    CUT = "cut"  # it does not reach, or is not reached by, some others
    FULL = "full"  # its disk takes nothing more
    NO_BROKER = "no broker"
    NO_DRIVER = "no driver"
    NO_MASTER = "no master"


# Of the effects on the processes of a host: a stronger one takes the place of a weaker one.
STRENGTH = {Effect.DOWN: 3, Effect.FROZEN: 2, Effect.SLOW: 1}


class FaultKind(StrEnum):
    """What a fault does; docs/reference/fault-kinds.md has strike, proof and heal of each."""

    KILL = "kill"  # SIGKILL of every process on the host
    TERMINATE = "terminate"  # SIGTERM, and SIGKILL of what has not ended after a grace period
    POWER_OFF = "power-off"  # the host and its addresses vanish
    PAUSE = "pause"  # every process is frozen, then thawed
    SLOW = "slow"  # a share of the CPU, a delay on messages
    PARTITION = "partition"  # no packet to or from a set of hosts
    DISK_FULL = "disk-full"
    BROKER_KILL = "broker-kill"  # SIGKILL of a service on the gateway
    DRIVER_KILL = "driver-kill"
    MASTER_KILL = "master-kill"

    @property
    def effect(self) -> Effect:
        """What the fault holds its host in."""
        return EFFECTS[self]

    @property
    def loses_the_host(self) -> bool:
        """Whether a new machine takes the host's place."""
        return self.effect is Effect.DOWN

    @property
    def needs_an_end(self) -> bool:
        """Whether nothing ends it by default, as a new machine or a supervisor does."""
        return not self.loses_the_host and not self.service

    @property
    def takes_the_host(self) -> bool:
        """Whether the host is out of service meanwhile."""
        return self.effect in (Effect.DOWN, Effect.FROZEN, Effect.CUT)

    @property
    def loses_work(self) -> bool:
        """Whether the query loses what it was at, always: it cannot go on without what died."""
        return self.loses_the_host or self is FaultKind.DRIVER_KILL

    @property
    def must_come_back(self) -> bool:
        """Whether others must reach again what it kills; the query driver's return is a recovery of its own."""
        return self.loses_the_host or (self.service is not None and self is not FaultKind.DRIVER_KILL)

    @property
    def service(self) -> str | None:
        """The service of the gateway that it strikes; None for a fault of hosts."""
        return SERVICES.get(self)

    @property
    def drivers(self) -> frozenset[ClusterDriver]:
        """The drivers that can inject it; none can inject a kind that declares none."""
        return DRIVERS.get(self, frozenset())


EFFECTS = {
    FaultKind.KILL: Effect.DOWN,
    FaultKind.TERMINATE: Effect.DOWN,
    FaultKind.POWER_OFF: Effect.DOWN,
    FaultKind.PAUSE: Effect.FROZEN,
    FaultKind.SLOW: Effect.SLOW,
    FaultKind.PARTITION: Effect.CUT,
    FaultKind.DISK_FULL: Effect.FULL,
    FaultKind.BROKER_KILL: Effect.NO_BROKER,
    FaultKind.DRIVER_KILL: Effect.NO_DRIVER,
    FaultKind.MASTER_KILL: Effect.NO_MASTER,
}
SERVICES = {
    FaultKind.BROKER_KILL: "broker",
    FaultKind.DRIVER_KILL: "query",
    FaultKind.MASTER_KILL: "spark-master",
}
# What a kind needs of a host. A new driver is added to each that its hosts have.
PROCESSES = frozenset({ClusterDriver.LOCAL, ClusterDriver.NETNS, ClusterDriver.DOCKER, ClusterDriver.SSH})
OWN_NETWORK = frozenset({ClusterDriver.NETNS, ClusterDriver.DOCKER, ClusterDriver.SSH})
POWER_SWITCH = OWN_DISK = frozenset({ClusterDriver.NETNS, ClusterDriver.DOCKER})
COMMANDS = frozenset({ClusterDriver.EXTERNAL})  # a host's name is all that the user's commands are told
DRIVERS = {
    FaultKind.KILL: PROCESSES | COMMANDS,
    FaultKind.TERMINATE: PROCESSES | COMMANDS,
    FaultKind.POWER_OFF: POWER_SWITCH | COMMANDS,
    FaultKind.PAUSE: PROCESSES | COMMANDS,
    FaultKind.SLOW: PROCESSES,
    FaultKind.PARTITION: OWN_NETWORK,
    FaultKind.DISK_FULL: OWN_DISK,
    FaultKind.BROKER_KILL: PROCESSES,
    FaultKind.DRIVER_KILL: PROCESSES | COMMANDS,  # with every cluster driver, the query driver is on this machine
    FaultKind.MASTER_KILL: PROCESSES,
}


def kinds_of(driver: ClusterDriver | str) -> list[FaultKind]:
    """The kinds that a driver can inject, by their names."""
    return sorted(kind for kind in FaultKind if driver in kind.drivers)


class Direction(StrEnum):
    """Which packets of the struck host a partition drops."""

    BOTH = "both"
    IN = "in"  # those that come from its peers
    OUT = "out"  # those that go to its peers


class FaultOptions(NamedTuple):
    """The options of a fault beside its kind.

    peers      of a partition: the hosts that the struck one is cut off from; none named: every other host
    direction  of a partition
    cpu_share  of a slow host: the share of time in which its processes run
    delay      of a slow host: how much later its messages leave [s]
    """

    peers: tuple[str, ...] = ()
    direction: Direction = Direction.BOTH
    cpu_share: float = 1.0
    delay: float = 0.0

    def on(self, host: str) -> FaultOptions:
        """The options as they hold for one of the struck hosts, which is no peer of its own."""
        return self._replace(peers=tuple(peer for peer in self.peers if peer != host)) if self.peers else self


PLAIN = FaultOptions()
OPTIONS = {FaultKind.PARTITION: ("peers", "direction"), FaultKind.SLOW: ("cpu_share", "delay")}
