"""Machines for driver ssh without any machine: network namespaces of this one, each with an sshd. Needs root.

    .venv/bin/python -m tests.integration.infra.machines FOLDER WORKERS     makes them, and FOLDER/inventory.json
    .venv/bin/python -m tests.integration.infra.machines FOLDER --remove    ends everything on them, and them

They share this machine's disk and processes, but have networks of their own, as far as they reach.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from experiments.hosts import ClusterDriver
from experiments.spec import ClusterSpec
from infra import launch, leftovers, namespaces
from infra.cluster import Handle
from infra.netns import driver as netns
from infra.processes import MACHINE
from infra.remote import ssh
from infra.services import gateway, startup
from tests.unit.marked_processes import wait_for

INVENTORY = "inventory.json"
CORES, MEMORY_MB = 2, 4096


def make(folder: Path, workers: int) -> Handle:
    """Make a gateway and workers, each two of which are a rack; writes `inventory.json` into the folder.

    If that fails, nothing of them is left.
    """
    spec = ClusterSpec(driver=ClusterDriver.NETNS, workers=workers, worker_disk_mb=64)
    netns.NetnsDriver().check(spec)
    root = folder / "machines"
    root.mkdir(parents=True)
    with ExitStack() as made:
        with startup.one_at_a_time():
            handle = startup.lay_out_on_bridge(spec, "machines", root)
            handle.save()
            for host in handle.hosts:
                (handle.directory(host) / "logs").mkdir(parents=True)
            made.callback(leftovers.remove, handle.label)
            netns.make_hosts(spec, handle)
        write_inventory(folder, described(handle))
        wait_for(lambda: all(gateway.answers(host.address, ssh.PORT) for host in handle.hosts.values()))
        made.pop_all()
    return handle


def described(handle: Handle) -> dict[str, dict[str, Any]]:
    """What an inventory says of each machine; its names are not those of an experiment's hosts."""
    keys = Path(handle.root) / "ssh"
    machines = {}
    for number, host in enumerate(handle.hosts.values()):
        machines[host.name] = {
            "name": f"machine-{number}",
            "role": host.role.value,
            "address": host.address,
            "user": "root",
            "key_file": str(keys / "client"),
            "host_key": (keys / f"{host.name}.pub").read_text(encoding="utf-8").strip(),
            "domains": [f"rack-{(number + 1) // 2}"] if number else [],
            "cores": CORES,
            "memory_mb": MEMORY_MB,
        }
    return machines


def write_inventory(folder: Path, machines: dict[str, dict[str, Any]]) -> Path:
    path = folder / INVENTORY
    path.write_text(json.dumps({"hosts": list(machines.values())}, indent=1), encoding="utf-8")
    return path


def hide(there: Handle, host: str, folder: Path | None) -> None:
    """Start the sshd of a machine again, for which a folder is empty; or none is."""
    wait_for(lambda: _all_ended(there, host))  # one that is dying still has the port, which the next one needs
    config = Path(there.root) / "ssh" / f"{host}.conf"
    sshd = shlex.join([netns.find_program("sshd"), "-D", "-e", "-f", str(config)])
    mount = f"mount -t tmpfs hidden {shlex.quote(str(folder))} && " if folder else ""
    command = namespaces.inside(there.token, host, "unshare", "--mount", "sh", "-c", f"{mount}exec {sshd}")
    log = there.directory(host) / "logs" / "sshd.log"
    variables = launch.environment(f"{there.token}/{MACHINE}/{host}", there.root)
    launch.spawn(command, Path(there.root), log, variables)


def _all_ended(there: Handle, host: str) -> bool:
    """Whether no process lives on a machine, by its network: sshd writes its title over its environment. Kills them."""
    found = namespaces.processes_of(there.token, host)
    for pid in found:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return not found


def main() -> None:
    folder, what = Path(sys.argv[1]).absolute(), sys.argv[2]
    if what == "--remove":
        leftovers.remove(Handle.load(folder / "machines").label)
    else:
        make(folder, int(what))
        print(folder / INVENTORY)


if __name__ == "__main__":
    main()
