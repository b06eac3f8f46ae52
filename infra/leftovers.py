"""What clusters have on this machine, found without handles: processes by their marks, networks by their names."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from infra import namespaces
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

    @property
    def has_network(self) -> bool:
        return self.namespaces > 0

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
    return [_traces(token, {pid: root for owner, pid, root in marked if owner == token}) for token in sorted(tokens)]


def _traces(token: str, roots: dict[int, str]) -> Traces:
    """The traces of a token that these processes carry; others may live in its namespaces."""
    root = next(filter(None, roots.values()), None) or namespaces.root_of(token) or ""
    return Traces(token, root, len(roots.keys() | set(namespaces.processes(token))), len(namespaces.of(token)))
