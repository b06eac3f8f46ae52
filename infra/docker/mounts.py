"""What a container sees of the machine: programs and the checkout, to read only; the run's files, to write."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from docker.types import Mount

from infra.cluster import Handle, Host, Role
from infra.docker import daemon
from infra.jars import cache_folder
from infra.jvm import find_java
from infra.services import REPOSITORY

SYSTEM = ("bin", "sbin", "lib*", "usr")  # folders of the root, or links to such
SETTINGS = (
    "alternatives",
    "group",
    "java*",
    "ld.so.*",
    "localtime",
    "nsswitch.conf",
    "passwd",
    "pki",
    "ssl",
)  # of /etc


def of(handle: Handle, host: Host) -> list[Mount]:
    """The mounts of a host's container; those of the gateway let it write what the run keeps, and ask the daemon."""
    found = [Mount(str(target), str(source), type="bind", read_only=True) for target, source in _read_only()]
    root = Path(handle.root)
    if host.role is Role.WORKER:
        return [*found, Mount(str(root), str(root), type="bind")]
    live, path = str(root.parent), daemon.socket_path()
    return [*found, Mount(live, live, type="bind"), Mount(daemon.DEFAULT_SOCKET, path, type="bind")]


def _read_only() -> Iterator[tuple[Path, Path]]:
    """Where the container has it, and where the machine has it."""
    system = [path for pattern in SYSTEM for path in sorted(Path("/").glob(pattern)) if path.is_dir()]
    settings = [path for pattern in SETTINGS for path in sorted(Path("/etc").glob(pattern))]
    ours = [REPOSITORY, Path(sys.prefix), Path(sys.base_prefix), cache_folder(), find_java().home]
    yield from ((path, path.resolve()) for path in (*system, *settings))
    yield from ((path, path.resolve()) for path in outermost(itertools.chain(ours, _targets(ours)), system))


def _targets(paths: Iterable[Path]) -> Iterator[Path]:
    """Where links lead: they are followed inside the container, too."""
    return (path.resolve() for path in paths)


def outermost(paths: Iterable[Path], covered: Iterable[Path]) -> list[Path]:
    """Those that are neither below a covered folder nor below each other."""
    found: list[Path] = []
    for path in sorted(paths, key=lambda path: len(path.parts)):
        if not any(path.is_relative_to(other) for other in (*covered, *found)):
            found.append(path)
    return found
