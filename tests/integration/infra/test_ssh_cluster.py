"""The ssh driver on machines that exist and stay: here namespaces with sshd, of which no driver knows how they came."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aftershock.run import steps
from experiments.errors import AftershockError, BadInput, EnvironmentFailure
from experiments.fault_kinds import PLAIN, FaultKind, FaultOptions
from experiments.spec import ClusterSpec
from infra import leftovers, namespaces
from infra.cluster import Handle
from infra.launch import REPOSITORY
from infra.processes import members
from infra.remote import ssh
from infra.services import kafka
from infra.ssh import claims, logins
from infra.ssh.driver import SshDriver
from infra.strikes import delay, partition
from tests.integration.conftest import provisioned
from tests.integration.infra import machines
from tests.unit.marked_processes import wait_for
from tests.unit.ssh_keys import new_key

pytestmark = pytest.mark.extended


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Handle]:
    """A gateway and two machines; their inventory is `inventory.json` beside the folder of the handle."""
    folder: Path = tmp_path_factory.mktemp("there")
    try:
        made = machines.make(folder, 2)
    except AftershockError as error:
        pytest.skip(str(error))
    yield made
    leftovers.remove(made.label)


@pytest.fixture(scope="module")
def driver() -> SshDriver:
    return SshDriver()


@pytest.fixture(scope="module")
def cluster(driver: SshDriver, there: Handle, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Handle]:
    """A cluster with one worker; the tests that share it leave its worker up."""
    root: Path = tmp_path_factory.mktemp("cluster")
    with provisioned(driver, one_worker(there), root) as handle:
        yield handle


def inventory_of(there: Handle) -> Path:
    return Path(there.root).parent / "inventory.json"


def one_worker(there: Handle, path: Path | None = None, **fields: Any) -> ClusterSpec:
    document = {"driver": "ssh", "workers": 1, "worker_memory_mb": 512, "inventory": str(path or inventory_of(there))}
    return ClusterSpec(**document | fields)


def document(there: Handle, **faults: Any) -> dict[str, Any]:
    cluster = one_worker(there, workers=2).model_dump(mode="json")
    return {"cluster": cluster, "faults": faults}


def claim_of(there: Handle, host: str) -> Path:
    """The file of the claim on a machine."""
    namespace = namespaces.NAMESPACES / namespaces.namespace(there.token, host)
    return claims.FOLDER / f"aftershock-machine-{os.stat(namespace).st_ino}"


def with_tables(there: Handle) -> set[str]:
    """The machines on which a partition has left its nftables table, be it empty."""
    return {host for host in there.hosts if partition.has_table(namespaces.inside(there.token, host))}


def claimed(there: Handle) -> set[str]:
    return {host for host in there.hosts if claim_of(there, host).exists()}


# --- what is refused, before anything is touched


def change(there: Handle, folder: Path, host: str, **fields: Any) -> ClusterSpec:
    """The spec of a cluster by an inventory in which a machine is described otherwise."""
    described = machines.described(there)
    described[host] |= fields
    return one_worker(there, machines.write_inventory(folder, described))


def test_a_machine_that_cannot_be_trusted_or_reached_is_refused(
    driver: SshDriver, there: Handle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ssh, "ATTEMPTS_LIMIT_S", 0.3)
    absent = there.gateway.address.rpartition(".")[0] + ".77"
    stranger = new_key(tmp_path / "stranger")
    for fields, reason in (
        ({"host_key": stranger}, rf"worker-1 \(machine-1\) at .* another host key than .* {tmp_path}/inventory.json"),
        ({"key_file": str(tmp_path / "stranger")}, r"worker-1 \(machine-1\) at .* refuses root's key"),
        ({"address": absent}, rf"worker-1 \(machine-1\) at {absent} cannot be reached over SSH"),
        ({"port": 2222}, r"worker-1 \(machine-1\) at .* cannot be reached over SSH"),
    ):
        with pytest.raises(EnvironmentFailure, match=reason) as refused:
            driver.check(change(there, tmp_path, "worker-1", **fields))
        assert "\n" not in str(refused.value)
    with pytest.raises(BadInput, match=r"hosts.1.key_file: 'gone' .*No such file"):
        driver.check(change(there, tmp_path, "worker-1", key_file="gone"))
    for wrong, reason in (
        (one_worker(there, workers=3), "cluster.workers: 3 is not usable; allowed: at most 2"),
        (one_worker(there, worker_memory_mb=8192), "cluster.worker_memory_mb: 8192 .* for machine-1"),
        (one_worker(there, worker_cores=5), "cluster.worker_cores: 5 .* as machine-1 has"),
        (one_worker(there, tmp_path / "none.json"), "cluster.inventory: .*none.json.*No such file"),
    ):
        with pytest.raises(BadInput, match=reason):
            driver.check(wrong)
    assert claimed(there) == set()


def test_a_machine_that_lacks_something_is_refused(driver: SshDriver, there: Handle, tmp_path: Path) -> None:
    cluster = one_worker(there, workers=2)
    machines.hide(there, "worker-2", REPOSITORY)
    with pytest.raises(EnvironmentFailure, match=r"worker-2 \(machine-2\) has no .* be read; mount the checkout"):
        driver.check(cluster)
    machines.hide(there, "worker-2", tmp_path)
    driver.check(cluster)
    with pytest.raises(EnvironmentFailure, match=rf"worker-2 \(machine-2\) does not share {tmp_path}.*AFTERSHOCK_HOME"):
        driver.provision(cluster, "unshared", tmp_path / "cluster")
    machines.hide(there, "worker-2", None)
    driver.check(cluster)
    assert claimed(there) == set()
    assert not any(members(Handle.load(tmp_path / "cluster").token))


def test_a_gateway_whose_ports_are_taken_is_refused(driver: SshDriver, there: Handle) -> None:
    listener = (
        "import socket, time; s = socket.create_server(('0.0.0.0', 9092)); print('up', flush=True); time.sleep(60)"
    )
    command = namespaces.inside(there.token, "gateway", "python3", "-c", listener)
    taken = subprocess.Popen(command, stdout=subprocess.PIPE)
    try:
        assert taken.stdout.readline() == b"up\n"
        with pytest.raises(EnvironmentFailure, match=r"port 9092 is taken on gateway \(machine-0\)"):
            driver.check(one_worker(there))
    finally:
        taken.kill()
        taken.wait()


def test_what_cannot_be_injected_is_refused_when_a_run_begins(there: Handle, home: Path) -> None:
    fault = {"at": 1, "kind": "power-off", "targets": ["worker-1"], "heal_after": 1}
    with pytest.raises(BadInput, match=r"faults.events.0.kind: 'power-off' .* no power switch"):
        steps.begin(document(there, events=[fault]), "run-1")
    assert not (home / "live" / "run-1").exists()


def test_a_machine_is_asked_what_it_can_inject(driver: SshDriver, there: Handle) -> None:
    cluster = one_worker(there)
    driver.check(cluster)
    for kind in (FaultKind.KILL, FaultKind.TERMINATE, FaultKind.PAUSE, FaultKind.SLOW):
        assert driver.refusal(cluster, kind, PLAIN) is None
    assert "no disk" in driver.refusal(cluster, FaultKind.DISK_FULL, PLAIN)
    for kind, options, here in (
        (FaultKind.SLOW, FaultOptions(delay=0.1), delay.refusal()),
        (FaultKind.PARTITION, PLAIN, partition.refusal()),
    ):
        refusal = driver.refusal(cluster, kind, options)
        assert (refusal is None) == (here is None), "these machines have this one's kernel and programs"


# --- a cluster


def test_a_provisioned_cluster_is_up_on_its_machines(driver: SshDriver, there: Handle, cluster: Handle) -> None:
    assert driver.running(cluster, "gateway") == {"broker", "spark-master"}
    assert driver.running(cluster, "worker-1") == {"spark-worker"}
    assert cluster.hosts["worker-1"].address == there.hosts["worker-1"].address
    assert claimed(there) == {"gateway", "worker-1"}, "worker-2 is not needed"
    assert stat.S_IMODE(claim_of(there, "worker-1").stat().st_mode) == 0o600
    keys = [path for path in (Path(cluster.root) / "ssh").iterdir() if path.name.startswith("key-")]
    assert {stat.S_IMODE(key.stat().st_mode) for key in keys} == {0o600}
    assert len(keys) == 2
    assert driver.usage(cluster, "worker-1").rss_bytes > 50e6
    assert set(driver.clocks(cluster)) == {"gateway", "worker-1"}


def test_a_machine_that_another_run_has_is_refused(
    driver: SshDriver, there: Handle, cluster: Handle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = rf"gateway \(machine-0\) belongs to run {cluster.run_id}; wait for it, or run `aftershock clean"
    other, wanted = SshDriver(), one_worker(there)
    with pytest.raises(EnvironmentFailure, match=taken):
        other.check(wanted)
    monkeypatch.setattr(other, "check", lambda _spec: None)  # as if both had looked before either took a machine
    with pytest.raises(EnvironmentFailure, match=taken):
        other.provision(wanted, "second", tmp_path)
    assert driver.running(cluster, "gateway") == {"broker", "spark-master"}
    assert json.loads(claim_of(there, "gateway").read_text())["token"] == cluster.token


def test_a_killed_worker_is_dead_not_before_it_is_due_and_comes_back(driver: SshDriver, cluster: Handle) -> None:
    worker = cluster.hosts["worker-1"]
    strike = driver.prepare(cluster, "worker-1", FaultKind.KILL)
    assert strike.refresh()
    due_ns = time.time_ns() + 50_000_000
    strike.shoot(due_ns)
    proof = strike.fire()
    assert proof.holds
    assert proof.done["processes killed"] >= 1
    assert proof.fired_ns >= due_ns
    with socket.socket() as probe:
        assert probe.connect_ex((worker.address, ssh.PORT)) == 0, "the machine itself is up"
    assert not driver.running(cluster, "worker-1")
    assert driver.running(cluster, "gateway")
    assert driver.heal(cluster, "worker-1", FaultKind.KILL).holds
    log = cluster.directory("worker-1") / "logs" / "spark-worker.log"
    wait_for(lambda: log.read_text(errors="replace").count("Successfully registered with master") == 2, limit_s=120)


def test_a_worker_is_paused_and_cut_off_with_proofs_and_healed(driver: SshDriver, cluster: Handle) -> None:
    kinds = [FaultKind.PAUSE] + ([] if partition.refusal() else [FaultKind.PARTITION])
    for kind in kinds:
        proof = driver.prepare(cluster, "worker-1", kind).fire()
        assert proof.holds, (kind, proof)
        healed = driver.heal(cluster, "worker-1", kind)
        assert healed.holds, (kind, healed)
    assert driver.running(cluster, "worker-1") == {"spark-worker"}


def test_nothing_is_struck_on_a_machine_without_this_runs_token(
    driver: SshDriver, there: Handle, cluster: Handle
) -> None:
    claim = claim_of(there, "worker-1")
    ours = claim.read_text(encoding="utf-8")
    for found, reason in ((None, "no run's"), (ours.replace(cluster.token, "m0-other"), f"run {cluster.run_id}'s")):
        claim.unlink(missing_ok=True)
        if found:
            claim.write_text(found, encoding="utf-8")
        try:
            with pytest.raises(EnvironmentFailure, match=f"worker-1: .* this machine is {reason}, so nothing is done"):
                driver.prepare(cluster, "worker-1", FaultKind.KILL)
        finally:
            claim.write_text(ours, encoding="utf-8")
    assert driver.prepare(cluster, "worker-1", FaultKind.KILL).refresh()


def test_a_destroyed_cluster_leaves_its_machines_as_they_were(
    driver: SshDriver, there: Handle, cluster: Handle
) -> None:
    driver.spawn(cluster, "worker-1", "deaf", ["sh", "-c", "trap '' TERM; while :; do sleep 0.2; done"])
    SshDriver().running(cluster, "worker-1")  # a process that has looked, as the sampler has, leaves an agent
    for kind in [FaultKind.PAUSE] + ([] if partition.refusal() else [FaultKind.PARTITION]):
        assert driver.prepare(cluster, "worker-1", kind).fire().holds
    if not partition.refusal():  # an agent that ends amid the preparation of a partition leaves empty chains
        partition._nft(partition.CHAINS, namespaces.inside(there.token, "gateway"))
        assert with_tables(there) == {"gateway", "worker-1"}
    driver.destroy(cluster)
    assert with_tables(there) == set()
    assert members(cluster.token) == []
    assert claimed(there) == set()
    driver.destroy(cluster)
    for host in cluster.hosts.values():
        with socket.socket() as probe:
            assert probe.connect_ex((host.address, ssh.PORT)) == 0
            assert probe.connect_ex((host.address, kafka.BROKER_PORT)) != 0
    assert set(logins.machines_of(cluster)) == {"gateway", "worker-1"}, "so that it can be destroyed again"
    driver.check(one_worker(there))
