"""The netns driver: hosts are network namespaces of this machine, each with an sshd; everything goes over SSH.

Needs root, `ip` and Debian's openssh-server. The keys are made for the run, in its live directory, and pinned there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from experiments.errors import BadInput, EnvironmentFailure
from experiments.fault_kinds import PLAIN, FaultKind, FaultOptions
from experiments.hosts import ClusterDriver
from experiments.spec import ClusterSpec
from infra import disks, launch, namespaces, programs, removal
from infra.cluster import Handle, Host, untold
from infra.netns.power import NetnsPowerOff
from infra.processes import MACHINE, Usage, members, usage
from infra.remote import ssh
from infra.remote.hosts import RemoteHosts, SwitchedOff
from infra.remote.session import Session
from infra.services import gateway, startup
from infra.strikes import delay, partition
from infra.strikes.strike import Proof, Strike

CAP_NET_ADMIN, CAP_SYS_ADMIN = 12, 21
PACKAGES = {
    "sshd": "openssh-server",
    "ssh-keygen": "openssh-client",
    "ip": "iproute2",
    "nsenter": "util-linux",
    "mount": "mount",
}
KEY_LIMIT_S = 30.0  # other runs wait meanwhile, for the lock on provisioning
PRIVILEGE_SEPARATION = Path("/run/sshd")  # sshd does not start without it; Debian makes it when the service starts


class NetnsDriver(RemoteHosts):
    """Implements `infra.cluster.Driver` by namespaces of this machine."""

    name = ClusterDriver.NETNS

    def __init__(self) -> None:
        super().__init__(_session)

    def check(self, spec: ClusterSpec) -> None:
        """Raise `BadInput` without the privileges and `EnvironmentFailure` without the programs."""
        _check_privileges()
        for program in PACKAGES:
            find_program(program)

    def obstacle(self, spec: ClusterSpec, kind: FaultKind, options: FaultOptions) -> str | None:
        """What the machine's kernel and programs cannot do."""
        if kind is FaultKind.PARTITION and (reason := partition.refusal()):
            return f"partition where nftables works: `apt-get install nftables` ({reason})"
        if options.delay and (reason := delay.refusal()):
            return f"no delay on this machine ({reason}), but cpu_share"
        return ssh.refusal(options.delay)

    def provision(self, spec: ClusterSpec, run_id: str, root: Path, tell: Callable[[str], None] = untold) -> Handle:
        """Check the spec, create the hosts and start what runs on them (`infra.services.startup.provision`)."""
        self.check(spec)
        lay_out = partial(startup.lay_out_on_bridge, spec, run_id, root)
        return startup.provision(self, spec, root, lay_out, partial(make_hosts, spec), tell)

    def prepare(self, handle: Handle, host: str, kind: FaultKind, options: FaultOptions = PLAIN) -> Strike:
        if kind is not FaultKind.POWER_OFF:
            return super().prepare(handle, host, kind, options)
        worker = startup.struck(handle, host, kind)
        return NetnsPowerOff(handle.token, worker, on_cut=partial(self.forget, handle, worker))

    def heal(self, handle: Handle, host: str, kind: FaultKind) -> Proof:
        """As `Driver.heal`; the network of a host without power is reconnected from outside."""
        proof = super().heal(handle, host, kind)
        if kind is FaultKind.PARTITION and not namespaces.addresses_of(handle.token, host):
            return partition.reconnect(namespaces.inside(handle.token, host))
        return proof

    def heal_with_power(self, handle: Handle, host: str, kind: FaultKind) -> Proof:
        """A host that was lost gets power and an empty disk first."""
        worker = startup.struck(handle, host, kind)
        if kind.loses_the_host:
            _switch_on(handle, worker)
            if not self.running(handle, host):
                disks.empty(handle.disk(host))
        return super().heal_with_power(handle, host, kind)

    def usage(self, handle: Handle, host: str) -> Usage:
        """Process ids are the machine's, so no agent is needed to look."""
        return usage(members(f"{handle.token}/{host}"))

    def destroy(self, handle: Handle) -> None:
        """End everything that carries the cluster's token, its namespaces and disks; the directories stay."""
        self.close(handle)
        removal.remove(handle.label, os.geteuid())


def _check_privileges() -> None:
    """Raise `BadInput` unless this process may create namespaces and interfaces."""
    status = Path("/proc/self/status").read_text()
    effective = int(status.partition("CapEff:")[2].split()[0], 16)
    if os.geteuid() or not all(effective >> capability & 1 for capability in (CAP_NET_ADMIN, CAP_SYS_ADMIN)):
        raise BadInput("cluster.driver", "netns", "local, or netns as root with CAP_NET_ADMIN and CAP_SYS_ADMIN")


def find_program(name: str) -> str:
    """The path of one of the `PACKAGES`' programs; raises `EnvironmentFailure` with the package when it is missing."""
    found = programs.find(name)
    if found is None:
        raise EnvironmentFailure(
            f"{name} is missing, which driver netns needs", f"run `apt-get install {PACKAGES[name]}`"
        )
    return found


def _session(handle: Handle, host: Host, command: Sequence[str]) -> Session:
    if not namespaces.addresses_of(handle.token, host.name):
        raise SwitchedOff(host.name)
    return ssh.SshSession(ssh.connect(login(handle), host.name, host.address), command)


def login(handle: Handle) -> ssh.Login:
    """How to reach the hosts: as root, by the client key of the run."""
    return ssh.Login("root", _keys(handle) / "client", _keys(handle) / "known_hosts")


def make_hosts(spec: ClusterSpec, handle: Handle) -> None:
    """Make keys, namespaces and the workers' disks, and start the hosts' sshd."""
    _make_keys(handle)
    namespaces.create(handle.token, handle.root, {host.name: host.address for host in handle.hosts.values()})
    for worker in handle.workers:
        disks.create(handle.token, worker.name, handle.disk(worker.name), spec.worker_disk_mb)
    PRIVILEGE_SEPARATION.mkdir(mode=0o755, exist_ok=True)
    for host in handle.hosts:
        _start_sshd(handle, host)


def _keys(handle: Handle) -> Path:
    return Path(handle.root) / "ssh"


def _make_keys(handle: Handle) -> None:
    """The client's key, and a host key for each host, pinned by address in `known_hosts`."""
    folder = _keys(handle)
    folder.mkdir(mode=0o700, exist_ok=True)
    _make_key(folder / "client")
    known = []
    for host in handle.hosts.values():
        public = _make_key(folder / host.name)
        known.append(f"{host.address} {public}")
    (folder / "known_hosts").write_text("".join(known), encoding="utf-8")


def _make_key(path: Path) -> str:
    """Make an Ed25519 key that only its owner can read; returns its public half, as a line."""
    options = ("-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(path))
    try:
        done = programs.run(find_program("ssh-keygen"), *options, limit_s=KEY_LIMIT_S)
    except OSError as error:
        raise EnvironmentFailure(f"ssh-keygen could not make {path} ({error.strerror})", "see the machine") from None
    if done.returncode:
        raise EnvironmentFailure(f"ssh-keygen could not make {path} ({done.stderr.strip()})", "see the disk")
    return path.with_name(f"{path.name}.pub").read_text(encoding="utf-8")


def _switch_on(handle: Handle, host: Host) -> None:
    """Give a host its interface, address and sshd again, as far as it lacks them."""
    namespaces.plug_in(handle.token, host.name, host.address)
    if not gateway.answers(host.address, ssh.PORT):
        _start_sshd(handle, host.name)


def _start_sshd(handle: Handle, host: str) -> None:
    config = _keys(handle) / f"{host}.conf"
    config.write_text(sshd_config(handle, host), encoding="utf-8")
    sshd = [find_program("sshd"), "-D", "-e", "-f", str(config)]
    variables = launch.environment(f"{handle.token}/{MACHINE}/{host}", handle.root)
    log = handle.directory(host) / "logs" / "sshd.log"
    launch.spawn(namespaces.inside(handle.token, host, *sshd), Path(handle.root), log, variables)


def sshd_config(handle: Handle, host: str) -> str:
    """The configuration of a host's sshd: the run's key and nothing else opens it, and it only runs commands.

    `StrictModes` is off, because it refuses all keys below a directory that others may write to, such as /tmp. Here the
    mode of the key's own directory protects the key: only root may enter it.
    """
    keys = _keys(handle)
    settings = {
        "ListenAddress": f"{handle.hosts[host].address}:{ssh.PORT}",
        "HostKey": _quoted(keys / host),
        "AuthorizedKeysFile": _quoted(keys / "client.pub").replace("%", "%%"),  # it may name users by %u
        "StrictModes": "no",
        "PidFile": "none",
        "AllowUsers": "root",
        "PermitRootLogin": "prohibit-password",
        "AuthenticationMethods": "publickey",
        "PasswordAuthentication": "no",
        "KbdInteractiveAuthentication": "no",
        "UsePAM": "yes" if _root_is_locked() else "no",  # without it sshd turns a locked account away, key or not
        "UseDNS": "no",
        "DisableForwarding": "yes",
        "PermitTTY": "no",
        "PermitUserRC": "no",
        "MaxStartups": "100",
        "ClientAliveInterval": "15",
        "PrintMotd": "no",
    }
    return "".join(f"{name} {value}\n" for name, value in settings.items())


def _quoted(path: Path) -> str:
    """A path as it stands in sshd's configuration."""
    escaped = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _root_is_locked() -> bool:
    lines = Path("/etc/shadow").read_text(encoding="utf-8").splitlines()
    return any(line.startswith("root:!") for line in lines)
