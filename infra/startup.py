"""What is the same for every driver: laying a cluster out, and starting broker, master and workers on its hosts."""

from __future__ import annotations

import fcntl
import functools
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil

from experiments.errors import BadInput, EnvironmentFailure
from experiments.spec import ClusterSpec
from infra import kafka, services, spark
from infra.cluster import Driver, Handle, Host, Role
from infra.jars import ensure_jars
from infra.jvm import Java, find_java
from infra.strikes.strike import Proof

GATEWAY_MEMORY_MB = 2048  # broker, master, query driver, generator
WORKER_OVERHEAD_MB = 450  # the worker daemon, and an executor beyond its heap
MINIMUM_DISK_MB = 2048
GATEWAY_PORTS = (kafka.BROKER_PORT, kafka.CONTROLLER_PORT, spark.MASTER_PORT)
PROVISION_LOCK = Path(tempfile.gettempdir()) / "aftershock-provision.lock"


def provision(
    driver: Driver,
    spec: ClusterSpec,
    root: Path,
    lay_out: Callable[[], Handle],
    make_hosts: Callable[[Handle], None],
    *,
    elsewhere: bool = False,
) -> Handle:
    """Create the hosts as laid out and start broker, master and workers; returns when all workers have joined.

    The handle is saved before anything is started. Raises `BadInput` for more workers than this machine can hold,
    unless they live `elsewhere`, and `EnvironmentFailure` for the rest; nothing is left then.
    """
    find_java()
    ensure_jars()
    with one_at_a_time():
        if not elsewhere:
            _check_memory(spec)
        _check_disk(root)
        handle = lay_out()
        handle.save()
        try:
            for host in handle.hosts.values():
                (handle.directory(host.name) / "logs").mkdir(parents=True, exist_ok=True)
            make_hosts(handle)
            _start(driver, handle)
        except BaseException:
            driver.destroy(handle)
            raise
    return handle


def handle_of(spec: ClusterSpec, run_id: str, root: Path, *, letter: str, subnet: int, network: str) -> Handle:
    """The handle of a cluster on the /24 `network` (its first three numbers), whose hosts are numbered from 1.

    The token is random; it begins with the driver's `letter` and the number of the subnet, which it thereby takes.
    """

    def host(name: str, number: int, role: Role) -> Host:
        return Host(name, f"{network}.{number}", role, spec.worker_cores, spec.worker_memory_mb)

    gateway = host("gateway", 1, Role.GATEWAY)
    workers = [host(f"worker-{i}", 1 + i, Role.WORKER) for i in range(1, spec.workers + 1)]
    return handle_on(spec, run_id, root, token=f"{letter}{subnet}-{secrets.token_hex(8)}", hosts=[gateway, *workers])


def handle_on(spec: ClusterSpec, run_id: str, root: Path, *, token: str, hosts: Sequence[Host]) -> Handle:
    """The handle of a cluster on hosts whose addresses are known; the first is the gateway."""
    gateway = hosts[0]
    return Handle(
        run_id=run_id,
        driver=spec.driver.value,
        token=token,
        root=str(root),
        hosts={host.name: host for host in hosts},
        broker=f"{gateway.address}:{kafka.BROKER_PORT}",
        master=f"spark://{gateway.address}:{spark.MASTER_PORT}",
    )


def service_environment(handle: Handle, host: str, service: str) -> dict[str, str]:
    """The environment of a service on a host; raises `EnvironmentFailure` without a JVM."""
    mark = f"{handle.token}/{host}/{service}"
    spark_variables = spark.daemon_environment(handle.hosts[host].address)
    return {**services.environment(mark, handle.root), **spark_variables, "JAVA_HOME": str(_java().home)}


@functools.cache
def _java() -> Java:
    """Looked for once in a process: asking a JVM takes a tenth of a second, and every service needs one."""
    return find_java()


def start_worker(driver: Driver, handle: Handle, worker: Host) -> None:
    """Start the Spark worker of a host, its disk an empty folder."""
    lives = handle.disk(worker.name)
    work = lives / str(len(list(lives.glob("*"))) + 1)
    work.mkdir(parents=True)
    driver.spawn(handle, worker.name, "spark-worker", spark.worker_command(worker, handle.master, work))


def revive(driver: Driver, handle: Handle, worker: Host) -> Proof:
    """Start a worker that was lost, if it is down; the proof is that it runs, not yet that it has joined."""
    fired_ns = time.time_ns()
    started = 0
    if not driver.running(handle, worker.name):
        start_worker(driver, handle, worker)
        started = 1
    down = 0 if driver.running(handle, worker.name) else 1
    return Proof(fired_ns, time.time_ns(), {"hosts started": started}, {"hosts down": down})


def worker_of(handle: Handle, host: str) -> Host:
    """The worker of that name; raises `BadInput` for the gateway and for any host that is not this cluster's."""
    workers = {worker.name: worker for worker in handle.workers}
    if host not in workers:
        raise BadInput("target", host, f"a worker of run {handle.run_id}: {', '.join(workers)}")
    return workers[host]


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Provisioning is serialised on the machine, whoever does it, so that two runs never choose the same subnet."""
    try:
        descriptor = os.open(PROVISION_LOCK, os.O_CREAT | os.O_EXCL | os.O_RDONLY, 0o644)
    except FileExistsError:
        descriptor = os.open(PROVISION_LOCK, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _check_memory(spec: ClusterSpec) -> None:
    available_mb = psutil.virtual_memory().available // 2**20
    each = spec.worker_memory_mb + WORKER_OVERHEAD_MB
    fit = (available_mb - GATEWAY_MEMORY_MB) // each
    if spec.workers > fit:
        allowed = f"at most {max(fit, 0)} of {spec.worker_memory_mb} MB here ({available_mb} MB of memory free)"
        raise BadInput("cluster.workers", spec.workers, allowed)


def _check_disk(root: Path) -> None:
    root.mkdir(parents=True, exist_ok=True)
    free_mb = shutil.disk_usage(root).free // 2**20
    if free_mb < MINIMUM_DISK_MB:
        raise EnvironmentFailure(
            f"{free_mb} MB of disk are free under {root}",
            f"a run needs {MINIMUM_DISK_MB} MB: free some, or set AFTERSHOCK_HOME",
        )


def _start(driver: Driver, handle: Handle) -> None:
    gateway = handle.gateway
    logs = handle.directory(gateway.name) / "logs"
    _start_broker(driver, handle)
    driver.spawn(handle, gateway.name, "spark-master", spark.master_command(gateway))
    _wait_port(gateway.address, spark.MASTER_PORT, logs / "spark-master.log")
    for worker in handle.workers:
        start_worker(driver, handle, worker)
    _wait_port(gateway.address, kafka.BROKER_PORT, logs / "broker.log")  # a client that comes sooner waits up to 30 s
    kafka.wait_ready(handle.broker, logs / "broker.log")
    for worker in handle.workers:
        _wait_registered(handle, worker)


def _start_broker(driver: Driver, handle: Handle) -> None:
    gateway = handle.gateway
    folder = handle.directory(gateway.name) / "kafka"
    folder.mkdir(exist_ok=True)
    config = folder / "server.properties"
    config.write_text(kafka.properties(gateway.address, folder / "data"))
    java, jars = _java().launcher, ensure_jars().broker
    format_command = ["format", "--cluster-id", kafka.cluster_id(), "--config", str(config), "--ignore-formatted"]
    done = subprocess.run(
        kafka.java_command(java, jars, "kafka.tools.StorageTool", *format_command), capture_output=True, text=True
    )
    if done.returncode:
        raise EnvironmentFailure(f"Kafka could not format its storage: {done.stderr.strip()[-300:]}", f"see {folder}")
    driver.spawn(handle, gateway.name, "broker", kafka.java_command(java, jars, "kafka.Kafka", str(config)))


def _wait_port(address: str, port: int, log: Path, limit_s: float = 60.0) -> None:
    deadline = time.monotonic() + limit_s
    while not answers(address, port):
        if time.monotonic() > deadline:
            raise EnvironmentFailure(f"nothing listens on {address}:{port} after {limit_s:g} s", f"see {log}")
        time.sleep(0.1)


def answers(address: str, port: int, limit_s: float = 1.0) -> bool:
    """Whether a TCP connection to that port is accepted within `limit_s` [s]."""
    try:
        socket.create_connection((address, port), timeout=limit_s).close()
    except OSError:
        return False
    return True


def _wait_registered(handle: Handle, worker: Host, limit_s: float = 60.0) -> None:
    log = handle.directory(worker.name) / "logs" / "spark-worker.log"
    deadline = time.monotonic() + limit_s
    while "Successfully registered with master" not in log.read_text(errors="replace"):
        if time.monotonic() > deadline:
            raise EnvironmentFailure(f"{worker.name} did not join the Spark master in {limit_s:g} s", f"see {log}")
        time.sleep(0.1)
