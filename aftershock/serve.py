"""Airflow on one machine: its four components as children of this process, ended together.

`airflow standalone` would do almost the same, but its log servers listen on every address of the machine.
"""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path

from aftershock import signals
from aftershock.airflow_environment import (
    ADMIN,
    API_PORT,
    admin_password,
    airflow_home,
    airflow_program,
    ensure_database,
    environment,
    password_file,
)
from experiments.errors import EnvironmentFailure

HOST = "127.0.0.1"
READY_S = 120.0
GRACE_S = 15.0
COMPONENTS = {
    "api-server": ["--host", HOST],
    "scheduler": ["--skip-serve-logs"],
    "dag-processor": [],
    "triggerer": ["--skip-serve-logs"],
}


def serve(port: int = API_PORT) -> None:
    """Run Airflow on 127.0.0.1:`port` until Ctrl-C or a termination signal; its logs are in `airflow/logs/`.

    Raises `EnvironmentFailure` when the port is taken or a component ends by itself.
    """
    _check_free(port)
    variables = environment(port)
    ensure_database(variables)
    admin_password()
    children: dict[str, subprocess.Popen[bytes]] = {}
    try:
        with signals.interrupting(), suppress(KeyboardInterrupt):
            print("starting Airflow ...", file=sys.stderr, flush=True)
            for name, options in COMPONENTS.items():
                where = ["--port", str(port)] if name == "api-server" else []
                children[name] = _start(name, [*options, *where], variables)
            _wait_until_ready(children, port)
            print(f"Airflow: http://{HOST}:{port}  user: {ADMIN}  password: in {password_file()}", flush=True)
            _watch(children)
    finally:
        _stop(list(children.values()))


def _check_free(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise EnvironmentFailure(f"port {port} of {HOST} cannot be used ({reason})", "choose another port") from None


def _log(name: str) -> Path:
    return airflow_home() / "logs" / f"{name}.log"


def _start(name: str, options: list[str], variables: dict[str, str]) -> subprocess.Popen[bytes]:
    _log(name).parent.mkdir(exist_ok=True)
    with _log(name).open("wb") as log:
        return subprocess.Popen(
            [airflow_program(), name, *options],
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def _wait_until_ready(children: dict[str, subprocess.Popen[bytes]], port: int) -> None:
    deadline = time.monotonic() + READY_S
    while not _answers(f"http://{HOST}:{port}/api/v2/monitor/health"):
        _check_alive(children)
        if time.monotonic() > deadline:
            raise EnvironmentFailure(f"Airflow did not answer in {READY_S:g} s", f"see {_log('api-server')}")
        time.sleep(0.5)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            return response.status == 200
    except (urllib.error.URLError, OSError):
        return False


def _watch(children: dict[str, subprocess.Popen[bytes]]) -> None:
    while True:
        _check_alive(children)
        time.sleep(1)


def _check_alive(children: dict[str, subprocess.Popen[bytes]]) -> None:
    for name, child in children.items():
        if child.poll() is not None:
            raise EnvironmentFailure(f"Airflow's {name} ended with status {child.returncode}", f"see {_log(name)}")


def _stop(children: list[subprocess.Popen[bytes]]) -> None:
    with signals.ignored():
        for child in children:
            signals.signal_group(child.pid, signal.SIGTERM)
        deadline = time.monotonic() + GRACE_S
        for child in children:
            with suppress(subprocess.TimeoutExpired):
                child.wait(max(0.1, deadline - time.monotonic()))
            signals.signal_group(child.pid, signal.SIGKILL)
            child.wait()
