"""Power-off of a host with its own network: the interface goes down, then all its processes are killed.

In that order, peers do not receive what a dying process still sends (the end of a connection), as when a machine loses
its power. A process that can reach the machine from outside removes the rest of it after that.
"""

from __future__ import annotations

import fcntl
import socket
import struct
import time
from contextlib import suppress
from dataclasses import replace
from typing import Any

from infra.strikes.death import PROOF_LIMIT_S, Death
from infra.strikes.delay import interface_of
from infra.strikes.strike import Proof, wait_until

SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 0x1  # of linux/sockios.h and linux/if.h
REQUEST = "16sh14x"  # struct ifreq: the name, the flags


class Blackout(Death):
    """Cuts the power of the machine: no interface, and no process of the mark."""

    def __init__(self, mark: str, address: str, **options: Any) -> None:
        self._interface = interface_of(address)
        super().__init__(mark, address, **options)

    def shoot(self, due_ns: int = 0) -> None:
        """Take the interface down and kill the processes that have handles, at `due_ns`."""
        wait_until(due_ns)
        with suppress(OSError):  # no CAP_NET_ADMIN, which the proof shows; or there is no interface any more
            darken(self._interface)
        super().shoot(due_ns)

    def fire(self, limit_s: float = PROOF_LIMIT_S) -> Proof:
        """As `Death.fire`. An interface that is still up contradicts it: peers may have seen connections end."""
        proof = super().fire(limit_s)
        left = {**proof.left, "interfaces up": int(is_up(interface_of(self.address)))}
        return replace(proof, proved_ns=time.time_ns(), left=left)


def darken(interface: str) -> None:
    """Take an interface down; its address stays."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        request = struct.pack(REQUEST, interface.encode(), _flags(asked, interface) & ~IFF_UP)
        fcntl.ioctl(asked, SIOCSIFFLAGS, request)


def is_up(interface: str) -> bool:
    """Whether there is such an interface, and it is not down."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked, suppress(OSError):
        return bool(_flags(asked, interface) & IFF_UP)
    return False


def _flags(asked: socket.socket, interface: str) -> int:
    """The flags of an interface; raises `OSError` when there is none of that name."""
    _, flags = struct.unpack(REQUEST, fcntl.ioctl(asked, SIOCGIFFLAGS, struct.pack(REQUEST, interface.encode(), 0)))
    return int(flags)
