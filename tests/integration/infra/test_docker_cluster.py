"""The docker driver, everything real: a daemon, containers, Spark and Kafka in them, faults with proofs, teardown."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

import pytest
from docker.models.containers import Container

from aftershock.run import lease, steps
from experiments.errors import BadInput
from experiments.fault_kinds import Direction, FaultKind, FaultOptions
from experiments.hosts import ClusterDriver
from experiments.spec import ClusterSpec
from infra import tokens
from infra.cluster import Handle
from infra.docker import containers, creation
from infra.docker.driver import DockerDriver
from infra.docker.strikes import Disconnection
from infra.drivers import driver_of
from infra.launch import REPOSITORY
from infra.processes import members
from infra.remote.hosts import RemoteStrike
from infra.remote.session import Session
from infra.services import gateway, kafka, startup
from infra.strikes import partition
from infra.strikes.strike import Proof, Strike
from results.runs import store
from tests.integration.conftest import provisioned
from tests.integration.infra.clusters import clean, times_joined
from tests.integration.infra.planned_kills import assert_kills_wait_for_their_moment
from tests.unit.marked_processes import wait_for

pytestmark = [pytest.mark.extended, pytest.mark.usefixtures("daemon")]
ONE_WORKER = ClusterSpec(driver=ClusterDriver.DOCKER, workers=1, worker_memory_mb=512, worker_disk_mb=64)
PROVISION = """
import sys
from pathlib import Path
from types import MappingProxyType
from infra.docker.driver import DockerDriver
from tests.integration.infra.test_docker_cluster import ONE_WORKER
DockerDriver().provision(ONE_WORKER, "test-cut-off", Path(sys.argv[1]))
"""
BUSY = ["sh", "-c", "while :; do :; done"]


@pytest.fixture(scope="module")
def driver(daemon: None) -> DockerDriver:
    return driver_of("docker")


@pytest.fixture(scope="module")
def cluster(driver: DockerDriver, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Handle]:
    """A cluster with one worker; the tests of this module share it and leave its worker up."""
    root: Path = tmp_path_factory.mktemp("run") / "cluster"
    root.mkdir()
    with provisioned(driver, ONE_WORKER, root) as handle:
        yield handle


def is_gone(token: str) -> bool:
    label = tokens.label(token)
    return not (members(token) or containers.containers_of(label) or containers.networks_of(label))


def inside(cluster: Handle, host: str, *command: str) -> str:
    """What a command prints in the container of a host."""
    done = containers.get(cluster, host).exec_run(list(command))
    assert done.exit_code == 0, done.output
    return done.output.decode()


def strike(driver: DockerDriver, cluster: Handle, kind: FaultKind, **options: object) -> Proof:
    strike = driver.prepare(cluster, "worker-1", kind, FaultOptions(**options))
    assert strike.refresh()
    strike.shoot(time.time_ns())
    return strike.fire()


def heal_twice(
    driver: DockerDriver, cluster: Handle, kind: FaultKind, still: Mapping[str, int] = MappingProxyType({})
) -> None:
    """Heal, and heal what is well: then nothing is left to do but what is `still` done."""
    assert driver.heal(cluster, "worker-1", kind).holds
    again = driver.heal(cluster, "worker-1", kind)
    assert again.holds
    assert {name: count for name, count in again.done.items() if count} == still


def test_a_provisioned_cluster_is_up_on_a_network_of_its_own(driver: DockerDriver, cluster: Handle) -> None:
    assert driver.running(cluster, "gateway") == {"broker", "spark-master"}
    assert driver.running(cluster, "worker-1") == {"spark-worker"}
    assert gateway.answers(cluster.gateway.address, kafka.BROKER_PORT), "the controller reaches the hosts"
    prefix = cluster.gateway.address.rpartition(".")[0]
    assert prefix.startswith("198.18.")
    (network,) = containers.networks_of(cluster.label)
    assert network.attrs["Internal"], "Docker forwards nothing out of it"
    assert network.attrs["IPAM"]["Config"][0]["Subnet"] == f"{prefix}.0/24"
    told = containers.owners()[cluster.label, os.geteuid()]
    assert told == [cluster.root] * 4, "three containers and their network tell whose"


def test_a_container_has_its_own_processes_and_disk_and_cannot_write_what_is_the_machines(cluster: Handle) -> None:
    assert "kafka.Kafka" not in inside(cluster, "worker-1", "ps", "ax")
    disk = str(cluster.disk("worker-1"))
    *_, size, folder = inside(cluster, "worker-1", "df", "-m", "--output=size,target", disk).split()
    assert (int(size), folder) == (ONE_WORKER.worker_disk_mb, disk)
    for folder in ("/usr", str(REPOSITORY / "infra")):
        with pytest.raises(AssertionError, match="Read-only file system"):
            inside(cluster, "worker-1", "touch", f"{folder}/written")


def test_only_workers_of_the_cluster_are_aimed_at(driver: DockerDriver, cluster: Handle) -> None:
    for host in ("gateway", "worker-2", "worker-1/..", ""):
        for act in (driver.prepare, driver.heal):
            with pytest.raises(BadInput, match=f"a worker of run {cluster.run_id}: worker-1"):
                act(cluster, host, FaultKind.KILL)


def test_a_killed_worker_leaves_no_process_and_comes_back_with_an_empty_disk(
    driver: DockerDriver, cluster: Handle
) -> None:
    joined = times_joined(cluster)
    proof = strike(driver, cluster, FaultKind.KILL)
    assert proof.done["processes killed"] >= 1
    assert proof.holds
    assert members(f"{cluster.token}/worker-1") == []
    assert not driver.running(cluster, "worker-1")
    assert driver.running(cluster, "gateway")
    # The first process of the container buries orphans, when it comes to it.
    wait_for(lambda: " Z" not in inside(cluster, "worker-1", "ps", "axo", "pid,stat"))
    inside(cluster, "worker-1", "touch", str(cluster.disk("worker-1") / "left-over"))
    driver.heal(cluster, "worker-1", FaultKind.KILL)
    heal_twice(driver, cluster, FaultKind.KILL)
    wait_for(lambda: times_joined(cluster) == joined + 1, limit_s=120)
    assert "left-over" not in inside(cluster, "worker-1", "ls", str(cluster.disk("worker-1")))


def test_a_host_without_power_has_no_process_and_no_address_until_it_is_healed(
    driver: DockerDriver, cluster: Handle
) -> None:
    joined = times_joined(cluster)
    inside(cluster, "worker-1", "touch", str(cluster.disk("worker-1") / "left-over"))
    proof = strike(driver, cluster, FaultKind.POWER_OFF)
    assert proof.holds
    assert {"survivors", "open ports", "containers running", "addresses"} <= proof.left.keys()
    assert containers.get(cluster, "worker-1").status == "exited"
    assert members(f"{cluster.token}/worker-1") == []
    assert members(f"{cluster.token}/machine/worker-1") == [], "not even what serves the machine"
    driver.heal(cluster, "worker-1", FaultKind.POWER_OFF)
    heal_twice(driver, cluster, FaultKind.POWER_OFF)
    wait_for(lambda: times_joined(cluster) == joined + 1, limit_s=120)
    assert "left-over" not in inside(cluster, "worker-1", "ls", str(cluster.disk("worker-1")))


def test_a_paused_host_stands_still_and_is_still_struck_by_others(driver: DockerDriver, cluster: Handle) -> None:
    driver.spawn(cluster, "worker-1", "busy", BUSY)
    proof = strike(driver, cluster, FaultKind.PAUSE)
    assert proof.holds
    assert proof.done["processes frozen"] >= 2
    container = containers.get(cluster, "worker-1")
    assert container.status == "paused"
    assert containers.cpu_ns(container) == containers.cpu_ns(container)
    heal_twice(driver, cluster, FaultKind.PAUSE)
    before_ns = containers.cpu_ns(container)
    wait_for(lambda: containers.cpu_ns(container) > before_ns)
    strike(driver, cluster, FaultKind.PAUSE)
    assert strike(driver, cluster, FaultKind.KILL).holds, "a host that is paused can be lost"
    driver.heal(cluster, "worker-1", FaultKind.KILL)
    assert containers.get(cluster, "worker-1").status == "running"


@pytest.mark.parametrize("lost", [False, True], ids=["agent-frozen", "session-lost"])
def test_a_host_that_is_paused_after_the_aim_of_another_strike_is_struck_by_it(
    driver: DockerDriver, cluster: Handle, lost: bool
) -> None:
    kill, pause_again = (driver.prepare(cluster, "worker-1", kind) for kind in (FaultKind.KILL, FaultKind.PAUSE))
    assert strike(driver, cluster, FaultKind.PAUSE).holds
    if lost:
        driver.forget(cluster, cluster.hosts["worker-1"])
    assert kill.refresh()
    assert pause_again.refresh()
    pause_again.close()
    assert containers.stands_still(cluster, "worker-1"), "a strike that is absorbed leaves it as it is"
    due_ns = time.time_ns() + 50_000_000
    kill.shoot(due_ns)
    proof = kill.fire()
    assert proof.fired_ns >= due_ns
    assert proof.done["processes killed"] >= 1
    assert proof.holds
    assert members(f"{cluster.token}/worker-1") == []
    assert driver.heal(cluster, "worker-1", FaultKind.KILL).holds


def test_a_host_that_is_paused_amid_an_aim_is_aimed_at_again(
    driver: DockerDriver, cluster: Handle, monkeypatch: pytest.MonkeyPatch
) -> None:
    container, prepared, frozen = containers.get(cluster, "worker-1"), RemoteStrike._prepared, []

    def frozen_meanwhile(self: RemoteStrike) -> Session:
        if not frozen:
            containers.freeze(container)
            frozen.append(container)
        return prepared(self)

    monkeypatch.setattr(RemoteStrike, "_prepared", frozen_meanwhile)
    strike = driver.prepare(cluster, "worker-1", FaultKind.KILL)
    assert frozen
    assert strike.refresh()
    strike.close()


def test_a_container_stays_paused_until_that_is_proved_also_if_another_strike_is_prepared(
    driver: DockerDriver, cluster: Handle, monkeypatch: pytest.MonkeyPatch
) -> None:
    cpu_ns, thaw, thawed = containers.cpu_ns, containers.thaw, threading.Event()
    prepared: list[Strike] = []
    paused: list[bool] = []

    def thaw_and_tell(container: Container) -> None:
        thaw(container)
        thawed.set()

    def prepare_meanwhile(container: Container) -> int:
        if not preparing.ident:
            thawed.clear()
            preparing.start()
            thawed.wait(2.0)  # in vain, unless the proof is disturbed
        paused.append(containers.stands_still(cluster, "worker-1"))
        return cpu_ns(container)

    def prepare() -> None:
        prepared.append(driver.prepare(cluster, "worker-1", FaultKind.KILL))

    preparing = threading.Thread(target=prepare, daemon=True)
    monkeypatch.setattr(containers, "thaw", thaw_and_tell)
    monkeypatch.setattr(containers, "cpu_ns", prepare_meanwhile)
    assert strike(driver, cluster, FaultKind.PAUSE).holds
    preparing.join(60.0)
    assert all(paused)
    assert thawed.is_set()
    assert prepared[0].refresh()
    prepared[0].close()
    assert driver.heal(cluster, "worker-1", FaultKind.PAUSE).holds


def test_a_host_that_stands_still_is_not_asked_and_keeps_its_session(driver: DockerDriver, cluster: Handle) -> None:
    worker = cluster.hosts["worker-1"]
    session = driver.session(cluster, worker)
    assert strike(driver, cluster, FaultKind.PAUSE).holds
    assert driver.is_down(cluster, worker)
    assert driver.heal(cluster, "worker-1", FaultKind.PAUSE).holds
    assert driver.session(cluster, worker) is session
    assert not driver.is_down(cluster, worker)


def test_a_partition_whose_only_peer_stands_still_holds_by_its_rules_and_says_so(
    driver: DockerDriver, cluster: Handle
) -> None:
    if reason := partition.refusal():
        pytest.skip(reason)
    gateway_container = containers.get(cluster, "gateway")
    containers.freeze(gateway_container)
    try:
        proof = strike(driver, cluster, FaultKind.PARTITION)
    finally:
        containers.thaw(gateway_container)
    assert (proof.done["peers tried"], proof.done["peers down"], proof.left["peers untried"]) == (0, 1, 0)
    assert proof.holds
    assert driver.heal(cluster, "worker-1", FaultKind.PARTITION).done["peers tried"] == 1


def reached(cluster: Handle) -> bool:
    """Whether the gateway's broker answers a connection from the worker."""
    script = f"import socket; socket.create_connection(('{cluster.gateway.address}', {kafka.BROKER_PORT}), timeout=2)"
    return containers.get(cluster, "worker-1").exec_run([sys.executable, "-S", "-c", script]).exit_code == 0


def test_a_host_that_is_cut_off_stays_so_when_it_loses_its_power_meanwhile(
    driver: DockerDriver, cluster: Handle
) -> None:
    if reason := partition.refusal():
        pytest.skip(reason)
    assert reached(cluster)
    proof = strike(driver, cluster, FaultKind.PARTITION)
    assert proof.holds
    assert proof.done["peers tried"] == 1
    assert not reached(cluster)
    joined = times_joined(cluster)
    assert strike(driver, cluster, FaultKind.POWER_OFF).holds
    assert not driver.prepare(cluster, "worker-1", FaultKind.KILL).refresh(), "what has no power cannot be struck"
    driver.heal(cluster, "worker-1", FaultKind.POWER_OFF)
    assert not reached(cluster), "the network is not the host's"
    heal_twice(driver, cluster, FaultKind.PARTITION, still={"peers tried": 1})
    assert reached(cluster)
    wait_for(lambda: times_joined(cluster) == joined + 1, limit_s=120)


def test_without_nftables_the_daemon_takes_a_host_off_its_network(
    driver: DockerDriver, cluster: Handle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partition, "refusal", lambda: "nft: not found")
    for options in ({"peers": ("gateway",)}, {"direction": Direction.IN}):
        refused = driver.refusal(ONE_WORKER, FaultKind.PARTITION, FaultOptions(**options))
        assert "from all hosts, both ways" in refused
    assert driver.refusal(ONE_WORKER, FaultKind.PARTITION, FaultOptions()) is None
    strike = Disconnection(driver, cluster, cluster.hosts["worker-1"])
    assert strike.refresh()
    strike.shoot(time.time_ns())
    assert strike.fire().holds
    assert not reached(cluster)
    assert driver.running(cluster, "worker-1") == {"spark-worker"}, "it runs, and can be asked"
    assert driver.heal(cluster, "worker-1", FaultKind.PARTITION).done == {"networks joined": 1}
    assert reached(cluster)
    assert containers.get(cluster, "worker-1").exec_run(["hostname", "-I"]).output.split() == [
        cluster.hosts["worker-1"].address.encode()
    ]


def test_a_full_disk_is_the_hosts_own(driver: DockerDriver, cluster: Handle) -> None:
    assert strike(driver, cluster, FaultKind.DISK_FULL).holds
    with pytest.raises(AssertionError, match="No space left"):
        inside(cluster, "worker-1", "dd", "if=/dev/zero", f"of={cluster.disk('worker-1')}/file", "bs=4k", "count=1")
    (Path(cluster.root) / "file").write_text("the run's files have room")
    heal_twice(driver, cluster, FaultKind.DISK_FULL)


def test_a_service_of_the_gateway_is_killed_and_started_again(driver: DockerDriver, cluster: Handle) -> None:
    strike = driver.prepare(cluster, "gateway", FaultKind.MASTER_KILL)
    assert strike.refresh()
    strike.shoot(time.time_ns())
    assert strike.fire().holds
    assert driver.running(cluster, "gateway") == {"broker"}
    assert driver.heal(cluster, "gateway", FaultKind.MASTER_KILL).holds
    assert driver.running(cluster, "gateway") == {"broker", "spark-master"}


def test_a_kill_waits_until_it_is_due(driver: DockerDriver, cluster: Handle) -> None:
    assert_kills_wait_for_their_moment(driver, cluster)


def test_a_provision_that_is_killed_is_cleaned_up_from_its_handle_and_disturbs_nobody(
    driver: DockerDriver, cluster: Handle, tmp_path: Path
) -> None:
    root = tmp_path / "cluster"
    root.mkdir()
    provisioner = subprocess.Popen([sys.executable, "-c", PROVISION, str(root)], cwd=REPOSITORY)
    wait_for((root / "handle.json").exists, limit_s=300)  # others may provision just now
    left = Handle.load(root)
    wait_for(lambda: bool(containers.containers_of(left.label)), limit_s=120)
    provisioner.kill()
    provisioner.wait()
    assert not is_gone(left.token)
    assert {host.address for host in left.hosts.values()}.isdisjoint(host.address for host in cluster.hosts.values())
    driver.destroy(left)
    assert is_gone(left.token)
    driver.destroy(left)
    assert driver.running(cluster, "gateway") == {"broker", "spark-master"}


def test_clean_removes_the_containers_of_a_dead_run_and_leaves_those_of_a_live_one(home: Path) -> None:
    live_directory = store.live_directory(steps.begin({"cluster": {"driver": "docker"}}, "run-1"))
    root = live_directory / "cluster"
    root.mkdir()
    with startup.one_at_a_time():
        handle = startup.lay_out_on_bridge(ONE_WORKER, "run-1", root)
        handle.save()
        creation.make_hosts(ONE_WORKER, handle)
    try:
        with lease.lease(live_directory):
            assert f"left alone {handle.label}" in clean()
        assert len(containers.containers_of(handle.label)) == 3
        containers.get(handle, "worker-1").kill()  # one that does not run, and has no process to be found by
        lease.lease_path(live_directory).touch()  # the file stays like this when its holder is killed
        said = clean()
        assert f"removed {handle.label}" in said
        assert "4 containers and networks" in said
        assert "run run-1 was published as failed" in said
        assert is_gone(handle.token)
    finally:
        containers.remove(handle.label, os.geteuid())
