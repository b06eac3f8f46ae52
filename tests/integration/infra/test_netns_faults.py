"""What takes the network of a host: power-off and partition, on real namespaces, seen from outside."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from experiments.errors import AftershockError, BadInput
from experiments.fault_kinds import Direction, FaultKind, FaultOptions
from experiments.hosts import ClusterDriver
from experiments.spec import ClusterSpec
from infra import disks, namespaces, programs
from infra.cluster import Handle
from infra.drivers import driver_of
from infra.netns.driver import NetnsDriver
from infra.processes import MARK, members
from infra.remote import reach, ssh
from infra.remote.hosts import SwitchedOff
from infra.strikes import delay, partition
from tests.integration.infra.clusters import sleeping_cluster

pytestmark = pytest.mark.extended

RUN_ID = f"test-{os.getpid()}"
ECHO_PORT = 7007
ECHO = f"""
import socket, sys
server = socket.create_server((sys.argv[1], {ECHO_PORT}))
print("listening", flush=True)
connection, _ = server.accept()
while word := connection.recv(100):
    connection.sendall(word)
"""
KEPT, CUT = reach.DATAGRAMS, 0


@pytest.fixture(scope="module")
def driver() -> NetnsDriver:
    return driver_of("netns")


@pytest.fixture(scope="module")
def cluster(driver: NetnsDriver, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Handle]:
    spec = sleepers(3)
    try:
        driver.check(spec)
    except AftershockError as error:
        pytest.skip(str(error))
    with sleeping_cluster(driver, spec, tmp_path_factory.mktemp("cluster"), RUN_ID) as handle:
        yield handle


def sleepers(workers: int) -> ClusterSpec:
    return ClusterSpec(driver=ClusterDriver.NETNS, workers=workers, worker_disk_mb=64)


@pytest.fixture(autouse=True)
def _up(driver: NetnsDriver, cluster: Handle) -> Iterator[None]:
    """Every test finds all hosts up."""
    yield
    for worker in cluster.workers:
        driver.heal(cluster, worker.name, FaultKind.POWER_OFF)


@pytest.fixture(scope="module")
def _able_to_cut() -> None:
    if reason := partition.refusal():
        pytest.skip(f"no packets can be dropped here ({reason}): apt-get install nftables")


@pytest.fixture
def _connected(driver: NetnsDriver, cluster: Handle, _able_to_cut: None) -> Iterator[None]:
    """The test finds all hosts connected, and may cut them off."""
    yield
    for worker in cluster.workers:
        driver.heal(cluster, worker.name, FaultKind.PARTITION)


cuts = pytest.mark.usefixtures("_connected")


@pytest.fixture
def talk(cluster: Handle) -> Iterator[Callable[[bytes], None]]:
    """Sends a word to worker-1 on a connection that is there already, and expects it back."""
    worker = cluster.hosts["worker-1"]
    variables = {**os.environ, MARK: f"{cluster.token}/worker-1/echo"}
    command = namespaces.inside(cluster.token, "worker-1", sys.executable, "-c", ECHO, worker.address)
    echo = subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, text=True)
    assert echo.stdout is not None
    assert echo.stdout.readline() == "listening\n"
    with socket.create_connection((worker.address, ECHO_PORT), timeout=60) as connection:

        def say(word: bytes, within_s: float = 60.0) -> None:
            connection.settimeout(within_s)
            connection.sendall(word)
            assert connection.recv(100) == word

        say(b"first")
        yield say
    echo.kill()
    echo.communicate()


def _sockets(cluster: Handle) -> str:
    command = namespaces.inside(cluster.token, "worker-1", "cat", "/proc/net/tcp")
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def reached(driver: NetnsDriver, cluster: Handle, host: str = "worker-1") -> reach.Reach:
    others = [other for other in cluster.hosts.values() if other.name != host]
    return reach.between(driver, cluster, cluster.hosts[host], others)


def test_a_host_without_power_has_vanished_without_a_word(
    driver: NetnsDriver, cluster: Handle, talk: Callable[..., None]
) -> None:
    token = cluster.token
    strike = driver.prepare(cluster, "worker-1", FaultKind.POWER_OFF)
    assert strike.refresh()
    due_ns = time.time_ns() + 2_000_000_000
    strike.shoot(due_ns)
    assert time.time_ns() < due_ns, "the caller can order more strikes before this one is due"
    proof = strike.fire()
    assert proof.fired_ns >= due_ns
    assert proof.left == {"survivors": 0, "interfaces up": 0, "addresses": 0, "answers": 0}
    assert proof.done["processes killed"] >= 4, "the worker, the echo, sshd, the agent"
    assert members(f"{token}/worker-1") == members(f"{token}/machine/worker-1") == []
    assert namespaces.processes_of(token, "worker-1") == namespaces.addresses_of(token, "worker-1") == []
    with pytest.raises(TimeoutError):  # neither an end nor a reset of the connection was heard
        talk(b"anybody?", within_s=0.5)


@cuts
def test_a_host_without_power_is_known_to_be_down_at_once(driver: NetnsDriver, cluster: Handle) -> None:
    waiting = driver.prepare(cluster, "worker-1", FaultKind.KILL)
    driver.prepare(cluster, "worker-1", FaultKind.POWER_OFF).fire()
    before = time.monotonic()
    with pytest.raises(SwitchedOff):
        driver.running(cluster, "worker-1")
    assert driver.running(cluster, "worker-2") == driver.running(cluster, "worker-3") == {"spark-worker"}
    assert not waiting.refresh()
    waiting.close()
    for kind in (FaultKind.KILL, FaultKind.PARTITION, FaultKind.POWER_OFF):
        strike = driver.prepare(cluster, "worker-1", kind)
        assert not strike.refresh()
        strike.close()
    assert time.monotonic() - before < ssh.CONNECT_LIMIT_S


@cuts
def test_power_brings_a_new_machine_and_a_second_heal_nothing(driver: NetnsDriver, cluster: Handle) -> None:
    disk = cluster.disk("worker-1")
    (disk / "left-over").touch()
    driver.prepare(cluster, "worker-1", FaultKind.POWER_OFF).fire()
    first = driver.heal(cluster, "worker-1", FaultKind.POWER_OFF)
    alive = members(f"{cluster.token}/worker-1")
    second = driver.heal(cluster, "worker-1", FaultKind.POWER_OFF)
    assert (first.done, first.holds) == ({"hosts started": 1}, True)
    assert (second.done, second.holds) == ({"hosts started": 0}, True)
    assert members(f"{cluster.token}/worker-1") == alive
    assert _sockets(cluster).count(f":{ssh.PORT:04X} 00000000:0000 0A") == 1
    assert (driver.running(cluster, "worker-1"), [path.name for path in disk.iterdir()]) == ({"spark-worker"}, ["1"])
    assert reached(driver, cluster).lost(None) == 0


@cuts
def test_a_partition_cuts_what_is_connected_but_not_ssh_and_ends_without_a_reset(
    driver: NetnsDriver, cluster: Handle, talk: Callable[..., None]
) -> None:
    proof = driver.prepare(cluster, "worker-1", FaultKind.PARTITION).fire()
    assert proof.done == {"rules": 2, "peers tried": 3}
    assert proof.left == {"rules missing": 0, "packets through": 0, "peers lost": 0}
    with pytest.raises(TimeoutError):
        talk(b"second", within_s=0.5)
    assert driver.running(cluster, "worker-1") == {"echo", "spark-worker"}, "who heals it still reaches it"
    healed = driver.heal(cluster, "worker-1", FaultKind.PARTITION)
    assert healed.done == {"rules removed": 2, "peers tried": 3}
    assert healed.left == {"rules": 0, "peers cut off": 0}
    again = driver.heal(cluster, "worker-1", FaultKind.PARTITION)
    assert (again.done["rules removed"], again.holds) == (0, True)


@cuts
@pytest.mark.parametrize(("direction", "came", "went"), [(Direction.IN, CUT, KEPT), (Direction.OUT, KEPT, CUT)])
def test_one_direction_is_cut_from_some_hosts(
    driver: NetnsDriver, cluster: Handle, direction: Direction, came: int, went: int
) -> None:
    options = FaultOptions(peers=("gateway", "worker-2"), direction=direction)
    strike = driver.prepare(cluster, "worker-1", FaultKind.PARTITION, options)
    assert strike.refresh()
    due_ns = time.time_ns() + 50_000_000
    strike.shoot(due_ns)
    proof = strike.fire()
    assert proof.fired_ns >= due_ns
    assert (proof.done, proof.holds) == ({"rules": 1, "peers tried": 2}, True)
    found = reached(driver, cluster)
    assert found.came == {"gateway": came, "worker-2": came, "worker-3": KEPT}
    assert found.went == {"gateway": went, "worker-2": went, "worker-3": KEPT}


@cuts
def test_a_partition_that_does_not_hold_is_no_proof(
    driver: NetnsDriver, cluster: Handle, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside, tried = namespaces.inside(cluster.token, "worker-1"), reach.between

    def heal_and_try(*arguments: Any) -> reach.Reach:
        partition.reconnect(inside)
        return tried(*arguments)

    monkeypatch.setattr(reach, "between", heal_and_try)
    proof = driver.prepare(cluster, "worker-1", FaultKind.PARTITION, FaultOptions(peers=("worker-2",))).fire()
    assert proof.left == {"rules missing": 0, "packets through": 2 * KEPT, "peers lost": 0}


@cuts
def test_a_partition_strikes_though_its_chains_were_removed(driver: NetnsDriver, cluster: Handle) -> None:
    strike, given_up = (driver.prepare(cluster, "worker-1", FaultKind.PARTITION) for _ in range(2))
    given_up.close()
    assert strike.fire().holds


@cuts
def test_a_host_is_healed_though_another_one_drops_packets_too(driver: NetnsDriver, cluster: Handle) -> None:
    for name in ("worker-1", "worker-2"):
        assert driver.prepare(cluster, name, FaultKind.PARTITION).fire().holds
    assert driver.heal(cluster, "worker-1", FaultKind.PARTITION).holds
    found = reached(driver, cluster)
    assert (found.came["worker-2"], found.went["worker-2"], found.doubtful) == (0, 0, {"worker-2"})
    assert driver.heal(cluster, "worker-2", FaultKind.PARTITION).holds


@cuts
def test_a_partition_outlives_a_power_off_and_may_end_within_it(driver: NetnsDriver, cluster: Handle) -> None:
    inside = namespaces.inside(cluster.token, "worker-1")
    assert driver.prepare(cluster, "worker-1", FaultKind.PARTITION).fire().holds
    driver.prepare(cluster, "worker-1", FaultKind.POWER_OFF).fire()
    driver.heal(cluster, "worker-1", FaultKind.POWER_OFF)
    assert set(reached(driver, cluster).came.values()) == {CUT}
    driver.prepare(cluster, "worker-1", FaultKind.POWER_OFF).fire()
    assert partition.rules_in_force(inside) == 2
    healed = driver.heal(cluster, "worker-1", FaultKind.PARTITION)
    assert (healed.done, healed.left, partition.rules_in_force(inside)) == ({"rules removed": 2}, {"rules": 0}, 0)


@cuts
def test_an_aim_that_is_given_up_changes_nothing(driver: NetnsDriver, cluster: Handle) -> None:
    inside = namespaces.inside(cluster.token, "worker-1")
    for held in (0, 2):
        for kind in (FaultKind.PARTITION, FaultKind.POWER_OFF):
            strike = driver.prepare(cluster, "worker-1", kind)
            assert strike.refresh()
            strike.close()
            assert driver.running(cluster, "worker-1") == {"spark-worker"}
        listed = subprocess.run([*inside, "nft", "list", "tables"], capture_output=True, text=True, check=True).stdout
        assert (partition.rules_in_force(inside), "aftershock" in listed) == (held, held > 0)
        driver.prepare(cluster, "worker-1", FaultKind.PARTITION).fire()


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (FaultKind.TERMINATE, FaultOptions()),
        (FaultKind.PAUSE, FaultOptions()),
        (FaultKind.SLOW, FaultOptions(cpu_share=0.3)),
        (FaultKind.DISK_FULL, FaultOptions()),
    ],
)
def test_what_strikes_processes_and_files_does_so_over_ssh(
    driver: NetnsDriver, cluster: Handle, kind: FaultKind, options: FaultOptions
) -> None:
    assert driver.refusal(ClusterSpec(), kind, options) is None
    strike = driver.prepare(cluster, "worker-1", kind, options)
    assert strike.refresh()
    due_ns = time.time_ns() + 50_000_000
    strike.shoot(due_ns)
    proof = strike.fire()
    assert proof.holds, proof
    assert sum(proof.done.values()) > 0
    assert proof.fired_ns >= due_ns
    for _ in range(2):
        assert driver.heal(cluster, "worker-1", kind).holds
    assert driver.running(cluster, "worker-1") == {"spark-worker"}
    (cluster.disk("worker-1") / "new").write_bytes(bytes(2**20))


def test_delayed_messages_are_refused_where_the_kernel_cannot_delay_them(driver: NetnsDriver) -> None:
    reason, options = delay.refusal(), FaultOptions(delay=0.1)
    said = driver.refusal(ClusterSpec(), FaultKind.SLOW, options)
    assert said == (f"no delay on this machine ({reason}), but cpu_share" if reason else None)


@pytest.mark.parametrize("kind", [kind for kind in FaultKind if kind.service is None])
def test_no_fault_of_hosts_takes_the_gateway(driver: NetnsDriver, cluster: Handle, kind: FaultKind) -> None:
    before = namespaces.processes_of(cluster.token, "gateway")
    for act in (driver.prepare, driver.heal):
        with pytest.raises(BadInput, match="target: 'gateway' is not usable; allowed: a worker of run"):
            act(cluster, "gateway", kind)
    assert set(before) <= set(namespaces.processes_of(cluster.token, "gateway"))


@cuts
def test_a_cluster_is_destroyed_in_whatever_state_its_hosts_are(driver: NetnsDriver, tmp_path: Path) -> None:
    with sleeping_cluster(driver, sleepers(2), tmp_path, RUN_ID) as handle:
        driver.prepare(handle, "worker-1", FaultKind.POWER_OFF).fire()
        driver.prepare(handle, "worker-2", FaultKind.PARTITION).fire()
        assert len(disks.of(handle.label)) == 2
    assert members(handle.token) == namespaces.of(handle.label) == disks.of(handle.label) == []
    assert not namespaces.has_uplink(handle.label)


@cuts
def test_a_machine_that_cannot_drop_packets_is_refused_before_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = NetnsDriver()
    assert driver.refusal(ClusterSpec(), FaultKind.PARTITION, FaultOptions()) is None
    monkeypatch.setattr(programs, "search_path", lambda: "/nowhere")
    assert "apt-get install nftables" in driver.refusal(ClusterSpec(), FaultKind.PARTITION, FaultOptions())
