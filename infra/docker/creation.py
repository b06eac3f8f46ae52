"""Makes the network and the containers of a cluster, each with the fewest rights that its part needs."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from docker.errors import ImageNotFound
from docker.models.containers import Container
from docker.types import IPAMConfig, IPAMPool

from experiments.errors import EnvironmentFailure
from experiments.hosts import Role
from experiments.spec import ClusterSpec
from infra import launch, namespaces
from infra.cluster import Handle, Host
from infra.docker import control, daemon, mounts
from infra.docker.containers import AT_ONCE, CLUSTER_LABEL, ROOT_LABEL, USER_LABEL, name_of, network_of
from infra.processes import MACHINE
from infra.services.startup import WORKER_OVERHEAD_MB
from infra.strikes import partition

DOCKERFILE = Path(__file__).with_name("Dockerfile")
# The first process of a container: it cuts a host off again that was when it lost its power (its argument names the
# rules); then it sleeps, and takes in and buries the orphans of the others, as an init does.
INIT = 'PATH=$PATH:/usr/sbin:/sbin; [ ! -e "$0" ] || nft -f "$0"; trap "exit 0" TERM; sleep infinity & wait'
# Ends well once the first process has set the rules, and badly after 10 s.
LIST_RULES = f"nft list table {partition.TABLE}"
AWAIT_RULES = f"PATH=$PATH:/usr/sbin:/sbin; for look in $(seq 500); do {LIST_RULES} && exit; sleep 0.02; done; exit 1"
# What the daemon's containers have of each second in real time, on a kernel that rations it by cgroup (version 1).
RATION = Path("/sys/fs/cgroup/cpu/docker/cpu.rt_runtime_us")
CONTROL_PART_US = 200_000  # for the injector, which deals with all hosts
LARGEST_PART_US, SMALLEST_PART_US = 200_000, 20_000  # of a host: its agent needs 5 to 10 ms around a strike
MOST_THREADS = 8192  # of a container: a fork bomb stays in it
CONFINED: Mapping[str, Any] = {
    "cap_drop": ["ALL"],
    "security_opt": ["no-new-privileges:true"],
    "read_only": True,
    "pids_limit": MOST_THREADS,
}
ON_TIME, OWN_NETWORK = "SYS_NICE", "NET_ADMIN"  # rights: kills that are on time, partitions and delays


def make_hosts(spec: ClusterSpec, handle: Handle) -> None:
    """Make the network and a container for each host, and the control container, and start them."""
    mounts.prepare(handle)
    labels = {CLUSTER_LABEL: handle.label, ROOT_LABEL: handle.root, USER_LABEL: str(os.geteuid())}
    _create_network(handle, labels)
    shared, parts = {"image": build_image(), "labels": labels, **CONFINED}, real_time(handle)

    def create_one(host: Host) -> None:
        _create(handle, host, {**shared, **_options(handle, host, spec), "cpu_rt_runtime": parts.get(host.name)})

    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(create_one, [*handle.hosts.values(), control.host_of(handle)]))


def await_rules(handle: Handle, host: str, container: Container) -> None:
    """Wait until a host that was just started, and is cut off, is so again: before that, nothing may run there.

    Raises `EnvironmentFailure` if it is not after 10 s.
    """
    if mounts.rules_of(handle, host).exists():
        with daemon.asking(f"look at the rules of {host}"):
            status, said = container.exec_run(["sh", "-c", AWAIT_RULES])
        if status:
            why = said.decode(errors="replace").strip()
            cause = f"{host} has power again, but not the rules that cut it off: {why}"
            raise EnvironmentFailure(cause, "see the logs of its container")


def _create_network(handle: Handle, labels: Mapping[str, str]) -> None:
    prefix = handle.gateway.address.rpartition(".")[0]
    subnet = f"{prefix}.0/{namespaces.PREFIX_LENGTH}"
    pool = IPAMPool(subnet=subnet, gateway=f"{prefix}.{namespaces.CONTROLLER_NUMBER}")
    with daemon.asking(f"make the network {subnet}"):
        daemon.client().networks.create(
            network_of(handle.token),
            driver="bridge",
            internal=True,
            ipam=IPAMConfig(pool_configs=[pool]),
            labels=dict(labels),
            options={"com.docker.network.bridge.name": namespaces.uplink(handle.label)},
        )


def build_image() -> str:
    """The id of the image that all containers have; made from nothing but the Dockerfile, unless the daemon has it."""
    digest = hashlib.sha256(DOCKERFILE.read_bytes()).hexdigest()[:16]
    tag = f"aftershock-host:{digest}"
    with daemon.asking(f"build {tag}"):
        images = daemon.client().images
        try:
            image = images.get(tag)
        except ImageNotFound:
            with DOCKERFILE.open("rb") as file:
                image, _ = images.build(fileobj=file, tag=tag, rm=True)
    return str(image.id)


def real_time(handle: Handle) -> dict[str, int]:
    """The parts of the containers in the ration, by name; none where nothing is rationed, or too little is left.

    Without it their agents cannot take precedence on such a kernel, and strike late when the machine is busy.
    """
    try:
        ration = int(RATION.read_text())
        taken = sum(int(path.read_text()) for path in RATION.parent.glob(f"*/{RATION.name}"))
    except OSError:
        return {}
    part = min(LARGEST_PART_US, (ration - taken - CONTROL_PART_US) // len(handle.hosts))
    return dict.fromkeys(handle.hosts, part) | {control.NAME: CONTROL_PART_US} if part >= SMALLEST_PART_US else {}


def _create(handle: Handle, host: Host, options: Mapping[str, Any]) -> None:
    """Make and start the container of a host."""
    client, network = daemon.client(), network_of(handle.token)
    with daemon.asking(f"start the container of {host.name}"):
        container = client.containers.create(
            command=["/bin/sh", "-c", INIT, str(mounts.rules_of(handle, host.name))],
            name=name_of(handle.token, host.name),
            hostname=host.name,
            user=f"{os.geteuid()}:{os.getegid()}",
            environment=launch.environment(f"{handle.token}/{MACHINE}/{host.name}", handle.root),
            mounts=mounts.of(handle, host),
            network=network,
            networking_config={network: client.api.create_endpoint_config(ipv4_address=host.address)},
            **options,
        )
        container.start()


def _options(handle: Handle, host: Host, spec: ClusterSpec) -> dict[str, object]:
    """What is not the same for all. Only workers have limits of memory: the gateway must not die of what it serves."""
    if host.role is Role.WORKER:
        return _worker_options(handle, host, spec)
    if host.name == control.NAME:
        return {"cap_add": [ON_TIME], "group_add": [str(os.stat(daemon.socket_path()).st_gid)]}
    return {"cap_add": [ON_TIME]}


def _worker_options(handle: Handle, host: Host, spec: ClusterSpec) -> dict[str, object]:
    """A disk in memory, which counts as the container's; no swap, so that a worker is not slow by stealth."""
    memory = f"{host.memory_mb + WORKER_OVERHEAD_MB + spec.worker_disk_mb}m"
    tmpfs = mounts.disk_of(handle, host, spec.worker_disk_mb)
    return {"mem_limit": memory, "memswap_limit": memory, "tmpfs": tmpfs, "cap_add": [ON_TIME, OWN_NETWORK]}
