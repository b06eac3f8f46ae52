"""Lays a cluster out and starts broker, master and workers on its hosts, in the same way for every driver."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import psutil

from experiments.documents.plain_files import RefusedFile, read_end
from experiments.errors import AftershockError, BadInput, EnvironmentFailure
from experiments.fault_kinds import GATEWAY, FaultKind, kinds_of
from experiments.hosts import Role
from experiments.locks import EVERYBODY, locked
from experiments.spec import ClusterSpec
from experiments.waiting import wait_for
from infra import credentials, launch, namespaces, tokens
from infra.cluster import Driver, Handle, Host, RunsServices
from infra.launch import BROKER_PORT, MASTER_PORT
from infra.services import gateway, kafka, spark
from infra.services.jvm import find_java
from infra.strikes.strike import Proof

GATEWAY_MEMORY_MB = 2048  # broker, master, query driver, generator
WORKER_OVERHEAD_MB = 450  # the worker daemon, and an executor beyond its heap
MINIMUM_DISK_MB = 2048
REGISTERED = b"Successfully registered with master"
WORKER_LOG = "logs/spark-worker.log"  # of a host's folder
ITS_TURN = "its turn: this machine sets up or cleans one cluster at a time"
JOIN_POLL_S, JOIN_LIMIT_S = 0.1, 60.0
PROVISION_LOCK = Path("/tmp/aftershock-provision.lock")  # wherever TMPDIR leads: all users must find the same file


def provision(
    driver: Driver,
    spec: ClusterSpec,
    root: Path,
    lay_out: Callable[[], Handle],
    make_hosts: Callable[[Handle], None],
    tell: Callable[[str], None],
    *,
    elsewhere: bool = False,
) -> Handle:
    """Create the hosts as laid out and start broker, master and workers; returns when all workers have joined.

    Whenever it begins to wait for something else, it tells what that is.
    The handle is saved before anything is started. Raises `BadInput` for more workers than this machine can hold,
    unless they live `elsewhere`, and `EnvironmentFailure` for the rest; nothing is left then. The jars must be there:
    `ensure_jars` has looked at them when the run began.
    """
    tell(ITS_TURN)
    with one_at_a_time():
        tell("hosts")
        if not elsewhere:
            _check_memory(spec)
        root.mkdir(parents=True, exist_ok=True)
        require_disk(root)
        handle = lay_out()
        handle.save()
        credentials.make(root)
        try:
            for host in handle.hosts.values():
                (handle.directory(host.name) / "logs").mkdir(parents=True, exist_ok=True)
            make_hosts(handle)
            _start(driver, handle, tell)
        except BaseException as failure:
            _destroy_after(failure, driver, handle)
            raise
    return handle


def _destroy_after(failure: BaseException, driver: Driver, handle: Handle) -> None:
    """Destroy what was made before a failure. If something is left, that is told beside the failure, not instead."""
    try:
        driver.destroy(handle)
    except EnvironmentFailure as left:
        if not isinstance(failure, AftershockError):
            raise
        raise EnvironmentFailure(f"{failure}; then {left.cause}", left.remedy) from failure


def handle_of(spec: ClusterSpec, run_id: str, root: Path, *, subnet: int, network: str) -> Handle:
    """The handle of a cluster on the /24 `network` (its first three numbers), whose hosts are numbered from 1.

    The token is random. It has the number of the subnet in it, and so reserves the subnet.
    """

    def host(name: str, number: int, role: Role) -> Host:
        return Host(name, f"{network}.{number}", role, spec.worker_cores, spec.worker_memory_mb)

    first = host(GATEWAY, 1, Role.GATEWAY)
    workers = [host(f"worker-{i}", 1 + i, Role.WORKER) for i in range(1, spec.workers + 1)]
    return handle_on(spec, run_id, root, hosts=[first, *workers], subnet=subnet)


def lay_out_on_bridge(spec: ClusterSpec, run_id: str, root: Path) -> Handle:
    """The handle of a cluster on a bridge, on a subnet that is free. The caller must hold the lock on provisioning."""
    subnet = namespaces.free_subnet()
    return handle_of(spec, run_id, root, subnet=subnet, network=namespaces.prefix_of(subnet))


def handle_on(
    spec: ClusterSpec, run_id: str, root: Path, *, hosts: Sequence[Host], subnet: int = tokens.NO_SUBNET
) -> Handle:
    """The handle of a cluster on hosts whose addresses are known; the first is the gateway."""
    first = hosts[0]
    return Handle(
        run_id=run_id,
        driver=spec.driver.value,
        token=tokens.new(spec.driver, subnet),
        root=str(root),
        hosts={host.name: host for host in hosts},
        broker=f"{first.address}:{BROKER_PORT}",
        master=f"spark://{first.address}:{MASTER_PORT}",
    )


def service_environment(handle: Handle, host: str, service: str) -> dict[str, str]:
    """The environment of a service on a host; raises `EnvironmentFailure` without a JVM."""
    mark = f"{handle.token}/{host}/{service}"
    spark_variables = spark.daemon_environment(handle, host)
    return {**launch.environment(mark, handle.root), **spark_variables, "JAVA_HOME": str(find_java().home)}


def start_worker(driver: RunsServices, handle: Handle, worker: Host) -> None:
    """Start the Spark worker of a host, its disk an empty folder."""
    lives = handle.disk(worker.name)
    work = lives / str(len(list(lives.glob("*"))) + 1)
    work.mkdir(parents=True)
    driver.spawn(handle, worker.name, "spark-worker", spark.worker_command(worker, handle.master, work))


def revive(driver: RunsServices, handle: Handle, worker: Host) -> Proof:
    """Start a worker that was lost, if it is down; the proof is that it runs, not yet that it has joined."""
    fired_ns = time.time_ns()
    started = 0
    if not driver.running(handle, worker.name):
        start_worker(driver, handle, worker)
        started = 1
    down = 0 if driver.running(handle, worker.name) else 1
    return Proof(fired_ns, time.time_ns(), {"hosts started": started}, {"hosts down": down})


def struck(handle: Handle, host: str, kind: FaultKind) -> Host:
    """The host of that name, if a fault of that kind may strike it; raises `BadInput` for any other.

    Faults of services strike the gateway, all others a worker of this cluster, and never the gateway. A kind that does
    not declare the cluster's driver strikes nothing: a partition of a local host would cut off the whole machine.
    """
    allowed = {h.name: h for h in ([handle.gateway] if kind.service else handle.workers)}
    if host not in allowed:
        meant = "the gateway" if kind.service else "a worker"
        raise BadInput("target", host, f"{meant} of run {handle.run_id}: {', '.join(allowed)}")
    if handle.driver not in kind.drivers:
        raise BadInput("kind", kind.value, f"{', '.join(kinds_of(handle.driver))} with driver {handle.driver}")
    return allowed[host]


def wanted_mb(spec: ClusterSpec) -> int:
    """What all hosts of a cluster take together, if every worker uses what it may [MB]."""
    return GATEWAY_MEMORY_MB + spec.workers * _each_mb(spec)


def workers_that_fit(spec: ClusterSpec, memory_mb: int) -> int:
    """How many workers of that size fit into so much memory [MB], beside the gateway."""
    return max((memory_mb - GATEWAY_MEMORY_MB) // _each_mb(spec), 0)


def one_at_a_time() -> AbstractContextManager[object]:
    """Only one process of the machine provisions at a time, so that two runs never choose the same subnet.

    Raises `EnvironmentFailure` if another process takes longer than provisioning ever should.
    """
    return locked(PROVISION_LOCK, "the provisioning or cleaning of other runs", mode=EVERYBODY)


def _check_memory(spec: ClusterSpec) -> None:
    available_mb = psutil.virtual_memory().available // 2**20
    fit = workers_that_fit(spec, available_mb)
    if spec.workers > fit:
        allowed = f"at most {fit} of {spec.worker_memory_mb} MB here ({available_mb} MB of memory free)"
        raise BadInput("cluster.workers", spec.workers, allowed)


def _each_mb(spec: ClusterSpec) -> int:
    return spec.worker_memory_mb + WORKER_OVERHEAD_MB


def require_disk(folder: Path) -> None:
    """Raise `EnvironmentFailure` if the disk of a folder has less free than any run needs."""
    free_mb = shutil.disk_usage(folder).free // 2**20
    if free_mb < MINIMUM_DISK_MB:
        raise EnvironmentFailure(
            f"{free_mb} MB of disk are free under {folder}",
            f"a run needs {MINIMUM_DISK_MB} MB: free some, or set AFTERSHOCK_HOME",
        )


def _start(driver: Driver, handle: Handle, tell: Callable[[str], None]) -> None:
    address, logs = handle.gateway.address, handle.directory(handle.gateway.name) / "logs"
    tell("the broker's storage to be formatted")
    gateway.start_master(driver, handle)  # comes up meanwhile
    gateway.start_broker(driver, handle)
    tell("Spark's master")
    gateway.wait_port(address, MASTER_PORT, logs / "spark-master.log")
    for worker in handle.workers:
        start_worker(driver, handle, worker)
    tell("the broker")
    gateway.wait_port(address, BROKER_PORT, logs / "broker.log")  # a client that comes sooner waits up to 30 s
    kafka.wait_ready(handle.kafka, logs / "broker.log")
    _await_workers(handle, tell)


def arrival(handle: Handle, host: str, kind: FaultKind) -> Callable[[], bool] | None:
    """To be asked before a heal: what tells, once it is done, that what was lost has its place again.

    A worker has when the Spark master has registered it since, the broker when it answers, the master when it can be
    connected to. None for a kind that loses nothing which would have to come back by itself.
    """
    if not kind.must_come_back:
        return None
    if kind.service:
        return lambda: gateway.serves(handle, kind)
    log = handle.directory(host) / WORKER_LOG
    before = log.lstat().st_size if log.exists() else 0
    return lambda: _registered(handle, host, before)


def _registered(handle: Handle, host: str, since: int = 0) -> bool:
    """Whether a worker was registered, by what its log says beyond its first `since` bytes, at most in the last MiB.

    What the host put in the log's place says nothing.
    """
    folder = handle.directory(host)
    try:
        return REGISTERED in read_end(folder, WORKER_LOG, Path(handle.root).lstat().st_uid, since)
    except (OSError, RefusedFile):
        return False


def _await_workers(handle: Handle, tell: Callable[[str], None]) -> None:
    """Return once all workers are registered; each may take its time from when those before it are."""
    for number, worker in enumerate(handle.workers, 1):
        tell(f"{worker.name} to join, {number} of {len(handle.workers)}")
        wait_for(
            partial(_registered, handle, worker.name),
            f"{worker.name} did not join the Spark master in {JOIN_LIMIT_S:g} s",
            f"see {handle.directory(worker.name) / WORKER_LOG}",
            interval_s=JOIN_POLL_S,
            limit_s=JOIN_LIMIT_S,
        )
