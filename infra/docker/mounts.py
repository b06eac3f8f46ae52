"""What a container sees of the machine: programs and the checkout read-only, and only its part of the run.

A folder that a container can write may hold links, which a process outside would follow. So processes outside write
nowhere where a container can write, except to the places of mounts, which processes inside cannot replace.

The daemon follows links, too: in the source of each mount, each time that it starts a container. So no source is in a
folder that a container writes, unless it is mounted at its own place directly in that folder: folders above the place
of a mount can be renamed from inside. `control` may replace what others have mounted: it runs none of the user's code.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from docker.types import Mount

from experiments.errors import BadInput
from experiments.hosts import Role
from infra import credentials
from infra.cluster import JOB, STORE, Handle, Host
from infra.docker import control, daemon
from infra.launch import REPOSITORY
from infra.services.jars import cache_folder
from infra.services.jvm import find_java
from infra.services.spark import EVENT_LOG

SYSTEM = ("bin", "sbin", "lib*", "usr")  # folders of the root, or links to such
SETTINGS = (
    "alternatives",
    "group",
    "java*",
    "ld.so.*",
    "localtime",
    "nsswitch.conf",
    "passwd",
    "pki/ca-trust",
    "pki/java",
    "pki/tls/cert*",
    "ssl/certs",
    "ssl/openssl.cnf",
)  # of /etc; no private keys
RAW = Path("result") / "raw"  # the logs of a run, beside its cluster
JOURNALS = ("query", "supervisor", "generator")  # of RAW, which services of the gateway write


def rules_of(handle: Handle, host: str) -> Path:
    """The file with the rules of a host that is cut off: they belong to its network, which outlives the container."""
    return Path(handle.root) / "rules" / host / "partition.nft"


def due_worker_of(handle: Handle, host: str) -> Path:
    """The file that is there while a host without a network is to get its worker: beside its rules."""
    return rules_of(handle, host).with_name("worker-due")


def scratch_of(handle: Handle, host: str) -> Path:
    """The folder that is /tmp in the container of a host: not in the host's own, where it could be replaced."""
    return Path(handle.root) / "scratch" / host


def of(handle: Handle, host: Host) -> list[Mount]:
    """The mounts of a container, whose sources `prepare` has made."""
    found = [_mount(target, source, read_only=True) for target, source in _read_only()]
    found += [_mount(path, path, read_only=True) for path in _read(handle, host) if path.exists()]
    found += [_mount(path, path) for path in _written(handle, host)]
    found.append(_mount(Path("/tmp"), scratch_of(handle, host.name)))
    if host.name == control.NAME:
        found.append(_mount(Path(daemon.DEFAULT_SOCKET), Path(daemon.socket_path())))
    return found


def disk_of(handle: Handle, host: Host, size_mb: int) -> dict[str, str]:
    """The disk of a worker, in memory: where it is mounted, and how."""
    options = f"size={size_mb}m,mode=0755,uid={os.geteuid()},gid={os.getegid()},exec"
    return {str(handle.disk(host.name)): options}


def _mount(target: Path, source: Path, *, read_only: bool = False) -> Mount:
    return Mount(str(target), str(source), type="bind", read_only=read_only)


def _read(handle: Handle, host: Host) -> Iterator[Path]:
    """What a container reads of the run."""
    root = Path(handle.root)
    if host.name == control.NAME:
        yield root
        return
    yield from (root / JOB, credentials.folder(root))
    if host.role is Role.WORKER:
        yield rules_of(handle, host.name).parent
    else:
        yield handle.orders


def _written(handle: Handle, host: Host) -> Iterator[Path]:
    """What a container writes of the run, and reads."""
    root, raw = Path(handle.root), Path(handle.root).parent / RAW
    yield handle.directory(host.name)
    if host.name == control.NAME:
        yield rules_of(handle, "").parent
        yield from (handle.disk(worker.name) for worker in handle.workers)
        yield from filter(Path.exists, [raw])
        return
    yield root / STORE
    if host.role is Role.GATEWAY and raw.exists():
        yield from (_journal(raw, name) for name in JOURNALS)
        yield raw / EVENT_LOG


def _journal(raw: Path, name: str) -> Path:
    return raw / f"{name}.jsonl"


def prepare(handle: Handle) -> None:
    """Make what is mounted, so that it is the controller's and a container cannot replace it.

    Raises `BadInput` for a run in a folder that every container sees.
    """
    root, raw = Path(handle.root), Path(handle.root).parent / RAW
    _check_root(root)
    folders = [root / STORE, root / JOB, handle.orders]
    folders += [rules_of(handle, worker.name).parent for worker in handle.workers]
    folders += [handle.disk(worker.name) for worker in handle.workers]
    for name in (*handle.hosts, control.NAME):
        folders += [handle.directory(name) / "logs", scratch_of(handle, name)]
    folders += [raw / EVENT_LOG] if raw.exists() else []
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
    if raw.exists():
        for name in JOURNALS:
            _journal(raw, name).touch()


def check_socket() -> None:
    """Raise `BadInput` if containers would see the daemon's socket: one that is mounted to be read can be asked."""
    path = Path(daemon.socket_path())
    if seen := _seen(path):
        raise BadInput("DOCKER_HOST", f"unix://{path}", f"a socket outside {seen}, which containers see")


def _check_root(root: Path) -> None:
    if seen := _seen(root):
        raise BadInput("AFTERSHOCK_HOME", str(root), f"a folder outside {seen}, which containers see")


def _seen(path: Path) -> Path | None:
    """The folder of the machine that all containers see and that holds this path, if one does."""
    path = path.resolve()
    return next((source for _, source in _read_only() if path.is_relative_to(source)), None)


def _read_only() -> Iterator[tuple[Path, Path]]:
    """Where the container has it, and where the machine has it."""
    system = [path for pattern in SYSTEM for path in sorted(Path("/").glob(pattern)) if path.is_dir()]
    settings = [path for pattern in SETTINGS for path in sorted(Path("/etc").glob(pattern))]
    ours = [*checkout(REPOSITORY), Path(sys.prefix), Path(sys.base_prefix), cache_folder(), find_java().home]
    yield from ((path, path.resolve()) for path in (*system, *settings))
    yield from ((path, path.resolve()) for path in outermost(itertools.chain(ours, _targets(ours)), system))


def checkout(folder: Path) -> list[Path]:
    """What containers see of the checkout: nothing hidden, as the home of all runs is."""
    return [path for path in sorted(folder.iterdir()) if not path.name.startswith(".")]


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
