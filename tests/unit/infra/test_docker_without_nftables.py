"""Hosts that the daemon takes off their network, as where nftables does not work; container and agent are played."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from experiments.fault_kinds import FaultKind
from experiments.spec import ClusterSpec
from infra.clocks import ClockOffset
from infra.cluster import Handle
from infra.docker import containers, mounts
from infra.docker.driver import DockerDriver
from infra.docker.strikes import Disconnection
from infra.remote import reach
from infra.remote.answers import Refused
from infra.remote.hosts import SwitchedOff
from infra.remote.requests import EmptyDisk, UndoFault
from infra.services import startup

HOST = "worker-1"


class Container:
    """A container on one network, as the daemon shows it; `services` are those that run in it."""

    def __init__(self, network: str) -> None:
        self.name, self.status, self.services = HOST, containers.Status.RUNNING, {"spark-worker"}
        self.networks: dict[str, Any] = {network: {}}
        self.attrs = {"NetworkSettings": {"Networks": self.networks}}
        joins = SimpleNamespace(
            connect=lambda _, ipv4_address: self.networks.update({network: {"IPAddress": ipv4_address}}),
            disconnect=lambda _: self.networks.pop(network),
        )
        self.client = SimpleNamespace(networks=SimpleNamespace(get=lambda _: joins))

    def start(self) -> None:
        self.status = containers.Status.RUNNING

    def reload(self) -> None:
        """It is always as it was read last."""

    def lose(self, *, power: bool = False) -> None:
        self.services.clear()
        self.status = containers.Status.EXITED if power else self.status


class Driver(DockerDriver):
    """Asks no agent; each has no nftables."""

    def __init__(self, container: Container) -> None:
        super().__init__()
        self.container = container

    def running(self, handle: Handle, host: str) -> set[str]:
        if self.container.status is containers.Status.EXITED:
            raise SwitchedOff(host)
        return set(self.container.services)

    def spawn(self, handle: Handle, host: str, service: str, command: object) -> int:
        assert self.container.networks, "a Spark worker without its address ends"
        self.container.services.add(service)
        return 1

    def ask(self, handle: Handle, host: object, request: object, within_s: float = 0.0) -> Any:
        if isinstance(request, UndoFault):
            raise Refused("worker-1: nft: No such file or directory", "mend that on the host and run again")
        assert isinstance(request, EmptyDisk)

    def clock(self, handle: Handle, host: object) -> ClockOffset:
        return ClockOffset(0, 0)


@pytest.fixture
def handle(tmp_path: Path) -> Handle:
    spec = ClusterSpec(driver="docker", workers=1)
    made = startup.handle_of(spec, "run", tmp_path / "cluster", subnet=1, network="192.0.2")
    mounts.rules_of(made, HOST).parent.mkdir(parents=True)
    return made


@pytest.fixture
def container(handle: Handle, monkeypatch: pytest.MonkeyPatch) -> Container:
    made = Container(containers.network_of(handle.token))
    monkeypatch.setattr(containers, "get", lambda *_: made)
    return made


@pytest.fixture
def heal(handle: Handle, container: Container) -> Callable[[FaultKind], dict[str, int]]:
    """Heals a fault of the host, which must be proved; returns what was done, but for what was done to nothing."""

    def healed(kind: FaultKind) -> dict[str, int]:
        proof = Driver(container).heal(handle, HOST, kind)
        assert proof.holds
        return {what: count for what, count in proof.done.items() if count}

    return healed


def cut_off(handle: Handle, container: Container) -> None:
    strike = Disconnection(Driver(container), handle, handle.hosts[HOST])
    assert strike.refresh()
    strike.shoot(time.time_ns())
    assert strike.fire().holds


@pytest.mark.parametrize("kind", [FaultKind.KILL, FaultKind.POWER_OFF])
def test_a_host_that_is_lost_while_it_is_cut_off_gets_its_worker_with_its_network(handle, container, heal, kind):
    cut_off(handle, container)
    container.lose(power=kind is FaultKind.POWER_OFF)
    assert heal(kind) == {"workers due with the network": 1}
    assert container.services == set()
    assert heal(FaultKind.PARTITION) == {"networks joined": 1, "hosts started": 1}
    assert container.services == {"spark-worker"}
    assert not mounts.due_worker_of(handle, HOST).exists()


def test_a_host_that_is_lost_beyond_its_partition_stays_so_until_that_is_healed(handle, container, heal):
    cut_off(handle, container)
    container.lose()
    assert heal(FaultKind.PARTITION) == {"networks joined": 1}
    assert container.services == set()
    assert heal(FaultKind.KILL) == {"hosts started": 1}


def test_a_partition_that_is_healed_again_is_proved_by_datagrams(handle, container, heal, monkeypatch):
    cut_off(handle, container)
    assert heal(FaultKind.PARTITION) == {"networks joined": 1}
    monkeypatch.setattr(reach, "between", lambda *_: reach.Reach({"gateway": 5}, {"gateway": 5}, frozenset(), False))
    assert heal(FaultKind.PARTITION) == {"peers tried": 1}
    monkeypatch.setattr(reach, "between", lambda *_: reach.Reach({"gateway": 0}, {"gateway": 0}, frozenset(), False))
    assert Driver(container).heal(handle, HOST, FaultKind.PARTITION).left == {"peers cut off": 1}
    monkeypatch.setattr(reach, "between", lambda *_: reach.Reach({"gateway": 0}, {"gateway": 0}, frozenset(), True))
    assert heal(FaultKind.PARTITION) == {"peers tried": 1, "cut off by another fault": 1}
