"""The agent on an existing machine: reports what is there, and acts only for the run that has claimed it.

Run by the driver as `python -m infra.ssh.machine_agent HOST ADDRESS DISK`.
"""

from __future__ import annotations

import errno
import os
import sys
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from experiments.errors import EnvironmentFailure
from experiments.fault_kinds import PLAIN, FaultKind, FaultOptions
from infra.launch import REPOSITORY
from infra.mounted import mounted
from infra.processes import MACHINE, is_taken, listening
from infra.remote.agent import Agent, serve
from infra.ssh import claims
from infra.strikes import delay, partition
from infra.strikes.death import Death
from infra.strikes.ready import Target, ready
from infra.strikes.strike import StrikeOnHost

ANY_PORT = 0
OVER_THE_NETWORK = {"nfs", "nfs4", "cifs", "smb3", "9p", "afs", "ceph", "glusterfs", "lustre", "gpfs", "beegfs"}


class MachineAgent(Agent):
    """The agent of a machine of an inventory: it strikes, spawns and undoes only while the run's claim is there."""

    def __init__(self, host: str, address: str, disk: str) -> None:
        """`disk` is not looked at: a machine has no disk that a fault may fill.

        The folder may be on a network file system. If a partition cuts that off, an agent that looked would wait there
        for ever, and could not heal the partition.
        """
        super().__init__(host, address, disk=None)
        self.host = host
        with suppress(EnvironmentFailure):  # raised again by each request that needs the claim
            if claim := self._claim():
                self._know_ports(claim.ports)

    def _claim(self) -> claims.Claim | None:
        """The claim of this machine, if it is the run's."""
        claim = claims.owner()
        return claim if claim and claim.token == self.token else None

    def _know_ports(self, ports: Iterable[int]) -> None:
        """Ports on which the machine listens without us, or another run."""
        self.target = replace(self.target, machine_ports=self.target.machine_ports | frozenset(ports))

    def survey(self, needed: list[str], ports: list[int]) -> dict[str, Any]:
        """What a run would find: paths that cannot be read, ports that are taken, faults that cannot be, who has it.

        Raises `OSError` if the address at which the other hosts reach the machine is not its own.
        """
        _require_own(self.target.address)
        claim = claims.owner()
        return {
            "missing": [path for path in needed if not os.access(path, os.R_OK)],
            "taken": [port for port in ports if is_taken(self.target.address, port)],
            "refusals": {"delay": delay.refusal_at(self.target.address), "partition": _partition_refusal()},
            "owner": claim.run_id if claim else None,
            "file": str(claims.file()),
        }

    def claim(self, run_id: str, root: str) -> dict[str, Any] | None:
        """Take this machine for a run; returns whose it is when it is another's, and where that stands."""
        claim = claims.Claim(self.token, run_id, root, tuple(listening(self.target.address)))
        other = claims.take(claim)
        if other is None:
            self._know_ports(claim.ports)
        return {"run_id": other.run_id, "file": str(claims.file())} if other else None

    def share(self, path: str, nonce: str) -> str:
        """Read the nonce there and write it beside; returns what is wrong, or nothing."""
        try:
            if Path(path).read_text(encoding="utf-8") != nonce:
                return "another file is there"
            Path(f"{path}-{self.host}").write_text(nonce, encoding="utf-8")
        except OSError as error:
            return error.strerror or str(error)
        return ""

    def vacate(self) -> dict[str, int]:
        """End every process of the run here but this one, and give the machine up; returns what is left.

        If the run does not have the machine any more, another one may: then packet filters and delays are left alone.
        So the run keeps a machine that still has its processes, filters or delay, until a further call removes them.
        """
        ours = self._claim() is not None
        if not ours:
            self._know_ports(listening(self.target.address))
        elif partition.has_table():
            partition.reconnect()
        machine = replace(self.target, mark=f"{self.token}/{MACHINE}/{self.host}")
        left = Counter[str]()
        for target in (self.target, machine):
            left.update(_death(target, and_its_delay=ours).fire().left)
        left["nftables tables"] = int(ours and partition.has_table())
        if not (left["survivors"] or left["nftables tables"]):
            claims.give_up(self.token)
        return {**left, "claims": int(self._claim() is not None)}

    def leave(self) -> None:
        """End the agent."""
        sys.exit()

    def spawn(self, command: list[str], folder: str, log: str, variables: dict[str, str]) -> int:
        self._require_claim()
        return super().spawn(command, folder, log, variables)

    def prepare(self, number: int, kind: FaultKind, options: FaultOptions) -> None:
        self._require_claim()
        super().prepare(number, kind, options)

    def undo(self, kind: FaultKind) -> dict[str, Any]:
        self._require_claim()
        return super().undo(kind)

    def _require_claim(self) -> None:
        claim = claims.owner()
        if claim is None or claim.token != self.token:
            found = f"this machine is run {claim.run_id}'s" if claim else "this machine is no run's"
            raise PermissionError(errno.EPERM, f"{found}, so nothing is done on it", str(claims.file()))


def _require_own(address: str) -> None:
    """Raise `OSError` unless a program can listen on an address, as broker, master and workers will."""
    try:
        is_taken(address, ANY_PORT)
    except OSError as error:
        why = f"no program of this machine can listen at this internal_address ({error.strerror})"
        raise OSError(error.errno, why, address) from None


def _death(target: Target, *, and_its_delay: bool) -> StrikeOnHost:
    """The death of all processes of a mark; it also removes what delays packets of the machine, if that is wanted."""
    if and_its_delay:
        return ready(target, FaultKind.KILL, PLAIN)
    return Death(target.mark, target.address, spared_ports=target.machine_ports)


def _partition_refusal() -> str | None:
    """Why this machine cannot be cut off, and reached to be healed: what the agent itself is read from must stay."""
    for path in (REPOSITORY, Path(sys.executable).resolve()):
        kind = filesystem_of(path)
        if kind in OVER_THE_NETWORK or kind.startswith("fuse."):
            return f"{path} is on {kind}, which a cut would take away with all that could heal it"
    return partition.refusal()


def filesystem_of(path: Path) -> str:
    """The type of the filesystem that a path is on; empty if the kernel lists none.

    On one folder, the last one counts: an automount stands before what was mounted there when it was first used.
    """
    above = [each for each in reversed(mounted()) if path.is_relative_to(each.folder)]
    return max(above, key=lambda each: len(each.folder.parts)).kind if above else ""


if __name__ == "__main__":
    serve(MachineAgent(*sys.argv[1:]))
