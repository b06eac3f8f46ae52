"""What a soak could leave behind: objects on the machine by name, and resources of a served Airflow by amount."""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import psutil

from infra import namespaces, processes
from infra.services.startup import PROVISION_LOCK

TEMPORARY = "tmp"  # folder of a home: where its programs put what is temporary
LISTINGS = {
    "rules": (["iptables-save"], ["nft", "list", "ruleset"]),
    "containers": (["docker", "ps", "--all", "--quiet"],),
    # Not those that every daemon has, which may have started meanwhile. A cluster makes no volumes.
    "networks": (["docker", "network", "ls", "--filter", "type=custom", "--quiet"],),
}


class Usage(NamedTuple):
    """What a process holds, with all below it."""

    processes: int
    threads: int
    descriptors: int
    memory_mb: float


def on_the_machine(home: Path) -> dict[str, set[str]]:
    """What is there by kind: processes and files of this home, and of the whole machine what a cluster can change.

    But for the file that lets one run after the other set up its hosts: the first run makes it for all.
    """
    mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    folders = (home / "live", home / TEMPORARY, Path("/dev/shm"))
    below = f"{home}{os.sep}"
    return {
        "processes": {f"{each.pid} {each.mark}" for each in processes.owners() if each.root.startswith(below)},
        "namespaces": set(namespaces.labels()),
        "interfaces": set(os.listdir("/sys/class/net")),
        "mounts": {line.split()[4] for line in mounts},
        "files": {str(path) for folder in folders for path in folder.glob("*") if path.name != PROVISION_LOCK.name},
        **{kind: _lines(*commands) for kind, commands in LISTINGS.items()},
    }


def left(before: dict[str, set[str]], after: dict[str, set[str]]) -> dict[str, list[str]]:
    """What is there that was not, by kind; kinds of which nothing is left are not named."""
    more = {kind: sorted(after[kind] - before[kind]) for kind in after}
    return {kind: names for kind, names in more.items() if names}


def usage(parent: psutil.Process) -> Usage:
    """What a process and all below it hold now; those that end meanwhile count for nothing."""
    found = []
    for each in (parent, *parent.children(recursive=True)):
        with suppress(psutil.NoSuchProcess), each.oneshot():
            found.append((1, each.num_threads(), each.num_fds(), each.memory_info().rss / 2**20))
    return Usage(*map(sum, zip(*found, strict=True)))


def _lines(*commands: list[str]) -> set[str]:
    """What these programs list; nothing of one that is not installed, or that this user may not ask."""
    installed = [command for command in commands if shutil.which(command[0])]
    told = [subprocess.run(command, capture_output=True, text=True, check=False).stdout for command in installed]
    lines = {line.strip() for text in told for line in text.splitlines()}
    return {line for line in lines if line and not line.startswith(("#", ":"))}  # comments and counters of chains
