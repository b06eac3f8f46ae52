"""Airflow on one machine: its four components as children of this process, ended together.

`airflow standalone` would do almost the same, but its log servers listen on every address of the machine.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from aftershock.airflow import leftover_files, signals
from aftershock.airflow.environment import (
    API_HOST,
    API_PORT,
    admin_password,
    airflow_home,
    airflow_program,
    ensure_database,
    environment,
)
from aftershock.airflow.greeting import greet
from experiments.errors import EnvironmentFailure
from experiments.locks import locked_if_free
from experiments.waiting import poll_while, wait_for
from results.runs.home import home

READY_S, READY_POLL_S = 300.0, 0.5
GRACE_S = 15.0
POLL_S = 0.1
STABLE_S = 30.0  # a component that dies sooner cannot work here
COMPONENTS = {
    "api-server": ["--host", API_HOST],
    "scheduler": ["--skip-serve-logs"],
    "dag-processor": [],
    "triggerer": ["--skip-serve-logs"],
}
SERVER = ".server"  # in Airflow's home: locked by the one `serve` that runs there, and says which that is
FIRST = "api-server"  # alone on the cores until it answers: the others need it no sooner, and their users neither


def serve(port: int = API_PORT) -> None:
    """Run Airflow on 127.0.0.1:`port` until Ctrl-C or a termination signal; its logs are in `airflow/logs/`.

    Raises `EnvironmentFailure` when another one runs in this home, the port is taken or a component does not stay up.
    """
    with _alone(port):
        _check_free(port)
        variables = environment(port)
        ensure_database(variables)
        admin_password()
        _serve(_Components(variables, port), port)


@contextmanager
def _alone(port: int) -> Iterator[None]:
    """Within, no other `serve` runs in this home: two schedulers would share the database, the pool and the logs."""
    lock = airflow_home() / SERVER
    with locked_if_free(lock, make=True) as is_alone:
        if not is_alone:
            cause = f"`aftershock serve` already runs for {home()} ({lock.read_text()})"
            raise EnvironmentFailure(cause, "use its pages, or end it; AFTERSHOCK_HOME chooses another folder")
        lock.write_text(f"process {os.getpid()}, http://{API_HOST}:{port}")
        yield


def _serve(components: _Components, port: int) -> None:
    with leftover_files.serving():
        try:
            with signals.interrupting(), suppress(KeyboardInterrupt):
                print("starting Airflow ...", file=sys.stderr, flush=True)
                components.start(FIRST)
                _wait_until_ready(components, port)
                components.start(*COMPONENTS)
                greet(f"http://{API_HOST}:{port}")
                while True:
                    components.revive()
                    time.sleep(1)
        finally:
            with suppress(OSError):  # the terminal may be closed
                print("stopping Airflow ...", file=sys.stderr, flush=True)
            components.stop()


def _check_free(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((API_HOST, port))
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise EnvironmentFailure(
                f"port {port} of {API_HOST} cannot be used ({reason})", "choose another port"
            ) from None


def _log(name: str) -> Path:
    return airflow_home() / "logs" / f"{name}.log"


class _Components:
    """The processes of Airflow's components; each leads a group of its own, which a dead leader may leave behind.

    No dead leader is reaped before all groups have ended: until then, the kernel cannot give the group's id to others.
    """

    def __init__(self, variables: dict[str, str], port: int) -> None:
        self.variables, self.port = variables, port
        self.running: dict[str, tuple[subprocess.Popen[bytes], float]] = {}
        self.leaders: list[subprocess.Popen[bytes]] = []

    def start(self, *names: str) -> None:
        """Start those of these components that have not been started yet."""
        for name in names:
            if name not in self.running:
                self._start(name)

    def _start(self, name: str) -> None:
        where = ["--port", str(self.port)] if name == "api-server" else []
        _log(name).parent.mkdir(exist_ok=True)
        with _log(name).open("ab") as log:
            child = subprocess.Popen(
                [airflow_program(), name, *COMPONENTS[name], *where],
                env=self.variables,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=signals.end_with_parent,
            )
        self.running[name] = child, time.monotonic()
        self.leaders.append(child)

    def revive(self) -> None:
        """Start what has died again: the runs go on. Raises `EnvironmentFailure` for what does not stay up."""
        for name, (child, started) in list(self.running.items()):
            status = signals.status_of(child)
            if status is None:
                continue
            if time.monotonic() - started < STABLE_S:
                raise EnvironmentFailure(f"Airflow's {name} ended with status {status}", f"see {_log(name)}")
            print(f"Airflow's {name} died (status {status}): starting it again", file=sys.stderr, flush=True)
            self._start(name)

    def stop(self) -> None:
        with signals.ignored():
            for leader in self.leaders:
                signals.signal_group(leader, signal.SIGTERM)
            poll_while(self._running, interval_s=POLL_S, limit_s=GRACE_S)
            for leader in self.leaders:
                signals.signal_group(leader, signal.SIGKILL)
            for leader in self.leaders:
                leader.wait()

    def _running(self) -> bool:
        return any(signals.status_of(child) is None for child, _ in self.running.values())


def _wait_until_ready(components: _Components, port: int) -> None:
    def ready() -> bool:
        if _answers(f"http://{API_HOST}:{port}/api/v2/monitor/health"):
            return True
        components.revive()
        return False

    cause, remedy = f"Airflow did not answer in {READY_S:g} s", f"see {_log('api-server')}"
    wait_for(ready, cause, remedy, interval_s=READY_POLL_S, limit_s=READY_S)


def _answers(url: str) -> bool:
    directly = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with directly.open(url, timeout=5) as response:
            return bool(response.status == 200)
    except (urllib.error.URLError, OSError):
        return False
