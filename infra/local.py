"""The local driver: hosts are process trees on loopback addresses of a /24 of their own. Needs no root."""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

import psutil

from experiments.errors import BadInput, EnvironmentFailure
from experiments.spec import ClusterSpec
from infra import kafka, spark
from infra.cluster import Handle, Host, HostState, Role
from infra.jars import ensure_jars
from infra.jvm import Java, find_java
from infra.processes import MARK, Aim, listening, marks, members

REPOSITORY = Path(__file__).parent.parent
GATEWAY_MEMORY_MB = 2048  # broker, master, query driver, generator
WORKER_OVERHEAD_MB = 450  # the worker daemon, and an executor beyond its heap
MINIMUM_DISK_MB = 2048
GATEWAY_PORTS = (kafka.BROKER_PORT, kafka.CONTROLLER_PORT, spark.MASTER_PORT)


class LocalDriver:
    """Implements `infra.cluster.Driver` on this machine; what starts a JVM raises `EnvironmentFailure` without one."""

    @cached_property
    def java(self) -> Java:
        return find_java()

    def provision(self, spec: ClusterSpec, run_id: str, root: Path) -> Handle:
        """Create the hosts and start broker, master and workers; returns when all workers have joined.

        Raises `BadInput` for more workers than the machine can hold, `EnvironmentFailure` for the rest.
        """
        find_java()
        ensure_jars()
        with _one_at_a_time():
            _check_capacity(spec, root)
            subnet = _free_subnet()
            handle = _handle(spec, run_id, root, subnet)
            handle.save()
            try:
                self._start(handle)
            except BaseException:
                self.destroy(handle)
                raise
        return handle

    def _start(self, handle: Handle) -> None:
        for host in handle.hosts.values():
            (handle.directory(host.name) / "logs").mkdir(parents=True, exist_ok=True)
        self._start_broker(handle)
        self.spawn(handle, handle.gateway.name, "spark-master", spark.master_command(handle.gateway))
        _wait_port(
            handle.gateway.address,
            spark.MASTER_PORT,
            handle.directory(handle.gateway.name) / "logs" / "spark-master.log",
        )
        for worker in handle.workers:
            self._start_worker(handle, worker)
        log = handle.directory(handle.gateway.name) / "logs" / "broker.log"
        kafka.wait_ready(handle.broker, log)
        for worker in handle.workers:
            _wait_registered(handle, worker)

    def _start_broker(self, handle: Handle) -> None:
        gateway = handle.gateway
        folder = handle.directory(gateway.name) / "kafka"
        folder.mkdir(exist_ok=True)
        config = folder / "server.properties"
        config.write_text(kafka.properties(gateway.address, folder / "data"))
        java, jars = self.java.launcher, ensure_jars().broker
        format_command = ["format", "--cluster-id", kafka.cluster_id(), "--config", str(config), "--ignore-formatted"]
        done = subprocess.run(
            kafka.java_command(java, jars, "kafka.tools.StorageTool", *format_command), capture_output=True, text=True
        )
        if done.returncode:
            raise EnvironmentFailure(
                f"Kafka could not format its storage: {done.stderr.strip()[-300:]}", f"see {folder}"
            )
        self.spawn(handle, gateway.name, "broker", kafka.java_command(java, jars, "kafka.Kafka", str(config)))

    def _start_worker(self, handle: Handle, worker: Host) -> None:
        lives = handle.directory(worker.name) / "lives"
        work = lives / str(len(list(lives.glob("*"))) + 1)
        work.mkdir(parents=True)
        self.spawn(handle, worker.name, "spark-worker", spark.worker_command(worker, handle.master, work))

    def inspect(self, handle: Handle) -> list[HostState]:
        """Which hosts have live processes, and how many."""
        counts = {host.name: len(members(f"{handle.token}/{host.name}")) for host in handle.hosts.values()}
        return [HostState(h.name, h.address, counts[h.name] > 0, counts[h.name]) for h in handle.hosts.values()]

    def spawn(self, handle: Handle, host: str, service: str, command: Sequence[str]) -> int:
        """Start a service in a session of its own, its output appended to `logs/<service>.log`."""
        folder = handle.directory(host)
        environment = _environment(handle, host, service, self.java)
        with (folder / "logs" / f"{service}.log").open("ab") as log:
            process = subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        return process.pid

    def stop(self, handle: Handle, host: str, service: str, limit_s: float) -> None:
        """Ask a service's first process to end; after `limit_s` every process of it is killed."""
        mark = f"{handle.token}/{host}/{service}"
        leaders = [pid for pid in members(mark) if _leads_session(pid)]
        for pid in leaders:
            _signal(pid, signal.SIGTERM)
        deadline = time.monotonic() + limit_s
        while members(mark) and time.monotonic() < deadline:
            time.sleep(0.1)
        for pid in members(mark):
            _signal(pid, signal.SIGKILL)

    def running(self, handle: Handle, host: str) -> set[str]:
        """Names of the services of the host that have a live process."""
        prefix = f"{handle.token}/{host}/"
        return {mark.removeprefix(prefix) for mark in marks(prefix)}

    def aim(self, handle: Handle, host: str) -> Aim:
        """Open handles on the host's processes; only a host of this cluster can be aimed at."""
        target = _worker(handle, host)
        return Aim(f"{handle.token}/{target.name}", target.address)

    def heal(self, handle: Handle, host: str) -> None:
        """Start the worker again, its disk an empty folder; a host that is up is left alone."""
        target = _worker(handle, host)
        if not members(f"{handle.token}/{target.name}"):
            self._start_worker(handle, target)

    def destroy(self, handle: Handle) -> None:
        """Kill everything that carries the cluster's token; the directories stay until the run is published."""
        proof = Aim(handle.token, handle.gateway.address).fire()
        if proof.survivors:
            cause = f"{proof.survivors} processes of run {handle.run_id} survive SIGKILL"
            raise EnvironmentFailure(cause, "look for them with ps, then destroy again")


def _handle(spec: ClusterSpec, run_id: str, root: Path, subnet: int) -> Handle:
    def host(name: str, number: int, role: Role) -> Host:
        return Host(name, f"127.0.{subnet}.{number}", role, spec.worker_cores, spec.worker_memory_mb)

    gateway = host("gateway", 1, Role.GATEWAY)
    workers = [host(f"worker-{i}", 1 + i, Role.WORKER) for i in range(1, spec.workers + 1)]
    return Handle(
        run_id=run_id,
        driver=spec.driver.value,
        token=f"s{subnet}-{secrets.token_hex(8)}",
        root=str(root),
        hosts={h.name: h for h in (gateway, *workers)},
        broker=f"{gateway.address}:{kafka.BROKER_PORT}",
        master=f"spark://{gateway.address}:{spark.MASTER_PORT}",
    )


def _environment(handle: Handle, host: str, service: str, java: Java) -> dict[str, str]:
    address = handle.hosts[host].address
    kept = {
        name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR", "AFTERSHOCK_CACHE") if name in os.environ
    }
    return {
        **kept,
        **spark.daemon_environment(address),
        "JAVA_HOME": str(java.home),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(REPOSITORY),
        "PYTHONUNBUFFERED": "1",
        MARK: f"{handle.token}/{host}/{service}",
    }


def _worker(handle: Handle, host: str) -> Host:
    workers = {worker.name: worker for worker in handle.workers}
    if host not in workers:
        raise BadInput("target", host, f"a worker of run {handle.run_id}: {', '.join(workers)}")
    return workers[host]


def _check_capacity(spec: ClusterSpec, root: Path) -> None:
    available_mb = psutil.virtual_memory().available // 2**20
    each = spec.worker_memory_mb + WORKER_OVERHEAD_MB
    fit = (available_mb - GATEWAY_MEMORY_MB) // each
    if spec.workers > fit:
        allowed = f"at most {max(fit, 0)} of {spec.worker_memory_mb} MB here ({available_mb} MB of memory free)"
        raise BadInput("cluster.workers", spec.workers, allowed)
    root.mkdir(parents=True, exist_ok=True)
    free_mb = shutil.disk_usage(root).free // 2**20
    if free_mb < MINIMUM_DISK_MB:
        raise EnvironmentFailure(
            f"{free_mb} MB of disk are free under {root}",
            f"a run needs {MINIMUM_DISK_MB} MB: free some, or set AFTERSHOCK_HOME",
        )


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Provisioning is serialised on the machine, whoever does it, so that two runs never choose the same subnet."""
    path = Path(tempfile.gettempdir()) / "aftershock-provision.lock"
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDONLY, 0o644)
    except FileExistsError:
        descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _free_subnet() -> int:
    """The first 127.0.N.0/24 that no cluster of ours uses and whose gateway ports are free."""
    taken = {int(mark[1:].partition("-")[0]) for mark in marks("s")}
    busy: set[int] = set()
    for subnet in sorted(set(range(1, 255)) - taken):
        found = [port for port in GATEWAY_PORTS if _is_taken(f"127.0.{subnet}.1", port)]
        if not found:
            return subnet
        busy.update(found)
    ports = ", ".join(map(str, sorted(busy))) or "all"
    raise EnvironmentFailure(
        f"no loopback subnet is free: port {ports} taken on every one of them",
        "stop the program that listens there (ss -ltnp)",
    )


def _is_taken(address: str, port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return True
            raise
    return False


def _wait_port(address: str, port: int, log: Path, limit_s: float = 60.0) -> None:
    deadline = time.monotonic() + limit_s
    while port not in listening(address):
        if time.monotonic() > deadline:
            raise EnvironmentFailure(f"nothing listens on {address}:{port} after {limit_s:g} s", f"see {log}")
        time.sleep(0.1)


def _wait_registered(handle: Handle, worker: Host, limit_s: float = 60.0) -> None:
    log = handle.directory(worker.name) / "logs" / "spark-worker.log"
    deadline = time.monotonic() + limit_s
    while "Successfully registered with master" not in log.read_text(errors="replace"):
        if time.monotonic() > deadline:
            raise EnvironmentFailure(f"{worker.name} did not join the Spark master in {limit_s:g} s", f"see {log}")
        time.sleep(0.1)


def _leads_session(pid: int) -> bool:
    try:
        return os.getsid(pid) == pid
    except ProcessLookupError:
        return False


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
