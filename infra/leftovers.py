"""What clusters have on this machine, found without handles: processes by marks, networks and disks by names."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from infra import disks, namespaces
from infra.cluster import HANDLE_FILE
from infra.processes import owners

TOKEN = re.compile(r"[sn]\d+-[0-9a-f]{16}")


@dataclass(frozen=True)
class Traces:
    """What carries one token; `root` is empty when nothing tells where the cluster has its root."""

    token: str
    root: str
    processes: int
    namespaces: int
    mounts: int

    @property
    def needs_root(self) -> bool:
        """Whether only root can remove it."""
        return self.namespaces + self.mounts > 0

    @property
    def orphaned(self) -> bool:
        """Whether the cluster's root has no handle with this token any more: nobody can use or end the cluster."""
        path = Path(self.root) / HANDLE_FILE
        try:
            return json.loads(path.read_text(encoding="utf-8"))["token"] != self.token
        except (FileNotFoundError, NotADirectoryError):
            return True


def find() -> list[Traces]:
    """The traces of every cluster on this machine, alive or not, that this user can see.

    To be called while nobody provisions: a network that is being made does not tell its root yet.
    """
    marked = [(mark.partition("/")[0], pid, root) for pid, mark, root in owners()]
    tokens = {token for token, _, _ in marked if TOKEN.fullmatch(token)} | namespaces.tokens()
    tokens |= {token for token, _ in disks.mounts()}
    return [_traces(token, {pid: root for owner, pid, root in marked if owner == token}) for token in sorted(tokens)]


def _traces(token: str, roots: dict[int, str]) -> Traces:
    """The traces of a token that these processes carry; others may live in its namespaces."""
    mounted = disks.of(token)
    root = next(filter(None, roots.values()), None) or namespaces.root_of(token) or _root_of(mounted)
    processes = roots.keys() | set(namespaces.processes(token))
    return Traces(token, root, len(processes), len(namespaces.of(token)), len(mounted))


def _root_of(mounted: list[Path]) -> str:
    """The cluster's root, as the disks of its hosts tell: ROOT/hosts/NAME/lives."""
    return str(mounted[0].parents[2]) if mounted else ""


def remove(token: str) -> None:
    """End every process of a cluster, then its interfaces, namespaces and disks; proves that all is gone.

    Idempotent, and indifferent to how far their creation came. Raises `EnvironmentFailure` for what does not go.
    """
    namespaces.remove(token)
    disks.remove(token)
