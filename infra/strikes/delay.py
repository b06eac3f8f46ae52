"""A slow network: netem on the host's interface delays what it sends, unless the interface has other rules.

Needs `tc`, CAP_NET_ADMIN and the kernel's sch_netem.
"""

from __future__ import annotations

import errno
import fcntl
import json
import logging
import socket
import struct
import subprocess
import time

from infra import programs
from infra.processes import members
from infra.strikes.strike import NOT_YET, Proof, StrikeOnHost, wait_until
from infra.strikes.waiting_program import WaitingProgram

log = logging.getLogger(__name__)
SIOCGIFADDR = 0x8915  # of linux/sockios.h
OURS = "af7e:"  # the handle of our queueing discipline
SYSTEMS = "0:"  # of those that the kernel sets by itself, and puts back when ours goes


class Delay(StrikeOnHost):
    """Delays packets on the interface that has the host's address."""

    def __init__(self, mark: str, address: str, delay_s: float) -> None:
        """Raises `OSError` if another program has changed the queueing of the interface, or if this cannot be read."""
        self.mark, self.interface, self.delay_s = mark, interface_of(address), delay_s
        self.ports: set[int] = set()  # they stay open
        self._fired_ns = NOT_YET
        _require_free(self.interface)
        self._tc = WaitingProgram("tc", "-batch", "-")

    def refresh(self) -> bool:
        return bool(members(self.mark))

    def shoot(self, due_ns: int = 0) -> None:
        """Delay packets from when it is due; it took effect when the program that sets it has ended."""
        order = f"qdisc replace dev {self.interface} root handle {OURS} netem delay {self.delay_s * 1e3:g}ms\n"
        wait_until(due_ns)
        self._tc.act(order)
        self._fired_ns = time.time_ns()

    def fire(self) -> Proof:
        """The interface shows the delay."""
        if self._fired_ns == NOT_YET:
            self.shoot()
        undelayed = int(not self._is_seen())
        done = {"interfaces delayed": 1 - undelayed}
        return Proof(self._fired_ns, time.time_ns(), done, {"interfaces without delay": undelayed})

    def _is_seen(self) -> bool:
        try:
            return is_delayed(self.interface)
        except OSError:
            return False

    def close(self) -> None:
        """End the program that waits."""
        self._tc.close()


def _require_free(interface: str) -> None:
    """Raise `OSError` if another program has changed the queueing of an interface, or if this cannot be read."""
    if others := [handle for handle in root_handles(interface) if handle not in (OURS, SYSTEMS)]:
        raise OSError(errno.EBUSY, f"somebody else has set its queueing discipline {others[0]}", interface)


def refusal() -> str | None:
    """Why this machine cannot delay what a host sends; tried in a network of its own, which is gone at once."""
    done = _run("unshare", "--net", "tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms")
    reason = " ".join(done.stderr.split())
    return f"{reason}: a delay needs root, tc and the kernel's sch_netem" if done.returncode else None


def refusal_at(address: str) -> str | None:
    """Why this machine cannot delay what it sends from one of its addresses; changes nothing.

    Unlike `refusal`, it looks at the interface that would be delayed: another program may have set its queueing.
    """
    if reason := refusal():
        return reason
    interface = interface_of(address)
    if not interface:
        return f"{address} is not the first IPv4 address of an interface"
    try:
        _require_free(interface)
    except OSError as error:
        return f"{error.filename}: {error.strerror}"
    return None


def undelay(address: str) -> dict[str, int]:
    """Remove our delay from the interface with that address, if any has it; tells what is left, or may be."""
    interface = interface_of(address)
    if not interface or programs.find("tc") is None:  # a machine without tc has never set a delay
        return {"interfaces delayed": 0}
    try:
        if is_delayed(interface):
            _run("tc", "qdisc", "del", "dev", interface, "root")
        return {"interfaces delayed": int(is_delayed(interface))}
    except OSError as error:
        log.warning("whether %s is still delayed is not known: %s", interface, error)
        return {"interfaces perhaps delayed": 1}


def interface_of(address: str) -> str:
    """The interface whose first IPv4 address this is, empty if none has."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        return next((name for _, name in socket.if_nameindex() if _address_of(asked, name) == address), "")


def _address_of(asked: socket.socket, interface: str) -> str:
    """The first IPv4 address of an interface, empty if it has none."""
    try:
        request = fcntl.ioctl(asked, SIOCGIFADDR, struct.pack("256s", interface.encode()))
    except OSError:
        return ""
    return socket.inet_ntoa(request[20:24])


def is_delayed(interface: str) -> bool:
    """Whether it has our delay; raises as `root_handles` does."""
    return OURS in root_handles(interface)


def may_be_delayed(address: str) -> bool:
    """Whether the interface with that address has our delay, or `tc` does not tell; not on a machine without `tc`."""
    interface = interface_of(address)
    if not interface or programs.find("tc") is None:
        return False
    try:
        return is_delayed(interface)
    except OSError:
        return True


def root_handles(interface: str) -> list[str]:
    """The handles of the interface's outermost queueing disciplines; raises `OSError` when `tc` does not tell."""
    done = programs.run("tc", "-j", "qdisc", "show", "dev", interface)
    try:
        found = json.loads(done.stdout) if done.returncode == 0 else None
    except json.JSONDecodeError:
        found = None
    if found is None:
        raise OSError(errno.EIO, f"tc ended with {done.returncode}: {' '.join(done.stderr.split())}", interface)
    return [qdisc["handle"] for qdisc in found if qdisc.get("root")]


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    """What became of a command; one whose program is missing, or hangs, has failed."""
    try:
        return programs.run(*command)
    except OSError as error:
        return subprocess.CompletedProcess(command, 127, "", f"{error.filename}: {error.strerror}")
