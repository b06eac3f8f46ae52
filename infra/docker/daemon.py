"""The Docker daemon: how to reach it, whether it is suitable, and its errors in one line."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import requests
from docker.client import DockerClient
from docker.errors import APIError, BuildError, DockerException

from experiments.errors import BadInput, EnvironmentFailure

DEFAULT_SOCKET = "/var/run/docker.sock"
ANSWER_LIMIT_S = 60
REMEDY = "see the log of dockerd, and `docker ps -a`"
START_IT = "start it (`systemctl start docker`, or `dockerd` as root), or set DOCKER_HOST"


def client() -> DockerClient:
    """This process's client of the daemon; a fork must not speak on its parent's connections."""
    return _client(os.getpid(), socket_path())


@functools.cache
def _client(_process: int, path: str) -> DockerClient:
    with asking("reach"):
        return DockerClient(base_url=f"unix://{path}", timeout=ANSWER_LIMIT_S, max_pool_size=100)


def socket_path() -> str:
    """The socket of the daemon, as DOCKER_HOST names it; raises `BadInput` for one that is not of this machine."""
    address = os.environ.get("DOCKER_HOST") or f"unix://{DEFAULT_SOCKET}"
    scheme, _, path = address.partition("://")
    if scheme != "unix":
        raise BadInput("DOCKER_HOST", address, "unix://PATH: containers share programs and files with this machine")
    return path


def check() -> None:
    """Raise `EnvironmentFailure` unless there is a daemon whose containers can be reached and share files with us."""
    if sys.platform != "linux":
        raise EnvironmentFailure(f"driver docker needs Linux, not {sys.platform}", "use driver local")
    path = Path(socket_path())
    if not path.exists():
        raise EnvironmentFailure(f"no Docker daemon: {path} does not exist", START_IT)
    if not os.access(path, os.R_OK | os.W_OK):
        raise EnvironmentFailure(f"{path} may not be used by this user", "run as root, or join the group of that file")
    with asking("ask"):
        facts = client().info()
    if any("rootless" in option for option in facts.get("SecurityOptions") or []):
        raise EnvironmentFailure("the Docker daemon is rootless: its networks are out of reach", "use one run by root")
    if facts["KernelVersion"] != os.uname().release:
        raise EnvironmentFailure(
            f"the Docker daemon runs on another kernel ({facts['KernelVersion']}), in a virtual machine perhaps",
            "use a daemon of this machine itself",
        )


@contextmanager
def asking(what: str) -> Iterator[None]:
    """Raise what goes wrong with the daemon as `EnvironmentFailure`: it was to `what`."""
    try:
        yield
    except (APIError, BuildError) as error:
        why = error.explanation if isinstance(error, APIError) else error.msg
        raise EnvironmentFailure(f"the Docker daemon could not {what} ({_line(why)})", REMEDY) from None
    except (DockerException, requests.exceptions.RequestException) as error:
        cause = f"the Docker daemon at {socket_path()} does not answer ({_line(error)})"
        raise EnvironmentFailure(cause, START_IT) from None


def _line(error: object) -> str:
    return " ".join(str(error).split())[:300]
