"""The processes of a host, found by an ownership mark in their environment.

A host of the local driver is every process that carries its mark. The mark is inherited through fork and
exec, so it also finds what a process group or a session misses (pyspark's daemon makes a group of its own).
A process of another user never belongs to a host, even if it carries the mark.

Functions that read /proc raise `OSError` when this process has no descriptors or no memory left.
"""

from __future__ import annotations

import errno
import os
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from experiments.users import GONE_OR_HIDDEN, user_of

MARK, ROOT = "AFTERSHOCK_HOST", "AFTERSHOCK_ROOT"  # variables: whose a process is, and where its cluster has its root
MACHINE = "machine"  # in the place of a host in a mark: what serves the machine, and outlives a kill of the host
LISTEN = "0A"
STOPPED = frozenset("tT")  # states in /proc/PID/stat
STILL = STOPPED | frozenset("DXZ")  # held in the kernel, which a stopped thread does not leave, or dead
STARTED, VSIZE, ENV_END = 19, 20, 48  # positions in /proc/PID/stat, from the state on
FIRST_IN_LINE = -20
EXEC_RETRIES, EXEC_PAUSE_S = 1000, 0.0005


@dataclass(frozen=True)
class Usage:
    """CPU time since start [s] and resident memory [bytes], summed over live processes."""

    cpu_s: float
    rss_bytes: int


class Marked(NamedTuple):
    """A live process with a mark: its id, its real user, the mark, and the root that it names (empty without one)."""

    pid: int
    uid: int
    mark: str
    root: str


def members(mark: str) -> list[int]:
    """Ids of this user's live processes (zombies excepted) that carry the mark, or a mark below it."""
    needle = f"{MARK}={mark}".encode()
    return [pid for pid in _pids() if carries(pid, needle)]


def marks(prefix: str) -> set[str]:
    """The distinct marks below a prefix that live processes of this user carry."""
    return {found.mark for found in owners() if found.mark.startswith(prefix) and found.uid == os.geteuid()}


def owners() -> list[Marked]:
    """Every live process with a mark, of any user, as far as this user may look."""
    return [found for pid in _pids() if (found := marked(pid))]


def marked(pid: int) -> Marked | None:
    """Whose a process is; None for one that is dead or carries no mark."""
    variables = dict(entry.partition("=")[::2] for entry in map(os.fsdecode, _environment(pid)))
    if MARK not in variables or not _alive(pid) or (uid := user_of(pid)) is None:
        return None
    return Marked(pid, uid, variables[MARK], variables.get(ROOT, ""))


def take_precedence(pid: int = 0) -> None:
    """Ask for precedence over the load that is measured, so that kills are on time; without the right, go on.

    For this thread, or for a process of ours. What that starts does not inherit it. A kernel that rations real time by
    cgroup gives a container none. Then the lowest nice value is the next best.
    """
    try:
        os.sched_setscheduler(pid, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    except PermissionError:
        with suppress(PermissionError):
            os.sched_setscheduler(pid, os.SCHED_OTHER | os.SCHED_RESET_ON_FORK, os.sched_param(0))
            os.setpriority(os.PRIO_PROCESS, pid, FIRST_IN_LINE)


def has_precedence(thread: int = 0) -> bool:
    """Whether a thread, by its native id (0: this one), has taken precedence, as far as it had the right."""
    return bool(os.sched_getscheduler(thread) & os.SCHED_RESET_ON_FORK)  # which nothing else here sets


def listening(address: str) -> list[int]:
    """TCP ports open for listening on exactly this IPv4 address."""
    packed = "".join(f"{int(part):02X}" for part in reversed(address.split(".")))
    mapped = f"0000000000000000FFFF0000{packed}"
    return sorted(port for host, port in _listeners() if host in (packed, mapped))


def subnets_in_use() -> set[int]:
    """The N of each 127.0.N.0/24 on which a process listens, of whatever user."""
    return {int(host[-6:-4], 16) for host, _ in _listeners() if host.endswith("007F")}


def _listeners() -> list[tuple[str, int]]:
    """Each address as the kernel writes it, its last byte first, and each TCP port on which somebody listens there."""
    rows = [row.split() for name in ("tcp", "tcp6") for row in _lines(Path("/proc/net") / name)[1:]]
    local = [row[1].split(":") for row in rows if row[3] == LISTEN]
    return [(host, int(port, 16)) for host, port in local]


def is_taken(address: str, port: int) -> bool:
    """Whether somebody listens on that TCP port already; raises `OSError` for an address that is not this machine's."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return True
            raise
    return False


def usage(pids: list[int]) -> Usage:
    """Resources that these processes have used and hold now."""
    ticks, page = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
    cpu, rss = 0, 0
    for pid in pids:
        fields = _stat(pid)
        if fields:
            cpu += int(fields[11]) + int(fields[12])
            rss += int(fields[21]) * page
    return Usage(cpu / ticks, rss)


def machine_busy_s() -> float:
    """CPU time [s] that this machine has been busy since it started, over all its cores, or was denied by its host."""
    _name, user, nice, system, _idle, _waiting, irq, soft_irq, steal, *_ = (
        Path("/proc/stat").read_text().partition("\n")[0].split()
    )
    return sum(map(int, (user, nice, system, irq, soft_irq, steal))) / os.sysconf("SC_CLK_TCK")


def _pids() -> Iterator[int]:
    own = os.getpid()
    return (int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != own)


def _environment(pid: int) -> list[bytes]:
    """The environment of a process; a process amid an exec shows none for a moment, so that one is awaited.

    It may end its exec between the look at its environment and the look at its state: only a second look that shows
    none, too, tells that there is none.
    """
    path, settled = Path(f"/proc/{pid}/environ"), False
    for _ in range(EXEC_RETRIES):
        try:
            entries = path.read_bytes()
        except GONE_OR_HIDDEN:
            return []
        if entries:
            return entries.split(b"\0")
        if not _amid_exec(pid):
            if settled:
                return []
            settled = True
        else:
            time.sleep(EXEC_PAUSE_S)
    return []


def _amid_exec(pid: int) -> bool:
    """Whether the process has memory (a kernel thread and a zombie have none) that holds no environment yet."""
    fields = _stat(pid)
    return bool(fields) and int(fields[VSIZE]) > 0 and int(fields[ENV_END]) == 0


def carries(pid: int, needle: bytes) -> bool:
    """Whether a live process of this user has that entry in its environment, or one below it."""
    entries = _environment(pid)
    found = any(e == needle or e.startswith(needle + b"/") for e in entries)
    return found and _alive(pid) and user_of(pid) == os.geteuid()


def is_stopped(pid: int) -> bool | None:
    """Whether a process has been stopped; None when it is gone."""
    fields = _stat(pid)
    return fields[0] in STOPPED if fields else None


def start_of(pid: int) -> int | None:
    """When a live process began [clock ticks since the machine's start], which tells it from others with its id."""
    return int(_stat(pid)[STARTED]) if _alive(pid) else None


def stands_still(pid: int) -> bool:
    """Whether no thread of a process that was sent SIGSTOP runs any more."""
    states = (_stat(f"{pid}/task/{thread}")[:1] for thread in _threads(pid))
    return all(state[0] in STILL for state in states if state)


def thread_times(pid: int) -> dict[str, float]:
    """CPU time [s] of each thread of a process, by thread id; in whole ticks."""
    found = ((thread, _stat(f"{pid}/task/{thread}")) for thread in _threads(pid))
    tick_s = 1 / os.sysconf("SC_CLK_TCK")
    return {thread: (int(fields[11]) + int(fields[12])) * tick_s for thread, fields in found if fields}


def _threads(pid: int) -> list[str]:
    try:
        return os.listdir(f"/proc/{pid}/task")
    except GONE_OR_HIDDEN:
        return []


def _alive(pid: int) -> bool:
    fields = _stat(pid)
    return bool(fields) and fields[0] not in ("Z", "X")


def _stat(which: int | str) -> list[str]:
    """Fields of /proc/PID/stat, or of /proc/PID/task/TID/stat, after the command name: state first.

    The name may hold anything, such as what ends a line of text; only the last parenthesis surely follows it.
    """
    try:
        stat = Path(f"/proc/{which}/stat").read_bytes()
    except GONE_OR_HIDDEN:
        return []
    return stat.rpartition(b")")[2].decode().split()


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(errors="replace").splitlines()
    except GONE_OR_HIDDEN:
        return []
