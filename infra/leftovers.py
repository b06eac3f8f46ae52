"""What clusters have on this machine, found without handles: processes by marks, the rest by names and labels."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from experiments.errors import AftershockError
from infra import disks, namespaces
from infra.cluster import HANDLE_FILE
from infra.processes import owners

TOKEN = re.compile(r"[snd]\d+-[0-9a-f]{16}")
IN_DOCKER = "d"  # the letter of the docker driver's tokens


@dataclass(frozen=True)
class Traces:
    """What carries one token; `root` is empty when nothing tells where the cluster has its root."""

    token: str
    root: str
    processes: int
    namespaces: int
    mounts: int
    containers: int
    hidden: bool  # it has containers, perhaps, but no daemon tells

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
        except PermissionError:  # another user's, whose containers a user of the daemon sees
            return False


def find() -> list[Traces]:
    """The traces of every cluster on this machine, alive or not, that this user can see.

    To be called while nobody provisions: a network that is being made does not tell its root yet.
    """
    marked = [(mark.partition("/")[0], pid, root) for pid, mark, root in owners()]
    tokens = {token for token, _, _ in marked if TOKEN.fullmatch(token)} | namespaces.tokens()
    contained = _contained()
    tokens |= {token for token, _ in disks.mounts()} | set(filter(TOKEN.fullmatch, contained or {}))
    return [
        _traces(token, {pid: root for owner, pid, root in marked if owner == token}, contained)
        for token in sorted(tokens)
    ]


def _contained() -> dict[str, list[str]] | None:
    """The roots that containers and networks of a Docker daemon name, by token; None where none can be asked."""
    from infra.docker import containers, daemon  # takes a third of a second, which not everybody here needs

    try:
        daemon.check()
        return containers.owners()
    except AftershockError:
        return None


def _traces(token: str, roots: dict[int, str], contained: dict[str, list[str]] | None) -> Traces:
    """The traces of a token that these processes carry; others may live in its namespaces."""
    in_docker = (contained or {}).get(token, [])
    mounted = disks.of(token)
    root = next(filter(None, (*roots.values(), *in_docker)), None) or namespaces.root_of(token) or _root_of(mounted)
    processes = roots.keys() | set(namespaces.processes(token))
    hidden = contained is None and token.startswith(IN_DOCKER)
    return Traces(token, root, len(processes), len(namespaces.of(token)), len(mounted), len(in_docker), hidden)


def _root_of(mounted: list[Path]) -> str:
    """The cluster's root, as the disks of its hosts tell: ROOT/hosts/NAME/lives."""
    return str(mounted[0].parents[2]) if mounted else ""


def remove(token: str) -> None:
    """End every process of a cluster, then its interfaces, namespaces, disks, containers; proves that all is gone.

    Idempotent, and indifferent to how far their creation came. Raises `EnvironmentFailure` for what does not go.
    """
    if token.startswith(IN_DOCKER):
        from infra.docker import containers

        containers.remove(token)
    namespaces.remove(token)
    disks.remove(token)
