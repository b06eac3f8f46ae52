"""Checks an existing machine for what a run needs, before anything is changed there."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import paramiko

from experiments.errors import EnvironmentFailure
from experiments.hosts import Role
from infra.cluster import Handle, Host
from infra.launch import REPOSITORY
from infra.remote.hosts import RemoteHosts
from infra.remote.json_lines import reason_of
from infra.remote.requests import SurveyMachine
from infra.remote.ssh import answered
from infra.services import gateway, spark
from infra.services.jars import cache_folder
from infra.services.jvm import find_java
from infra.ssh.logins import called, connect

LIMIT_S = 10.0


def check(hosts: RemoteHosts, handle: Handle, host: Host) -> dict[str, str | None]:
    """Check a machine; returns why it cannot inject a partition, or a delay, by that word; None where it can.

    Raises `EnvironmentFailure` for the first thing that is missing there.
    """
    name = called(handle, host)
    _require_checkout(connect(handle, host), name)
    ports = gateway.GATEWAY_PORTS if host.role is Role.GATEWAY else ()
    needed = _needed()
    found = hosts.ask(handle, host, SurveyMachine(list(needed), ports))
    for path in found["missing"]:
        raise EnvironmentFailure(f"{name} has no {path} that can be read", needed[path])
    if owner := found["owner"]:
        raise taken_by(name, owner, found["file"])
    for port in found["taken"]:
        raise EnvironmentFailure(f"port {port} is taken on {name}", "stop what listens there (ss -ltnp)")
    return found["refusals"]


def _needed() -> dict[str, str]:
    """Paths that a machine must have as this one has them, and what to do where one is missing."""
    return {
        str(spark.home() / "bin" / "spark-class"): "mount the checkout with its .venv there, at this path",
        str(find_java().launcher): "install the same Java there as here",
        str(cache_folder()): "mount the folder of jars there, at this path (AFTERSHOCK_CACHE tells where it is)",
    }


def _require_checkout(client: paramiko.SSHClient, name: str) -> None:
    """Look for Python and the agent by the system's own shell, since they are what everything else is asked of."""
    paths = [sys.executable, str(REPOSITORY / "infra" / "ssh" / "machine_agent.py")]
    words = " ".join(map(shlex.quote, paths))
    try:
        with answered(client, LIMIT_S):
            _, output, _ = client.exec_command(f'for f in {words}; do [ -r "$f" ] || echo "$f"; done', timeout=LIMIT_S)
        said = output.read().decode(errors="replace").splitlines()
    except (OSError, EOFError, paramiko.SSHException) as error:
        cause = f"{name} lets its user log in, but run nothing ({reason_of(error)})"
        raise EnvironmentFailure(cause, "see the settings of its sshd") from None
    finally:
        client.close()
    for path in paths:
        if path in said:
            remedy = "mount the checkout with its .venv there, at this path, and the Python it was made with"
            raise EnvironmentFailure(f"{name} has no {path} that can be read", remedy)


def taken_by(name: str, run_id: str, file: str | Path) -> EnvironmentFailure:
    """The machine is another run's."""
    remedy = f"wait for it, or run `aftershock clean {run_id}` where it was begun; only if that is lost, delete {file}"
    return EnvironmentFailure(f"{name} belongs to run {run_id}", f"{remedy} there")
