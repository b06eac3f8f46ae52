"""How to log in to the machines of an inventory, from the controller and from the cluster itself.

What is needed for it is kept with the run, below its cluster's root, so that no step needs the inventory again.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import paramiko

from experiments import inventory
from experiments.errors import BadInput
from experiments.hosts import Role
from experiments.inventory import InventoryHost
from experiments.spec import ClusterSpec
from infra.cluster import Handle, Host
from infra.credentials import write_private
from infra.processes import MARK
from infra.remote import ssh
from infra.services import startup


@dataclass(frozen=True)
class MachineLogin:
    """How to log in to a host of a cluster: from the controller at `address`, from the cluster itself at its own."""

    name: str  # in the inventory
    address: str
    port: int
    user: str
    key: str


def lay_out(spec: ClusterSpec, run_id: str, root: Path) -> Handle:
    """The handle of a cluster on the machines of the inventory; how to log in to them is written below `root`."""
    path = Path(spec.inventory).absolute()
    found = inventory.load(path)
    chosen = {"gateway": found.gateway}
    chosen |= {f"worker-{i}": host for i, host in enumerate(found.first_workers(spec.workers), 1)}
    for host in chosen.values():
        _require_room(spec, host)
    hosts = [
        Host(name, _resolved(host), host.role, spec.worker_cores, spec.worker_memory_mb)
        for name, host in chosen.items()
    ]
    _require_a_machine_each(hosts, chosen)
    handle = startup.handle_on(spec, run_id, root, hosts=hosts)
    _write_logins(handle, chosen)
    (_logins(handle) / "inventory").symlink_to(path)
    return handle


def _require_room(spec: ClusterSpec, host: InventoryHost) -> None:
    """Raise `BadInput` unless the machine has the cores and the memory [MB] that the spec wants of it."""
    if host.role is Role.GATEWAY:
        if host.memory_mb < startup.GATEWAY_MEMORY_MB:
            allowed = f"a gateway with {startup.GATEWAY_MEMORY_MB} MB, not {host.memory_mb}"
            raise BadInput(inventory.FIELD, host.name, allowed)
        return
    room_mb = host.memory_mb - startup.WORKER_OVERHEAD_MB
    if spec.worker_memory_mb > room_mb:
        raise BadInput("cluster.worker_memory_mb", spec.worker_memory_mb, f"at most {room_mb}, for {host.name}")
    if spec.worker_cores > host.cores:
        raise BadInput("cluster.worker_cores", spec.worker_cores, f"at most {host.cores}, as {host.name} has")


def _resolved(host: InventoryHost) -> str:
    """The IPv4 address at which the other hosts reach a machine."""
    try:
        found = socket.getaddrinfo(host.cluster_address, None, socket.AF_INET, socket.SOCK_STREAM)
        return str(found[0][4][0])
    except OSError:
        allowed = "an IPv4 address, or a name that has one here"
        raise BadInput(inventory.FIELD, f"{host.name}: {host.cluster_address}", allowed) from None


def _require_a_machine_each(hosts: Sequence[Host], chosen: Mapping[str, InventoryHost]) -> None:
    """Raise `BadInput` if two names lead to one machine: a fault of its network would strike both hosts."""
    first: dict[str, InventoryHost] = {}
    for host in hosts:
        machine, other = chosen[host.name], first.setdefault(host.address, chosen[host.name])
        if other is not machine:
            allowed = f"a machine of its own: {other.name} has the address {host.address}, too"
            raise BadInput(inventory.FIELD, f"{machine.name}: {machine.cluster_address}", allowed)


def _logins(handle: Handle) -> Path:
    return Path(handle.root) / "ssh"


def _write_logins(handle: Handle, chosen: dict[str, InventoryHost]) -> None:
    folder = _logins(handle)
    folder.mkdir(mode=0o700, parents=True)
    known = []
    for name, host in chosen.items():
        for address in {host.address, handle.hosts[name].address}:
            known.append(f"{ssh.entry_of(address, host.port)} {host.host_key}\n")
    (folder / "known_hosts").write_text("".join(known), encoding="utf-8")
    _save(
        handle,
        {n: MachineLogin(h.name, h.address, h.port, h.user, str(h.key_file)) for n, h in chosen.items()},
    )


def _save(handle: Handle, machines: dict[str, MachineLogin]) -> None:
    """Write the logins as a whole: without them, no machine could be given up any more."""
    document = {name: asdict(machine) for name, machine in machines.items()}
    write_private(_logins(handle) / "machines.json", json.dumps(document, indent=1))


def machines_of(handle: Handle) -> dict[str, MachineLogin]:
    """The machines of a cluster by the names of its hosts."""
    document: dict[str, Any] = json.loads((_logins(handle) / "machines.json").read_text(encoding="utf-8"))
    return {name: MachineLogin(**machine) for name, machine in document.items()}


def copy_keys(handle: Handle) -> None:
    """Keep the keys, and their certificates, with the run: the injector logs in to the workers from the gateway."""
    copied = {}
    for name, machine in machines_of(handle).items():
        key, certificate = _logins(handle) / f"key-{name}", ssh.certificate_of(Path(machine.key))
        key.touch(mode=0o600)
        shutil.copyfile(machine.key, key)
        if certificate.exists():
            shutil.copyfile(certificate, ssh.certificate_of(key))
        copied[name] = MachineLogin(**{**asdict(machine), "key": str(key)})
    _save(handle, copied)


def called(handle: Handle, host: Host) -> str:
    """A host by both of its names."""
    name = machines_of(handle)[host.name].name
    return host.name if name == host.name else f"{host.name} ({name})"


def connect(handle: Handle, host: Host) -> paramiko.SSHClient:
    """A connection to the machine of a host."""
    machine = machines_of(handle)[host.name]
    pinned_in = (_logins(handle) / "inventory").readlink()
    known_hosts = _logins(handle) / "known_hosts"
    login = ssh.Login(machine.user, Path(machine.key), known_hosts, machine.port, pinned_in)
    address = host.address if _is_inside(handle) else machine.address
    return ssh.connect(login, called(handle, host), address)


def _is_inside(handle: Handle) -> bool:
    """Whether this process is a service on a host of the cluster, and not on the controller."""
    token, _, host = os.environ.get(MARK, "").partition("/")
    return token == handle.token and host.partition("/")[0] in handle.hosts
