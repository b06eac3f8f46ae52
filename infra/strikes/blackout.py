"""Power-off of a host with its own network: the interface goes down, then all its processes are killed.

In that order, peers do not receive what a dying process still sends (the end of a connection), as when a machine loses
its power. A process that can reach the machine from outside removes the rest of it after that.
"""

from __future__ import annotations

import fcntl
import socket
import struct
from contextlib import suppress
from typing import Any

from infra.strikes.death import Death
from infra.strikes.delay import interface_of
from infra.strikes.strike import wait_until

SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 0x1  # of linux/sockios.h and linux/if.h
REQUEST = "16sh14x"  # struct ifreq: the name, the flags


class Blackout(Death):
    """Cuts the power of the machine: no interface, and no process of the mark."""

    def __init__(self, mark: str, address: str, **options: Any) -> None:
        super().__init__(mark, address, **options)
        self._interface = interface_of(address)

    def shoot(self, due_ns: int = 0) -> None:
        """Take the interface down and kill the processes that have handles, at `due_ns`."""
        wait_until(due_ns)
        with suppress(OSError):  # no CAP_NET_ADMIN (then peers see connections end), or no interface any more
            darken(self._interface)
        super().shoot(due_ns)


def darken(interface: str) -> None:
    """Take an interface down; its address stays."""
    name = interface.encode()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        _, flags = struct.unpack(REQUEST, fcntl.ioctl(asked, SIOCGIFFLAGS, struct.pack(REQUEST, name, 0)))
        fcntl.ioctl(asked, SIOCSIFFLAGS, struct.pack(REQUEST, name, flags & ~IFF_UP))
