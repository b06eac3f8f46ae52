"""Services of one host as processes of this machine: their environment, start, end and search.

A service is every process with the mark TOKEN/HOST/SERVICE in its environment. The cluster's root is in there, too, so
that what a dead run left tells where it belongs. Only the standard library is needed here: the far end of an SSH
connection starts fast.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from experiments.waiting import poll_while
from infra.process_handles import ProcessHandles, kill_all
from infra.processes import MARK, ROOT, marks, members

REPOSITORY = Path(__file__).parent.parent
# What executors run as pyspark's daemon: a module by this name, in this folder.
GUARD, DAEMON = REPOSITORY / "spark_jobs" / "guard", "aftershock_guard"
PYTHONPATH = f"{REPOSITORY}{os.pathsep}{GUARD}"
BROKER_PORT, CONTROLLER_PORT, MASTER_PORT = 9092, 9093, 7077
PORTS = {"broker": frozenset({BROKER_PORT, CONTROLLER_PORT}), "spark-master": frozenset({MASTER_PORT})}
STOP_POLL_S = 0.1
# What a supervisor (`infra.services.supervisor`) understands, and the last part of its program's mark.
HOLD, GO_ON, PROGRAM = signal.SIGUSR1, signal.SIGUSR2, "program"
NEVER_WORKS = os.EX_CONFIG  # the exit code of a program that no further start will help
INHERITED = ("PATH", "HOME", "LANG", "TMPDIR", "AFTERSHOCK_CACHE")


def environment(mark: str, root: str | Path) -> dict[str, str]:
    """What every process of a cluster gets; of this process's own environment only what it cannot do without."""
    return {
        **{name: os.environ[name] for name in INHERITED if name in os.environ},
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": PYTHONPATH,
        "PYTHONUNBUFFERED": "1",
        ROOT: str(root),
        MARK: mark,
    }


def for_the_controller(token: str, root: str | Path, name: str) -> dict[str, str]:
    """The marks of a program that the controller runs for a cluster: it ends when the cluster is removed."""
    return {ROOT: str(root), MARK: f"{token}/controller/{name}"}


def spawn(command: Sequence[str], folder: Path, log: Path, variables: Mapping[str, str]) -> int:
    """Start a program in a session of its own, its output appended to `log`; returns its process id."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    return process.pid


def stop(mark: str, limit_s: float) -> None:
    """Ask a service's first process to end, and kill after `limit_s` what is left; raises as `kill_all`."""
    tell(mark, signal.SIGTERM)
    poll_while(lambda: members(mark), interval_s=STOP_POLL_S, limit_s=limit_s)
    kill_all(ProcessHandles(mark))


def tell(mark: str, number: signal.Signals) -> None:
    """Send a signal to a service's first process only, which is the one that was spawned."""
    processes = ProcessHandles(mark)
    try:
        processes.signal(number, list(filter(leads_session, processes.scan())))
    finally:
        processes.close()


def running(host_mark: str) -> set[str]:
    """Names of the services of the host TOKEN/HOST that have a live process."""
    return {mark.removeprefix(f"{host_mark}/") for mark in marks(f"{host_mark}/")}


def leads_session(pid: int) -> bool:
    """Whether a process is the first one of a service: that was started in a session of its own."""
    try:
        return os.getsid(pid) == pid
    except ProcessLookupError:
        return False
