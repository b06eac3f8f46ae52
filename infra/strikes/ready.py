"""The strikes by the kinds of faults: what makes one ready on a host's own machine, and what undoes it there."""

from __future__ import annotations

from dataclasses import dataclass

from experiments.fault_kinds import FaultKind, FaultOptions
from infra.strikes.death import Death
from infra.strikes.strike import Proof, Strike


@dataclass(frozen=True)
class Target:
    """A host as its own machine sees it: the mark of its processes, its address, and what there is not its own."""

    mark: str
    address: str
    machine_ports: frozenset[int] = frozenset()  # on which the machine listens at that address, as for SSH
    disk: str | None = None  # the folder on which its own disk is mounted; None: it has none of its own


def ready(target: Target, kind: FaultKind, options: FaultOptions) -> Strike:
    """Make a strike ready; `options.peers` are addresses here. The driver has refused what it cannot do."""
    match kind:
        case FaultKind.KILL:
            return Death(target.mark, target.address, spared_ports=target.machine_ports)
    raise NotImplementedError(f"no strike of kind {kind} on a host's own machine")


def undo(target: Target, kind: FaultKind) -> Proof:
    """Undo what a strike of that kind left on a host that is up; harmless when there is nothing."""
    raise NotImplementedError(f"nothing to undo of kind {kind}")
