"""Prepares and undoes strikes on a host's own machine, by the kind of the fault."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from experiments.fault_kinds import FaultKind, FaultOptions
from infra.launch import PORTS
from infra.processes import MACHINE
from infra.strikes.blackout import Blackout
from infra.strikes.death import Death, Termination
from infra.strikes.delay import Delay, undelay
from infra.strikes.disk import FullDisk, make_room
from infra.strikes.freeze import Freeze, thaw
from infra.strikes.partition import NetworkPartition, reconnect
from infra.strikes.program_death import ProgramDeath, resume
from infra.strikes.strike import Proof, StrikeOnHost, closed_on_failure
from infra.strikes.throttle import Throttle, end_throttlers


@dataclass(frozen=True)
class Target:
    """A host as its own machine sees it: the mark of its processes, its address, and what there is not its own."""

    mark: str
    address: str
    machine_ports: frozenset[int] = frozenset()  # on which the machine listens at that address, as for SSH
    disk: str | None = None  # the folder on which its own disk is mounted; None: it has none of its own

    @property
    def throttler(self) -> str:
        """The mark of the process that makes the host slow: it serves the machine, so a kill of the host spares it."""
        token, _, host = self.mark.partition("/")
        return f"{token}/{MACHINE}/{host}/throttler"

    def quicken(self) -> Mapping[str, int]:
        """Remove what makes the host slow, but for the stop that a throttler leaves it in; tells what is left."""
        return {"throttlers": end_throttlers(self.throttler), **undelay(self.address)}


def ready(target: Target, kind: FaultKind, options: FaultOptions) -> StrikeOnHost:
    """Make a strike ready; `options.peers` are addresses here. The driver has refused what it cannot do."""
    match kind:
        case FaultKind.KILL:
            return Death(target.mark, target.address, spared_ports=target.machine_ports, clear=target.quicken)
        case FaultKind.TERMINATE:
            return Termination(target.mark, target.address, spared_ports=target.machine_ports, clear=target.quicken)
        case FaultKind.POWER_OFF:
            return Blackout(target.mark, target.address, spared_ports=target.machine_ports, clear=target.quicken)
        case FaultKind.PAUSE:
            return Freeze(target.mark, throttler=target.throttler, clear=target.quicken)
        case FaultKind.SLOW:
            return _slow(target, options)
        case FaultKind.DISK_FULL if target.disk:
            return FullDisk(target.mark, Path(target.disk))
        case FaultKind.PARTITION:
            return NetworkPartition(target.mark, options.peers, options.direction, target.machine_ports)
        case FaultKind.BROKER_KILL | FaultKind.MASTER_KILL:
            service = str(kind.service)
            return Death(f"{target.mark}/{service}", target.address, own_ports=PORTS[service])
        case FaultKind.DRIVER_KILL:
            return ProgramDeath(f"{target.mark}/{kind.service}", target.address)
    raise NotImplementedError(f"no strike of kind {kind} on a host's own machine")


def undo(target: Target, kind: FaultKind) -> Proof:
    """Undo what a strike of that kind left on a host that is up; harmless when there is nothing."""
    match kind:
        case FaultKind.PAUSE:
            return thaw(target.mark)
        case FaultKind.SLOW:
            slow = target.quicken()
            thawed = thaw(target.mark)
            return replace(thawed, left={**thawed.left, **slow})
        case FaultKind.DISK_FULL if target.disk:
            return make_room(Path(target.disk))
        case FaultKind.PARTITION:
            return reconnect()
        case FaultKind.DRIVER_KILL:
            return resume(f"{target.mark}/{kind.service}")
    raise NotImplementedError(f"nothing to undo of kind {kind}")


def _slow(target: Target, options: FaultOptions) -> StrikeOnHost:
    parts: list[StrikeOnHost] = []
    if options.delay > 0:
        parts.append(Delay(target.mark, target.address, options.delay))
    if options.cpu_share < 1:
        with closed_on_failure(Together(parts)):  # its programs, which nobody else would end
            parts.append(Throttle(target.mark, throttler=target.throttler, share=options.cpu_share))
    return Together(parts)


class Together(StrikeOnHost):
    """Several strikes as one; each is carried out when it is due, and proved."""

    def __init__(self, parts: Sequence[StrikeOnHost]) -> None:
        self._parts = parts
        self.ports = set[int]().union(*(part.ports for part in parts))

    def refresh(self) -> bool:
        return all(part.refresh() for part in self._parts)

    def shoot(self, due_ns: int = 0) -> None:
        for part in self._parts:
            part.shoot(due_ns)

    def fire(self) -> Proof:
        return merged([part.fire() for part in self._parts])

    def close(self) -> None:
        for part in self._parts:
            part.close()


def merged(proofs: Sequence[Proof]) -> Proof:
    """One proof of what several prove: as a whole it took effect when the last of them had."""
    return Proof(
        fired_ns=max(proof.fired_ns for proof in proofs),
        proved_ns=max(proof.proved_ns for proof in proofs),
        done={name: count for proof in proofs for name, count in proof.done.items()},
        left={name: count for proof in proofs for name, count in proof.left.items()},
    )
