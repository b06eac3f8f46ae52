"""The containers of a cluster and their network: finds, switches and removes them (`creation` makes them).

All of them carry the cluster's label (`infra.tokens`), root and user as Docker labels. So code that finds them knows
to which cluster they belong. Functions that make or use them take the token; functions that find them without a handle
take the label. The network is a bridge of the cluster's own on a /24 of 198.18.0.0/15, with no route out of it; the
machine is number 254 there.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from enum import StrEnum
from functools import partial
from typing import Any

from docker.errors import APIError
from docker.models.containers import Container
from docker.models.networks import Network

from experiments.errors import EnvironmentFailure
from experiments.waiting import poll_while
from infra import removal, tokens
from infra.attempts import try_all
from infra.cluster import Handle
from infra.docker import daemon

CLUSTER_LABEL, ROOT_LABEL, USER_LABEL = "aftershock.cluster", "aftershock.root", "aftershock.user"
AT_ONCE = 4  # requests to the daemon
REMOVAL_LIMIT_S, PAUSE_S, SETTLED_S = 30.0, 0.1, 0.3
_frozen_here = set[str]()  # names of containers that this process has paused, and not let go on since


class Status(StrEnum):
    """The states of a container that we tell apart, in Docker's words."""

    RUNNING = "running"
    PAUSED = "paused"
    EXITED = "exited"


def name_of(token: str, host: str) -> str:
    """Name of the container of a host."""
    return f"{network_of(token)}-{host}"


def network_of(token: str) -> str:
    """Name of a cluster's network."""
    return f"aftershock-{tokens.label(token)}"


def get(handle: Handle, host: str) -> Container:
    """The container of a host, as it is now; raises `EnvironmentFailure` when there is none."""
    with daemon.asking(f"find the container of {host}"):
        return daemon.client().containers.get(name_of(handle.token, host))


def containers_of(label: str) -> list[Container]:
    """All containers of a cluster, in any state."""
    with daemon.asking("list containers"):
        found: list[Container] = daemon.client().containers.list(
            all=True, sparse=True, filters={"label": f"{CLUSTER_LABEL}={label}"}
        )
        return found


def networks_of(label: str) -> list[Network]:
    """The networks of the cluster with this label."""
    with daemon.asking("list networks"):
        found: list[Network] = daemon.client().networks.list(filters={"label": f"{CLUSTER_LABEL}={label}"})
        return found


def owners() -> dict[tuple[str, int], list[str]]:
    """Label and user of every cluster of which the daemon has anything: the root, for each container and network of it.

    Only users who may use the daemon can set these labels, and they are root on the machine. So the labels are trusted.
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


def remove_cluster(label: str, uid: int) -> None:
    """Remove a user's cluster: its containers and network, and all that `removal.remove` does.

    Raises `EnvironmentFailure` for what does not go. If the Docker daemon fails, everything else is still removed.
    """
    try_all(partial(remove, label, uid), partial(removal.remove, label, uid))


def remove(label: str, uid: int) -> None:
    """Remove the containers of a user's cluster, in any state, and its network; proves that all is gone.

    Idempotent. A process may have been killed after it asked the daemon for a container, which then still appears. So
    this waits for such containers. Raises `EnvironmentFailure` for what cannot be removed.
    """
    left = poll_while(lambda: _remove_what_there_is(label, uid), interval_s=PAUSE_S, limit_s=REMOVAL_LIMIT_S)
    if left:
        raise EnvironmentFailure(f"Docker does not remove {', '.join(left)}", daemon.REMEDY)


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
        # a container that is just being started is still joined to it: looked at again
        with daemon.asking(f"remove the network {network.name}"), suppress(APIError):
            network.remove()
    return _names(found)


def _find(label: str, uid: int) -> list[Container | Network]:
    return _of_user([*containers_of(label), *networks_of(label)], uid)


def _of_user(found: list[Any], uid: int) -> list[Any]:
    return [each for each in found if each.attrs["Labels"].get(USER_LABEL) == str(uid)]


def _names(found: list[Container | Network]) -> list[str]:
    return [each.attrs.get("Name") or each.attrs["Names"][0] for each in found]


def _remove_container(container: Container) -> None:
    # it is going already, or comes just now: looked at again
    with daemon.asking(f"remove {_names([container])[0]}"), suppress(APIError):
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
        if container.status == Status.RUNNING:
            return 0
        container.start()
        container.reload()
    return 1


def freeze(container: Container) -> None:
    """Pause a container by its cgroup, and read its state again."""
    with daemon.asking(f"pause {container.name}"):
        _frozen_here.add(container.name)
        container.pause()
        container.reload()


def thaw(container: Container) -> None:
    """Let a paused container go on; its host's processes stand still as long as they are stopped themselves."""
    with daemon.asking(f"unpause {container.name}"):
        if container.status == Status.PAUSED:
            try:
                container.unpause()
            except APIError:
                container.reload()
                if container.status == Status.PAUSED:  # not let go on by another thread meanwhile
                    raise
            container.reload()
        _frozen_here.discard(container.name)


def is_frozen_here(handle: Handle, host: str) -> bool:
    """Whether this process has paused the container of a host, and not let it go on since; the daemon is not asked."""
    return name_of(handle.token, host) in _frozen_here


def stands_still(handle: Handle, host: str) -> bool:
    """Whether the container of a host is paused now."""
    status: str = get(handle, host).status
    return status == Status.PAUSED


def cpu_ns(container: Container) -> int:
    """CPU time that the container's processes have used [ns]."""
    with daemon.asking(f"look at {container.name}"):
        stats = container.client.api.stats(container.id, stream=False, one_shot=True)
    return int(stats["cpu_stats"]["cpu_usage"]["total_usage"])


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
    """Whether a container is on the network of its cluster, by the state that was read last."""
    return network_of(token) in container.attrs["NetworkSettings"]["Networks"]
