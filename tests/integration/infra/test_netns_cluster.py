"""The netns driver with everything real: namespaces, sshd, Spark and Kafka on them, kills over SSH, and teardown."""

from __future__ import annotations

import os
import secrets
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from aftershock.run import lease, steps
from experiments.errors import AftershockError, BadInput, EnvironmentFailure
from experiments.fault_kinds import FaultKind
from experiments.hosts import ClusterDriver
from experiments.spec import ClusterSpec
from infra import disks, leftovers, mounted, namespaces, tokens
from infra.cluster import Handle
from infra.drivers import driver_of
from infra.launch import REPOSITORY
from infra.netns import driver as netns
from infra.netns.driver import NetnsDriver
from infra.processes import MARK, ROOT, members
from infra.remote import ssh
from infra.remote.hosts import SwitchedOff
from infra.services import gateway, kafka, startup
from results.runs import store
from tests.integration.conftest import provisioned
from tests.integration.infra.clusters import clean, times_joined
from tests.integration.infra.planned_kills import assert_kills_wait_for_their_moment
from tests.unit.marked_processes import wait_for

ONE_WORKER = ClusterSpec(driver=ClusterDriver.NETNS, workers=1, worker_memory_mb=512)
PROVISION = """
import sys
from pathlib import Path
from infra.netns.driver import NetnsDriver
from tests.integration.infra.test_netns_cluster import ONE_WORKER
NetnsDriver().provision(ONE_WORKER, "test-cut-off", Path(sys.argv[1]))
"""


@pytest.fixture(scope="module", autouse=True)
def _able() -> None:
    try:
        NetnsDriver().check(ONE_WORKER)
    except AftershockError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def driver() -> NetnsDriver:
    return driver_of("netns")


@pytest.fixture(scope="module")
def cluster(driver: NetnsDriver, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Handle]:
    """A cluster with one worker; the tests of this module share it and leave its worker up."""
    root: Path = tmp_path_factory.mktemp("cluster")
    with provisioned(driver, ONE_WORKER, root) as handle:
        yield handle


def is_gone(token: str) -> bool:
    label = tokens.label(token)
    return not (members(token) or namespaces.of(label) or namespaces.has_uplink(label) or disks.of(label))


def listens(cluster: Handle, host: str) -> set[str]:
    """The addresses with port on which anything listens in the namespace of a host."""
    command = namespaces.inside(cluster.token, host, "cat", "/proc/net/tcp", "/proc/net/tcp6")
    rows = [
        line.split() for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n")
    ]
    return {row[1] for row in rows if len(row) > 3 and row[3] == "0A"}


def text_of(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:  # its process has just ended
        return ""


def test_what_every_user_can_see_does_not_tell_the_token(driver: NetnsDriver, cluster: Handle) -> None:
    assert driver.running(cluster, "worker-1"), "an agent is there"
    shown = [text_of(path) for path in Path("/proc").glob("[0-9]*/cmdline")]
    shown += [mounted.MOUNTS.read_text(), *os.listdir(namespaces.NAMESPACES)]
    shown.append(subprocess.run(["ip", "-details", "link"], capture_output=True, text=True, check=True).stdout)
    assert cluster.label in "".join(shown)
    assert [text for text in shown if cluster.token.partition("-")[2][:8] in text] == []
    assert stat.S_IMODE((Path(cluster.root) / "handle.json").stat().st_mode) == 0o600


def test_a_provisioned_cluster_is_up_on_a_network_of_its_own(driver: NetnsDriver, cluster: Handle) -> None:
    assert driver.running(cluster, "gateway") == {"broker", "spark-master"}
    assert driver.running(cluster, "worker-1") == {"spark-worker"}
    assert all(host.address.startswith("198.18.") for host in cluster.hosts.values())
    assert gateway.answers(cluster.gateway.address, kafka.BROKER_PORT), "the controller reaches the hosts"
    assert len(namespaces.of(cluster.label)) == 3, "two hosts and the switch between them"
    command = namespaces.inside(cluster.token, "worker-1", "ip", "-4", "route")
    (route,) = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert route.startswith(cluster.gateway.address.rpartition(".")[0]), "no way out of the cluster's own network"


def test_keys_are_the_runs_own_and_only_its_owner_reads_them(cluster: Handle) -> None:
    keys = Path(cluster.root) / "ssh"
    assert stat.S_IMODE(keys.stat().st_mode) == 0o700
    assert {stat.S_IMODE((keys / name).stat().st_mode) for name in ("client", "gateway", "worker-1")} == {0o600}
    pinned = [line.split()[:2] for line in (keys / "known_hosts").read_text().splitlines()]
    assert pinned == [[host.address, "ssh-ed25519"] for host in cluster.hosts.values()]


def test_a_changed_or_unknown_host_key_and_an_unauthorized_client_are_refused(cluster: Handle, tmp_path: Path) -> None:
    login, worker = netns.login(cluster), cluster.hosts["worker-1"]
    other = (Path(cluster.root) / "ssh" / "gateway.pub").read_text()
    changed, empty = tmp_path / "changed", tmp_path / "empty"
    changed.write_text(f"{worker.address} {other}")
    empty.touch()
    gone = tmp_path / "gone"
    stranger = Path(cluster.root) / "ssh" / "worker-1"  # a key, but not the client's
    for wrong, reason in (
        (ssh.Login("root", login.key, changed), "shows another host key than the one pinned"),
        (ssh.Login("root", login.key, empty), "no host key of worker-1"),
        (ssh.Login("root", login.key, gone), "gone, needed to log in to worker-1, cannot be read"),
        (ssh.Login("root", gone, login.known_hosts), "gone, needed to log in to worker-1, cannot be read"),
        (ssh.Login("root", stranger, login.known_hosts), "refuses root's key"),
    ):
        with pytest.raises(EnvironmentFailure, match=reason):
            ssh.connect(wrong, worker.name, worker.address)
    ssh.connect(login, worker.name, worker.address).close()


def test_a_host_that_does_not_answer_is_told(cluster: Handle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssh, "ATTEMPTS_LIMIT_S", 0.3)
    absent = cluster.gateway.address.rpartition(".")[0] + ".1"
    known = tmp_path / "known_hosts"
    known.write_text((Path(cluster.root) / "ssh" / "known_hosts").read_text().replace(absent, f"[{absent}]:9"))
    with pytest.raises(EnvironmentFailure, match=r"gateway at .* cannot be reached over SSH"):
        ssh.connect(ssh.Login("root", netns.login(cluster).key, known, port=9), "gateway", absent)


def test_a_lost_connection_is_made_again(driver: NetnsDriver, cluster: Handle) -> None:
    before = driver.running(cluster, "worker-1")
    strike = driver.prepare(cluster, "worker-1", FaultKind.KILL)
    assert strike.refresh()
    (agent,) = members(f"{cluster.token}/machine/worker-1")
    os.kill(agent, 9)
    assert driver.running(cluster, "worker-1") == before
    assert strike.refresh()


def test_a_service_is_asked_to_end_and_killed_when_it_does_not(driver: NetnsDriver, cluster: Handle) -> None:
    deaf = "trap '' TERM; while :; do sleep 0.2; done"
    driver.spawn(cluster, "gateway", "polite", ["sleep", "60"])
    driver.spawn(cluster, "gateway", "deaf", ["sh", "-c", deaf])
    assert driver.running(cluster, "gateway") >= {"polite", "deaf"}
    driver.stop(cluster, "gateway", "polite", 5)
    driver.stop(cluster, "gateway", "deaf", 0.3)
    driver.stop(cluster, "gateway", "never-started", 5)
    assert driver.running(cluster, "gateway") == {"broker", "spark-master"}


def test_a_killed_worker_leaves_no_process_and_no_port_and_comes_back(driver: NetnsDriver, cluster: Handle) -> None:
    worker, joined = cluster.hosts["worker-1"], times_joined(cluster)
    with socket.socket() as probe:
        assert probe.connect_ex((worker.address, ssh.PORT)) == 0
    before = listens(cluster, "worker-1")
    proof = driver.prepare(cluster, "worker-1", FaultKind.KILL).fire()
    assert proof.done["processes killed"] >= 1
    assert proof.holds
    assert members(f"{cluster.token}/worker-1") == []
    after = listens(cluster, "worker-1")
    assert after < before
    assert {entry.rpartition(":")[2] for entry in after} == {f"{ssh.PORT:04X}"}, "only the machine's sshd is left"
    assert not driver.running(cluster, "worker-1")
    assert driver.running(cluster, "gateway")
    disk = cluster.disk("worker-1")
    (disk / "left-over").touch()
    driver.heal(cluster, "worker-1", FaultKind.KILL)
    driver.heal(cluster, "worker-1", FaultKind.KILL)
    wait_for(lambda: times_joined(cluster) == joined + 1, limit_s=120)
    assert [path.name for path in disk.iterdir()] == ["1"], "a new machine has an empty disk"
    assert os.path.ismount(disk)


def test_a_worker_without_power_joins_again_when_it_has_some(driver: NetnsDriver, cluster: Handle) -> None:
    joined = times_joined(cluster)
    assert driver.prepare(cluster, "worker-1", FaultKind.POWER_OFF).fire().holds
    with pytest.raises(SwitchedOff):
        driver.running(cluster, "worker-1")
    assert driver.running(cluster, "gateway")
    assert driver.heal(cluster, "worker-1", FaultKind.POWER_OFF).holds
    wait_for(lambda: times_joined(cluster) == joined + 1, limit_s=120)


@pytest.mark.parametrize("host", ["gateway", "worker-2", "worker-1/..", ""])
def test_only_workers_of_the_cluster_are_aimed_at(driver: NetnsDriver, cluster: Handle, host: str) -> None:
    for act in (driver.prepare, driver.heal):
        with pytest.raises(BadInput, match=f"a worker of run {cluster.run_id}: worker-1"):
            act(cluster, host, FaultKind.KILL)


def test_a_kill_waits_until_it_is_due(driver: NetnsDriver, cluster: Handle) -> None:
    assert_kills_wait_for_their_moment(driver, cluster)


@pytest.mark.extended
def test_a_provision_that_is_killed_is_cleaned_up_from_its_handle_and_disturbs_nobody(
    driver: NetnsDriver, cluster: Handle, tmp_path: Path
) -> None:
    provisioner = subprocess.Popen([sys.executable, "-c", PROVISION, str(tmp_path)], cwd=REPOSITORY)
    wait_for((tmp_path / "handle.json").exists, limit_s=300)  # others may provision just now
    left = Handle.load(tmp_path)
    wait_for(lambda: bool(members(f"{left.token}/gateway")), limit_s=120)
    provisioner.kill()
    provisioner.wait()
    assert not is_gone(left.token)
    assert {host.address for host in left.hosts.values()}.isdisjoint(host.address for host in cluster.hosts.values())
    NetnsDriver().destroy(left)
    assert is_gone(left.token)
    NetnsDriver().destroy(left)
    assert driver.running(cluster, "gateway") == {"broker", "spark-master"}


def test_clean_removes_the_network_of_a_dead_run_and_leaves_that_of_a_live_one(home: Path) -> None:
    live_directory = store.live_directory(steps.begin({"cluster": {"driver": "netns"}}, "run-1"))
    root = live_directory / "cluster"
    root.mkdir()
    handle = startup.handle_of(ONE_WORKER, "run-1", root, subnet=511, network="198.19.255")
    handle.save()
    namespaces.create(handle.token, handle.root, {host.name: host.address for host in handle.hosts.values()})
    disks.create(handle.token, "worker-1", handle.disk("worker-1"), 64)
    try:
        inside = namespaces.inside(handle.token, "worker-1", "sleep", "600")
        sleeper = subprocess.Popen(inside, env={**os.environ, MARK: f"{handle.token}/worker-1/nap", ROOT: str(root)})
        with lease.lease(live_directory):
            assert (
                f"left alone {handle.label}: 1 processes, 3 namespaces, 1 mounts ({root}): its run is alive" in clean()
            )
        assert sleeper.poll() is None
        lease.lease_path(live_directory).touch()  # the file stays like this when its holder is killed
        said = clean()
        assert f"removed {handle.label}: 1 processes, 3 namespaces, 1 mounts ({root})" in said
        assert "run run-1 was published as failed" in said
        assert is_gone(handle.token)
        assert sleeper.wait(60) == -9
        assert list(live_directory.parent.iterdir()) == []
        assert store.finished("run-1").status().state == "failed"
    finally:
        leftovers.remove(handle.label)


def test_a_creation_that_is_cut_off_anywhere_is_removed() -> None:
    for steps_done in range(1, 4):
        token = f"n510-{secrets.token_hex(8)}"
        names = [namespaces.namespace(token, host) for host in ("switch", "worker-1")]
        for name in names[:steps_done]:
            subprocess.run(["ip", "netns", "add", name], check=True)
        if steps_done == 3:
            link = [
                "ip",
                "link",
                "add",
                namespaces.uplink(tokens.label(token)),
                "type",
                "veth",
                "peer",
                "name",
                "up",
                "netns",
                names[0],
            ]
            subprocess.run(link, check=True)
        assert not is_gone(token)
        namespaces.remove(tokens.label(token))
        assert is_gone(token)
