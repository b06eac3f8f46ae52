"""Powers off a host that is a network namespace: takes its network down and kills all its processes.

It is done from outside, since nothing is left inside that could. The network goes first: a machine without power sends
no farewell, so others must not hear that its connections end. Needs root.
"""

from __future__ import annotations

import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable

from infra import namespaces
from infra.cluster import Host
from infra.process_handles import ProcessHandles
from infra.processes import MACHINE, MARK, carries, members, take_precedence
from infra.remote import ssh
from infra.strikes.strike import Proof, Strike, wait_until

PROOF_LIMIT_S = 5.0
COMMAND_LIMIT_S = 5.0
ANSWER_LIMIT_S = 1.0


class NetnsPowerOff(Strike):
    """Ends a namespace and all that lives in it or carries the host's mark."""

    def __init__(self, token: str, host: Host, on_cut: Callable[[], None]) -> None:
        """Prepare the power-off of a host; `on_cut` is called when its interface is down."""
        self.token, self.host, self._on_cut = token, host, on_cut
        self._fired_ns = 0
        self._thread: threading.Thread | None = None
        self._ip = subprocess.Popen(
            namespaces.inside(token, host.name, namespaces.ip_program(), "-batch", "-"),
            stdin=subprocess.PIPE,
            text=True,
        )
        take_precedence(self._ip.pid)
        self._processes = HostProcesses(token, host.name, spared=self._ip.pid)
        self.refresh()

    def refresh(self) -> bool:
        self._processes.scan()
        return bool(members(f"{self.token}/{self.host.name}"))

    def shoot(self, due_ns: int = 0) -> None:
        """Strike when it is due, in a thread: other hosts may be due at the same moment."""
        self._thread = self._begin(due_ns)

    def _begin(self, due_ns: int) -> threading.Thread:
        thread = threading.Thread(target=self._strike, args=(due_ns,), daemon=True)
        thread.start()
        return thread

    def _strike(self, due_ns: int) -> None:
        take_precedence()
        self._fired_ns = wait_until(due_ns)
        self._ip.communicate(f"link set {namespaces.INTERFACE} down\n", COMMAND_LIMIT_S)
        self._processes.signal(signal.SIGKILL)
        self._on_cut()

    def fire(self, limit_s: float = PROOF_LIMIT_S) -> Proof:
        """Kill until nothing lives there, remove the interface, and look from here whether anything answers."""
        (self._thread or self._begin(due_ns=0)).join()
        survivors = self._processes.kill(limit_s)
        done = {"processes killed": len(self._processes)}
        namespaces.unplug(self.token, self.host.name)
        addresses = namespaces.addresses_of(self.token, self.host.name)
        left = {"survivors": len(survivors), "addresses": len(addresses), "answers": int(_answers(self.host.address))}
        self._processes.close()
        return Proof(self._fired_ns, time.time_ns(), done, left)

    def close(self) -> None:
        self._ip.communicate()  # it ends with its input
        self._processes.close()


class HostProcesses(ProcessHandles):
    """All processes in the namespace of a host, and those that carry its mark or that of its machine."""

    def __init__(self, token: str, host: str, spared: int) -> None:
        """All but the one that is spared, which is ours."""
        super().__init__(f"{token}/{host}")
        self._token, self._host, self._spared = token, host, spared
        self._machine = f"{token}/{MACHINE}/{host}"

    def find(self) -> list[int]:
        found = {*members(self.mark), *members(self._machine), *namespaces.processes_of(self._token, self._host)}
        return sorted(found - {self._spared})

    def belongs(self, pid: int) -> bool:
        marked = any(carries(pid, f"{MARK}={mark}".encode()) for mark in (self.mark, self._machine))
        return marked or namespaces.lives_in(pid, self._token, self._host)


def _answers(address: str) -> bool:
    """Whether anything is heard from an address, and be it a refusal."""
    try:
        socket.create_connection((address, ssh.PORT), timeout=ANSWER_LIMIT_S).close()
    except ConnectionRefusedError:
        return True
    except OSError:
        return False
    return True
