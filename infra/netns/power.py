"""Powers off a host that is a network namespace: takes its network down and kills all its processes.

It is done from outside, since nothing is left inside that could. The network goes first: a machine without power sends
no farewell, so others must not hear that its connections end. Needs root.
"""

from __future__ import annotations

import errno
import signal
import socket
import time
from collections.abc import Callable
from concurrent.futures import Future

from infra import namespaces
from infra.cluster import Host
from infra.process_handles import ProcessHandles
from infra.processes import MACHINE, MARK, carries, members
from infra.remote import ssh
from infra.strikes.strike import Proof, Strike, closed_on_failure, wait_until
from infra.strikes.waiting_program import WaitingProgram
from infra.threads import started_thread

PROOF_LIMIT_S = 5.0
ANSWER_LIMIT_S = 1.0
_WAITING = set[int]()  # the processes in namespaces that wait for a power-off, which this process prepared


class NetnsPowerOff(Strike):
    """Ends a namespace and all that lives in it or carries the host's mark."""

    def __init__(self, token: str, host: Host, on_cut: Callable[[], None]) -> None:
        """Prepare the power-off of a host; `on_cut` is called when its interface is down."""
        self.token, self.host, self._on_cut = token, host, on_cut
        self._fired_ns = 0
        self._thread = started_thread()  # of its own: other hosts may be due at the same moment
        self._struck: Future[None] | None = None
        self._processes = HostProcesses(token, host.name)
        ip = namespaces.inside(token, host.name, namespaces.ip_program(), "-batch", "-")
        self._ip = WaitingProgram(*ip, errors=None)
        _WAITING.add(self._ip.pid)
        with closed_on_failure(self):
            self.refresh()

    def refresh(self) -> bool:
        self._processes.scan()
        return bool(members(f"{self.token}/{self.host.name}"))

    def shoot(self, due_ns: int = 0) -> None:
        """Have its thread strike when it is due."""
        self._struck = self._thread.submit(self._strike, due_ns)

    def _strike(self, due_ns: int) -> None:
        self._fired_ns = wait_until(due_ns)
        self._ip.act(f"link set {namespaces.INTERFACE} down\n")
        self._processes.signal(signal.SIGKILL)
        self._on_cut()

    def fire(self) -> Proof:
        """Kill until nothing lives there, remove the interface, and look from here whether anything answers.

        An interface that the strike did not take down contradicts it: peers may have seen connections end.
        """
        with closed_on_failure(self):
            (self._struck or self._thread.submit(self._strike, 0)).result()
            still_up = bool(namespaces.addresses_of(self.token, self.host.name))
            survivors = self._processes.kill(PROOF_LIMIT_S)
            done = {"processes killed": len(self._processes)}
            namespaces.unplug(self.token, self.host.name)
            addresses = namespaces.addresses_of(self.token, self.host.name)
            left = {"survivors": len(survivors), "interfaces up": int(still_up), "addresses": len(addresses)}
            left["answers"] = int(_answers(self.host.address))
        self.close()
        return Proof(self._fired_ns, time.time_ns(), done, left)

    def close(self) -> None:
        self._thread.shutdown()
        self._ip.close()
        _WAITING.discard(self._ip.pid)
        self._processes.close()


class HostProcesses(ProcessHandles):
    """All processes that carry the mark of a host or of its machine, and those that live in its namespace.

    Left out are those that wait for a power-off: a further one of this host may be prepared already.
    """

    def __init__(self, token: str, host: str) -> None:
        super().__init__(f"{token}/{host}")
        self._token, self._host = token, host
        self._machine = f"{token}/{MACHINE}/{host}"

    def find(self) -> list[int]:
        living = (pid for pid in namespaces.processes_of(self._token, self._host) if pid not in _WAITING)
        return sorted({*members(self.mark), *members(self._machine), *living})

    def belongs(self, pid: int) -> bool:
        marked = any(carries(pid, f"{MARK}={mark}".encode()) for mark in (self.mark, self._machine))
        return marked or (namespaces.lives_in(pid, self._token, self._host) and pid not in _WAITING)


def _answers(address: str) -> bool:
    """Whether anything is heard from an address, and be it a refusal; raises `OSError` without a socket to ask with."""
    with socket.socket() as asking:
        asking.settimeout(ANSWER_LIMIT_S)
        return asking.connect_ex((address, ssh.PORT)) in (0, errno.ECONNREFUSED)
