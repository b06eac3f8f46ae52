"""The containers of a cluster and the network that joins them, made and removed by the daemon.

All of them carry the cluster's label (`infra.tokens`), root and user as Docker labels: whoever finds them knows whose
they are. What makes and uses them takes the token, what finds them without a handle the label. The network is a
bridge of the cluster's own on a /24 of 198.18.0.0/15, with no way out of it; the machine is number 254 there.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from docker.errors import APIError, ImageNotFound, NotFound
from docker.models.containers import Container
from docker.models.networks import Network
from docker.types import IPAMConfig, IPAMPool

from experiments.errors import EnvironmentFailure
from experiments.spec import ClusterSpec
from infra import namespaces, services, tokens
from infra.cluster import Handle, Host, Role
from infra.docker import daemon, mounts
from infra.processes import MACHINE
from infra.startup import WORKER_OVERHEAD_MB

DOCKERFILE = Path(__file__).with_name("Dockerfile")
CLUSTER_LABEL, ROOT_LABEL, USER_LABEL = "aftershock.cluster", "aftershock.root", "aftershock.user"
# The first process of a container: it cuts a host off again that was when it lost its power (its argument names the
# rules); then it sleeps, and takes in and buries the orphans of the others, as an init does.
INIT = "PATH=$PATH:/usr/sbin:/sbin; [ ! -e $0 ] || nft -f $0; trap 'exit 0' TERM; sleep infinity & wait"
CAPABILITIES = ("NET_ADMIN", "SYS_NICE")  # beyond Docker's own: partitions, and kills that are on time
# What the daemon's containers have of each second in real time, on a kernel that rations it by cgroup (version 1).
RATION = Path("/sys/fs/cgroup/cpu/docker/cpu.rt_runtime_us")
GATEWAY_PART_US = 200_000  # for the injector, which deals with all hosts
LARGEST_PART_US, SMALLEST_PART_US = 200_000, 20_000  # of a worker: its agent needs 5 to 10 ms around a strike
AT_ONCE = 4  # requests to the daemon
REMOVAL_LIMIT_S, PAUSE_S, SETTLED_S = 30.0, 0.1, 0.3


def name_of(token: str, host: str) -> str:
    """Name of the container of a host."""
    return f"{network_of(token)}-{host}"


def network_of(token: str) -> str:
    """Name of a cluster's network."""
    return f"aftershock-{tokens.label(token)}"


def rules_of(handle: Handle, host: str) -> Path:
    """The file with the rules of a host that is cut off: they belong to its network, which outlives the container."""
    return handle.directory(host) / "partition.nft"


def build_image() -> str:
    """The id of the image that all hosts have; made from nothing but the Dockerfile, unless the daemon has it."""
    digest = hashlib.sha256(DOCKERFILE.read_bytes()).hexdigest()[:16]
    tag = f"aftershock-host:{digest}"
    with daemon.asking(f"build {tag}"):
        images = daemon.client().images
        try:
            return images.get(tag).id
        except ImageNotFound:
            with DOCKERFILE.open("rb") as file:
                image, _ = images.build(fileobj=file, tag=tag, rm=True)
            return image.id


def create(handle: Handle, spec: ClusterSpec) -> None:
    """Make the network and a container for each host, and start them."""
    label = tokens.label(handle.token)
    labels = {CLUSTER_LABEL: label, ROOT_LABEL: handle.root, USER_LABEL: str(os.geteuid())}
    prefix = handle.gateway.address.rpartition(".")[0]
    subnet = f"{prefix}.0/{namespaces.PREFIX_LENGTH}"
    pool = IPAMPool(subnet=subnet, gateway=f"{prefix}.{namespaces.CONTROLLER_NUMBER}")
    with daemon.asking(f"make the network {subnet}"):
        daemon.client().networks.create(
            network_of(handle.token),
            driver="bridge",
            internal=True,
            ipam=IPAMConfig(pool_configs=[pool]),
            labels=labels,
            options={"com.docker.network.bridge.name": namespaces.uplink(label)},
        )
    shared, parts = {"image": build_image(), "labels": labels}, real_time(len(handle.workers))

    def create_one(host: Host) -> None:
        _create(handle, host, spec, {**shared, "cpu_rt_runtime": parts.get(host.role)})

    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(create_one, handle.hosts.values()))


def real_time(workers: int) -> dict[Role, int]:
    """The parts of the containers in the ration; none where nothing is rationed, or too little is left.

    Without it their agents cannot take precedence on such a kernel, and strike late when the machine is busy.
    """
    try:
        ration = int(RATION.read_text())
        taken = sum(int(path.read_text()) for path in RATION.parent.glob(f"*/{RATION.name}"))
    except OSError:
        return {}
    part = min(LARGEST_PART_US, (ration - taken - GATEWAY_PART_US) // workers)
    return {Role.GATEWAY: GATEWAY_PART_US, Role.WORKER: part} if part >= SMALLEST_PART_US else {}


def _create(handle: Handle, host: Host, spec: ClusterSpec, shared: Mapping[str, Any]) -> None:
    """Make the container of a host. Only workers have limits: the gateway must not die of what it serves."""
    client = daemon.client()
    own = _worker_options(handle, host, spec) if host.role is Role.WORKER else _gateway_options()
    network = network_of(handle.token)
    with daemon.asking(f"start the container of {host.name}"):
        container = client.containers.create(
            command=["/bin/sh", "-c", INIT, str(rules_of(handle, host.name))],
            name=name_of(handle.token, host.name),
            hostname=host.name,
            user=f"{os.geteuid()}:{os.getegid()}",
            environment=services.environment(f"{handle.token}/{MACHINE}/{host.name}", handle.root),
            mounts=mounts.of(handle, host),
            cap_add=list(CAPABILITIES),
            network=network,
            networking_config={network: client.api.create_endpoint_config(ipv4_address=host.address)},
            **shared,
            **own,
        )
        container.start()


def _worker_options(handle: Handle, host: Host, spec: ClusterSpec) -> dict[str, object]:
    """A disk in memory, which counts as the container's; no swap, so that a worker is not slow by stealth."""
    memory = f"{host.memory_mb + WORKER_OVERHEAD_MB + spec.worker_disk_mb}m"
    disk = f"size={spec.worker_disk_mb}m,mode=0755,uid={os.geteuid()},gid={os.getegid()},exec"
    return {"mem_limit": memory, "memswap_limit": memory, "tmpfs": {str(handle.disk(host.name)): disk}}


def _gateway_options() -> dict[str, object]:
    return {"group_add": [str(os.stat(daemon.socket_path()).st_gid)]}


def get(handle: Handle, host: str) -> Container:
    """The container of a host, as it is now; raises `EnvironmentFailure` when there is none."""
    with daemon.asking(f"find the container of {host}"):
        return daemon.client().containers.get(name_of(handle.token, host))


def containers_of(label: str) -> list[Container]:
    """All containers of a cluster, whatever state they are in."""
    with daemon.asking("list containers"):
        return daemon.client().containers.list(all=True, sparse=True, filters={"label": f"{CLUSTER_LABEL}={label}"})


def networks_of(label: str) -> list[Network]:
    with daemon.asking("list networks"):
        return daemon.client().networks.list(filters={"label": f"{CLUSTER_LABEL}={label}"})


def owners() -> dict[tuple[str, int], list[str]]:
    """Label and user of every cluster of which the daemon has anything: the root, for each container and network of it.

    Whoever may set these labels may use the daemon, and so is root on the machine: they are believed.
    """
    with daemon.asking("list containers and networks"):
        client = daemon.client()
        listed = client.containers.list(all=True, sparse=True, filters={"label": CLUSTER_LABEL})
        labels = [each.attrs["Labels"] for each in listed]
        labels += [each.attrs["Labels"] for each in client.networks.list(filters={"label": CLUSTER_LABEL})]
    found: dict[tuple[str, int], list[str]] = {}
    for label in labels:
        if (user := label.get(USER_LABEL, "")).isdecimal():
            found.setdefault((label[CLUSTER_LABEL], int(user)), []).append(label.get(ROOT_LABEL, ""))
    return found


def remove(label: str, uid: int) -> None:
    """Remove the containers of a user's cluster, whatever state they are in, and its network; proves that all is gone.

    Idempotent. What somebody asked for who has been killed may still appear: it is waited for. Raises
    `EnvironmentFailure` for what does not go.
    """
    deadline = time.monotonic() + REMOVAL_LIMIT_S
    while left := _remove_what_there_is(label, uid):
        if time.monotonic() > deadline:
            raise EnvironmentFailure(f"Docker does not remove {', '.join(left)}", daemon.REMEDY)
        time.sleep(PAUSE_S)


def _remove_what_there_is(label: str, uid: int) -> list[str]:
    """Remove what is found; returns the names of what was, empty when there was nothing for a while."""
    found = _find(label, uid)
    if not found:
        time.sleep(SETTLED_S)
        return _names(_find(label, uid))
    containers = [each for each in found if isinstance(each, Container)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(_remove_container, containers))
    for network in _of_user(networks_of(label), uid):
        with suppress(APIError):  # a container that is just being started is still joined to it: looked at again
            network.remove()
    return _names(found)


def _find(label: str, uid: int) -> list[Container | Network]:
    return _of_user([*containers_of(label), *networks_of(label)], uid)


def _of_user(found: list[Any], uid: int) -> list[Any]:
    return [each for each in found if each.attrs["Labels"].get(USER_LABEL) == str(uid)]


def _names(found: list[Container | Network]) -> list[str]:
    return [each.attrs.get("Name") or each.attrs["Names"][0] for each in found]


def _remove_container(container: Container) -> None:
    with suppress(NotFound, APIError):  # it is going already, or comes just now: looked at again
        container.remove(force=True, v=True)


def power_off(container: Container) -> None:
    """Kill the container and wait until the daemon has taken its processes and its address away."""
    with daemon.asking(f"end {container.name}"):
        with suppress(APIError):  # it is not running
            container.kill()
        container.wait(timeout=REMOVAL_LIMIT_S)
        container.reload()


def power_on(container: Container) -> int:
    """Start a container that has ended, with an empty disk; returns how many were started: 0 for one that runs."""
    with daemon.asking(f"start {container.name}"):
        if container.status == "running":
            return 0
        container.start()
        container.reload()
    return 1


def freeze(container: Container) -> None:
    with daemon.asking(f"pause {container.name}"):
        container.pause()
        container.reload()


def thaw(container: Container) -> None:
    """Let a paused container go on; its host's processes stand still as long as they are stopped themselves."""
    with daemon.asking(f"unpause {container.name}"):
        if container.status == "paused":
            try:
                container.unpause()
            except APIError:
                container.reload()
                if container.status == "paused":  # not let go on by another thread meanwhile
                    raise
            container.reload()


def stands_still(handle: Handle, host: str) -> bool:
    """Whether the container of a host is paused now."""
    return get(handle, host).status == "paused"


def cpu_ns(container: Container) -> int:
    """CPU time that the container's processes have used [ns]."""
    with daemon.asking(f"look at {container.name}"):
        stats = container.client.api.stats(container.id, stream=False, one_shot=True)
    return stats["cpu_stats"]["cpu_usage"]["total_usage"]


def leave(container: Container, token: str) -> None:
    """Take a container off the cluster's network."""
    with daemon.asking(f"disconnect {container.name}"):
        container.client.networks.get(network_of(token)).disconnect(container)
        container.reload()


def join(container: Container, token: str, address: str) -> int:
    """Give a container the cluster's network again; returns how many it joined: 0 when it had it."""
    if is_joined(container, token):
        return 0
    with daemon.asking(f"connect {container.name}"):
        container.client.networks.get(network_of(token)).connect(container, ipv4_address=address)
        container.reload()
    return 1


def is_joined(container: Container, token: str) -> bool:
    return network_of(token) in container.attrs["NetworkSettings"]["Networks"]
