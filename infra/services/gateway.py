"""Starts and restarts the services of the gateway that the cluster itself needs: broker and Spark master.

Both keep what they must remember on the gateway's disk: the broker its topics, the master which workers and
applications there are. The third service that a fault can kill, the query driver, is started again by its supervisor.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import subprocess
import time
from collections.abc import Callable, Collection
from contextlib import ExitStack
from pathlib import Path

from experiments.errors import EnvironmentFailure
from experiments.fault_kinds import FaultKind
from experiments.waiting import Deadline, wait_for
from infra.cluster import Handle, RunsServices
from infra.credentials import write_private
from infra.launch import BROKER_PORT, CONTROLLER_PORT, MASTER_PORT, PORTS, for_the_controller
from infra.services import kafka, spark
from infra.services.jars import class_paths
from infra.services.jvm import find_java
from infra.strikes.strike import Proof

GATEWAY_PORTS = (BROKER_PORT, CONTROLLER_PORT, MASTER_PORT)
PORT_POLL_S = 0.1
FORMAT_LIMIT_S = 60.0  # other runs wait meanwhile, for the lock on provisioning
LISTENS_LIMIT_S, CONNECTION_LIMIT_S = 60.0, 1.0


def start_broker(driver: RunsServices, handle: Handle) -> None:
    """Start the broker on its data, which is made when there is none; returns before it answers."""
    config = _broker_config(handle)
    folder, data = config.parent, config.with_name("data")
    folder.mkdir(exist_ok=True)
    launcher, jars = find_java().launcher, class_paths().broker
    if not data.exists():
        write_private(config, kafka.properties(handle.kafka, data))
        format_it = kafka.java_command(launcher, jars, "kafka.tools.StorageTool", *kafka.format_options(config))
        _format(handle, format_it, folder)
    _spawn_broker(driver, handle)


def _spawn_broker(driver: RunsServices, handle: Handle) -> None:
    """Start the broker on its data. Writes nothing: what ran on the gateway since may have left links there."""
    program = kafka.java_command(find_java().launcher, class_paths().broker, "kafka.Kafka", str(_broker_config(handle)))
    driver.spawn(handle, handle.gateway.name, "broker", program)


def _broker_config(handle: Handle) -> Path:
    return handle.directory(handle.gateway.name) / "kafka" / "server.properties"


def _format(handle: Handle, command: list[str], folder: Path) -> None:
    variables = os.environ | for_the_controller(handle.token, handle.root, "format")
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=variables, timeout=FORMAT_LIMIT_S)
    except subprocess.TimeoutExpired:
        cause = f"Kafka did not format its storage in {FORMAT_LIMIT_S:g} s"
        raise EnvironmentFailure(cause, f"look at the disk of {folder}") from None
    if done.returncode:
        raise EnvironmentFailure(f"Kafka could not format its storage: {done.stderr.strip()[-300:]}", f"see {folder}")


def start_master(driver: RunsServices, handle: Handle) -> None:
    """Start the Spark master with what it remembers; returns before it answers."""
    spark.recovery_directory(handle).mkdir(exist_ok=True)
    driver.spawn(handle, handle.gateway.name, "spark-master", spark.master_command(handle.gateway))


STARTS: dict[FaultKind, Callable[[RunsServices, Handle], None]] = {
    FaultKind.BROKER_KILL: _spawn_broker,
    FaultKind.MASTER_KILL: start_master,
}


def restart(driver: RunsServices, handle: Handle, kind: FaultKind) -> Proof:
    """Start a killed service again, if it is down; the proof is that it runs, not yet that it answers."""
    fired_ns, started = time.time_ns(), 0
    service = str(kind.service)
    if service not in driver.running(handle, handle.gateway.name):
        STARTS[kind](driver, handle)
        started = 1
    down = 0 if service in driver.running(handle, handle.gateway.name) else 1
    return Proof(fired_ns, time.time_ns(), {"services started": started}, {"services down": down})


def serves(handle: Handle, kind: FaultKind) -> bool:
    """Whether the service that a fault of that kind kills can be used: the broker answers, the master listens."""
    listens = all(answers(handle.gateway.address, port) for port in PORTS[str(kind.service)])
    return listens and (kind is not FaultKind.BROKER_KILL or kafka.is_ready(handle.kafka.for_librdkafka()))


def wait_port(address: str, port: int, log: Path) -> None:
    """Return once something listens there; raises `EnvironmentFailure` after `LISTENS_LIMIT_S`."""
    cause = f"nothing listens on {address}:{port} after {LISTENS_LIMIT_S:g} s"
    wait_for(lambda: answers(address, port), cause, f"see {log}", interval_s=PORT_POLL_S, limit_s=LISTENS_LIMIT_S)


def answers(address: str, port: int) -> bool:
    """Whether a TCP connection to that port is accepted within `CONNECTION_LIMIT_S`."""
    try:
        socket.create_connection((address, port), timeout=CONNECTION_LIMIT_S).close()
    except OSError:
        return False
    return True


def answering(address: str, ports: Collection[int]) -> int:
    """How many of these ports of an IPv4 address accept a TCP connection within `CONNECTION_LIMIT_S`.

    All are asked at once, since one that says nothing takes that long, and without a thread, which others would wait
    for (`infra.threads`).
    """
    with ExitStack() as opened:
        asked: dict[int, socket.socket] = {}
        poll = select.poll()
        for port in ports:
            client = opened.enter_context(socket.socket())
            client.setblocking(False)
            if client.connect_ex((address, port)) in (0, errno.EINPROGRESS):
                asked[client.fileno()] = client
                poll.register(client, select.POLLOUT)
        accepted, deadline = 0, Deadline(CONNECTION_LIMIT_S)
        while asked and (left_s := deadline.left_s) > 0:
            for descriptor, _ in poll.poll(left_s * 1000):
                poll.unregister(descriptor)
                accepted += asked.pop(descriptor).getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
        return accepted
