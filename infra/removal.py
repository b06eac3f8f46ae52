"""Removes the processes, namespaces and disks that a cluster of any driver has on this machine."""

from __future__ import annotations

from functools import partial

from infra import disks, namespaces, tokens
from infra.attempts import try_all
from infra.process_handles import ProcessHandles, kill_all
from infra.processes import marked, owners

ROOT_USER = 0
REMOVAL_LIMIT_S = 10.0


def remove(label: str, uid: int) -> None:
    """End every process of a user's cluster, then remove its interfaces, namespaces and disks; proves it.

    Idempotent, and indifferent to how far their creation came. Raises `EnvironmentFailure` for what does not go. If a
    namespace cannot be removed, the disks still are.
    """
    kill_all(LabelledProcesses(label, uid), REMOVAL_LIMIT_S)
    if uid == ROOT_USER:
        try_all(partial(namespaces.remove, label), partial(disks.remove, label))


class LabelledProcesses(ProcessHandles):
    """The processes of a user's cluster: those that carry a mark of it, and those that live in its namespaces."""

    def __init__(self, label: str, uid: int) -> None:
        super().__init__(label)
        self._label, self._uid = label, uid

    def find(self) -> list[int]:
        carrying = {process.pid for process in owners() if self._is_ours(process.mark, process.uid)}
        return sorted(carrying | self._living())

    def belongs(self, pid: int) -> bool:
        process = marked(pid)
        return bool(process and self._is_ours(process.mark, process.uid)) or pid in self._living()

    def _is_ours(self, mark: str, uid: int) -> bool:
        return uid == self._uid and tokens.label_of(mark) == self._label

    def _living(self) -> set[int]:
        return set(namespaces.processes(self._label)) if self._uid == ROOT_USER else set()
