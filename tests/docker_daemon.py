"""A Docker daemon for tests: the machine's own, or else one that is started for them and ended after them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from experiments.errors import AftershockError, EnvironmentFailure
from experiments.locks import locked
from infra.docker import daemon
from infra.docker.creation import RATION

RATION_US = 900_000  # of each second
PATIENCE_S = 3600.0
LOCK = Path(tempfile.gettempdir()) / "aftershock-dockerd.lock"  # one at a time: they share what real time there is
START_LIMIT_S, STOP_LIMIT_S, PAUSE_S = 120.0, 60.0, 0.1


@contextmanager
def docker_daemon() -> Iterator[None]:
    """Sets DOCKER_HOST to a daemon of our own where none can be used; raises `AftershockError` where none can be."""
    try:
        daemon.check()
    except AftershockError as unusable:
        with _own(unusable):
            yield
    else:
        yield


@contextmanager
def _own(unusable: AftershockError) -> Iterator[None]:
    program = shutil.which("dockerd", path=f"{os.environ['PATH']}:/usr/local/sbin:/usr/sbin:/sbin")
    if os.geteuid() or program is None:
        raise EnvironmentFailure(str(unusable), "or run the tests as root with Debian's docker.io installed")
    with locked(LOCK, "tests with a Docker daemon of their own", limit_s=PATIENCE_S):
        yield from _ours(program)


def _ours(program: str) -> Iterator[None]:
    folder = Path(tempfile.mkdtemp(prefix="aftershock-dockerd-"))
    before = os.environ.get("DOCKER_HOST")
    process = _start(program, folder)
    try:
        os.environ["DOCKER_HOST"] = f"unix://{folder}/docker.sock"
        _wait_until_it_answers(process, folder / "log")
        with _real_time():
            yield
    finally:
        _end(process)
        os.environ.pop("DOCKER_HOST")
        if before is not None:
            os.environ["DOCKER_HOST"] = before
        shutil.rmtree(folder, ignore_errors=True)


def _start(program: str, folder: Path) -> subprocess.Popen[bytes]:
    """It touches nothing of the machine's: neither its firewall nor its forwarding, and makes no network unasked."""
    places = {"data-root": folder / "data", "exec-root": folder / "exec", "pidfile": folder / "pid"}
    options = [f"--{name}={path}" for name, path in places.items()]
    options += [f"--host=unix://{folder}/docker.sock", "--bridge=none", "--userland-proxy=false"]
    options += ["--iptables=false", "--ip6tables=false", "--ip-forward=false", "--ip-masq=false"]
    with (folder / "log").open("wb") as log:
        return subprocess.Popen([program, *options], stdout=log, stderr=log, start_new_session=True)


@contextmanager
def _real_time() -> Iterator[None]:
    """Give the daemon's containers real time, if the kernel rations it and they have none yet."""
    if not (RATION.parent.parent / RATION.name).exists():
        yield
        return
    RATION.parent.mkdir(exist_ok=True)
    before = RATION.read_text()
    RATION.write_text(before if int(before) else str(RATION_US))
    yield
    RATION.write_text(before)


def _wait_until_it_answers(process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_LIMIT_S
    while process.poll() is None and time.monotonic() < deadline:
        try:
            return daemon.check()
        except AftershockError:
            time.sleep(PAUSE_S)
    last = (log.read_text(errors="replace").strip().splitlines() or ["it said nothing"])[-1]
    raise EnvironmentFailure(f"dockerd does not run here ({last[-300:]})", "see what it needs with `dockerd` as root")


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ask it to end, and kill it and its containerd when it does not."""
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(STOP_LIMIT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
