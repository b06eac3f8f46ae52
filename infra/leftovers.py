"""Finds what clusters left on this machine, without their handles: processes by marks, the rest by names and labels.

A cluster is known by the label of its token and by its user. Processes of different users never belong to one cluster,
and namespaces and mounts belong to root. So no user can add anything to another user's cluster, even with its token.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.documents.plain_files import read_plain
from experiments.errors import AftershockError, EnvironmentFailure
from infra import disks, namespaces, removal, tokens
from infra.cluster import HANDLE_FILE
from infra.processes import owners
from infra.removal import ROOT_USER

IN_DOCKER = tokens.LETTERS["docker"]
# Of drivers whose hosts are on this machine, and of the one whose gateway is.
HERE = {tokens.LETTERS[driver] for driver in ("local", "netns", "docker", "external")}
Cluster = tuple[str, int]  # its label and its user


@dataclass(frozen=True)
class Traces:
    """What carries one label and belongs to one user; `roots` are those that its processes and containers name."""

    label: str
    uid: int
    roots: tuple[str, ...]
    processes: int
    namespaces: int
    mounts: int
    containers: int
    hidden: bool  # it has containers, perhaps, but no daemon tells
    elsewhere: bool = False  # its processes see their handle, in a container perhaps, where this one sees none

    @property
    def root(self) -> str:
        """Where the cluster has its root; empty when nothing tells, or not all that tell agree."""
        return self.roots[0] if len(self.roots) == 1 else ""

    @property
    def needs_root(self) -> bool:
        """Whether only root can remove it."""
        return self.namespaces + self.mounts > 0

    @property
    def orphaned(self) -> bool:
        """Whether the cluster's root has no handle of this cluster any more, so that no run can use or end the cluster.

        Raises `EnvironmentFailure` for a root that proves nothing: its handle is no file, or another user's.
        """
        if not Path(self.root).is_absolute() or os.path.normpath(self.root) != self.root:
            raise EnvironmentFailure(f"{self.root!r} is no absolute path", "look who named it")
        path = Path(self.root) / HANDLE_FILE
        try:
            text, uid = read_plain(path)
        except (FileNotFoundError, NotADirectoryError):
            return True
        except OSError as error:
            raise EnvironmentFailure(f"{path} cannot be read ({error.strerror})", "look at it") from None
        except ValueError:
            return False
        if uid != self.uid:
            raise EnvironmentFailure(f"{path} belongs to user {uid}, the processes to user {self.uid}", "look at both")
        return not _names(text, self.label)


def _names(handle: str, label: str) -> bool:
    """Whether a handle is that of the cluster; of a damaged one, nothing else is known than where it is."""
    try:
        return tokens.label(json.loads(handle)["token"]) == label
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return True


def find() -> list[Traces]:
    """The traces of every cluster on this machine, alive or not, that this user can see.

    The caller must hold the lock on provisioning: a network that is being made does not name its root yet.
    """
    running: dict[Cluster, dict[int, str]] = {}
    for process in owners():
        if (label := tokens.label_of(process.mark)) and label[0] in HERE:
            running.setdefault((label, process.uid), {})[process.pid] = process.root
    contained = _contained()
    of_root = namespaces.labels() | {label for label, _ in disks.mounts()}
    clusters = running.keys() | {(label, ROOT_USER) for label in of_root} | (contained or {}).keys()
    return [_traces(cluster, running.get(cluster, {}), contained) for cluster in sorted(clusters)]


def _contained() -> dict[Cluster, list[str]] | None:
    """The roots that containers and networks of a Docker daemon name; None where none can be asked."""
    from infra.docker import containers, daemon  # takes a third of a second, which not everybody here needs

    try:
        daemon.check()
        found = containers.owners()
    except AftershockError:
        return None
    return {cluster: roots for cluster, roots in found.items() if tokens.TOKEN.fullmatch(cluster[0])}


def _traces(cluster: Cluster, told: Mapping[int, str], contained: Mapping[Cluster, list[str]] | None) -> Traces:
    """The traces of a cluster whose processes name these roots; others may live in its namespaces."""
    label, uid = cluster
    in_docker = (contained or {}).get(cluster, [])
    named, mounted = (namespaces.of(label), disks.of(label)) if uid == ROOT_USER else ([], [])
    processes = told.keys() | (set(namespaces.processes(label)) if named else set())
    roots = set(filter(None, (*told.values(), *in_docker))) or _roots_of(label, named, mounted)
    hidden = contained is None and label.startswith(IN_DOCKER)
    counts = (len(processes), len(named), len(mounted), len(in_docker))
    elsewhere = any(_sees_another_root(pid, root) for pid, root in told.items())
    return Traces(label, uid, tuple(sorted(roots)), *counts, hidden, elsewhere)


def _sees_another_root(pid: int, root: str) -> bool:
    """Whether a process sees a handle at the root that it names, and this process none."""
    handle = f"{root}/{HANDLE_FILE}"
    there = os.path.isabs(root) and os.path.lexists(f"/proc/{pid}/root{handle}")
    return there and not os.path.lexists(handle)


def _roots_of(label: str, named: Sequence[str], mounted: Sequence[Path]) -> set[str]:
    """The cluster's root, as its uplink tells, or the disks of its hosts: ROOT/hosts/NAME/lives."""
    root = namespaces.root_of(label) if named else None
    if root is None and mounted:
        root = str(mounted[0].parents[2])
    return {root} if root else set()


def at(root: Path, uid: int) -> list[Traces]:
    """The traces of a user's clusters that name just this root: where a damaged handle does not tell more."""
    return [traces for traces in find() if traces.root == str(root) and traces.uid == uid]


def remove(label: str, uid: int | None = None) -> None:
    """End every process of a user's cluster, then remove interfaces, namespaces, disks, containers; proves it.

    The user is this one, unless another is named. Idempotent, however far the creation of the cluster came. Raises
    `EnvironmentFailure` for what does not go. If the Docker daemon fails, everything else is still removed.
    """
    if not tokens.TOKEN.fullmatch(label):
        raise EnvironmentFailure(f"{label!r} is no label of a cluster", "look at its handle")
    uid = os.geteuid() if uid is None else uid
    if label.startswith(IN_DOCKER):
        from infra.docker import containers

        containers.remove_cluster(label, uid)
    else:
        removal.remove(label, uid)
