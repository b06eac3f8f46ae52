"""A served Airflow with a home of its own, or its API server alone, and requests to its API."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from aftershock.airflow import environment
from aftershock.run import steps
from results.runs import store
from tests.e2e.web import free_port, request

PROGRAM = Path(sys.executable).with_name("aftershock")
LIMIT_S, UP_LIMIT_S = 900, 240
ENDED = ("success", "failed")


class Server(NamedTuple):
    """Where a served Airflow listens, and the process that serves it."""

    address: str
    process: subprocess.Popen[str] | None  # None if who made it has nothing to do with its end

    def token(self) -> str:
        credentials = {"username": environment.ADMIN, "password": environment.admin_password()}
        return self.call("/auth/token", credentials, token="")["access_token"]

    def call(self, path: str, body: Any = None, method: str | None = None, token: str | None = None) -> Any:
        """Ask as admin, unless another token is given; a body makes it a POST unless a method is given."""
        token = self.token() if token is None else token
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        data = None if body is None else json.dumps(body).encode()
        asked = urllib.request.Request(self.address + path, data, headers, method=method)
        with urllib.request.urlopen(asked, timeout=60) as answer:
            return json.load(answer)

    def switch_on(self, dag_id: str) -> None:
        """Wait until the DAG is known, and let it run."""
        wait(f"DAG {dag_id}", lambda: request(self.address, f"/api/v2/dags/{dag_id}", self.token())[0] == 200)
        self.call(f"/api/v2/dags/{dag_id}", {"is_paused": False}, "PATCH")

    def trigger(self, dag_id: str, conf: dict[str, Any]) -> str:
        """Start a DAG run; returns its id."""
        self.switch_on(dag_id)
        return self.call(f"/api/v2/dags/{dag_id}/dagRuns", {"logical_date": None, "conf": conf})["dag_run_id"]

    def state_at_its_end(self, dag_id: str, dag_run: str) -> str:
        def state() -> str | None:
            found = self.call(f"/api/v2/dags/{dag_id}/dagRuns/{dag_run}")["state"]
            return found if found in ENDED else None

        return wait(f"DAG run {dag_run}", state)


def wait(what: str, met: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + LIMIT_S
    while not (found := met()):
        assert time.monotonic() < deadline, f"still waiting for {what}"
        time.sleep(0.5)
    return found


@contextmanager
def home_of_its_own(home: Path, **variables: str) -> Iterator[None]:
    """Results and Airflow are below this folder, and no setting of another Airflow counts; `variables` are set, too."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("AIRFLOW_")]:
            patch.delenv(name)
        for name, value in {"AFTERSHOCK_HOME": str(home), **variables}.items():
            patch.setenv(name, value)
        yield


@contextmanager
def served_airflow(home: Path, **variables: str) -> Iterator[Server]:
    with home_of_its_own(home, **variables):
        port = free_port()
        process = subprocess.Popen(
            [PROGRAM, "serve", "--port", str(port)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        try:
            while line := process.stdout.readline():
                if line.startswith("Airflow: http"):
                    break
            assert line, "Airflow did not come up"
            yield Server(f"http://127.0.0.1:{port}", process)
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=120)
            for live in store.home().glob("live/*/cluster/handle.json"):  # a run that a failing test has left
                steps.teardown(live.parent.parent.name, "left by its test")


@contextmanager
def api_server(home: Path) -> Iterator[str]:
    """The address of an API server of its own over this home, which the environment names; it runs no DAG."""
    port = free_port()
    variables = environment.environment(port)
    environment.ensure_database(variables)
    log_path = home / "api-server.log"
    with log_path.open("w") as log:
        command = [environment.airflow_program(), "api-server"]
        process = subprocess.Popen(command, env=variables, stdout=log, stderr=log, start_new_session=True)
        try:
            _wait_until_healthy(port, process, log_path)
            yield f"http://127.0.0.1:{port}"
        finally:
            _stop(process)


def _wait_until_healthy(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + UP_LIMIT_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if request(f"http://127.0.0.1:{port}", "/api/v2/monitor/health")[0] == 200:
                return
        except OSError:
            pass
        time.sleep(0.5)
    pytest.fail(f"the API server did not come up:\n{log.read_text()[-3000:]}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(timeout=30)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue
