"""Where the processes of a run listen, as the kernel's tables have it: TCP, UDP, and sockets with a path or a name."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import ip_address
from pathlib import Path

from infra.processes import LISTEN, members

UNCONNECTED = "07"  # of a UDP socket: it takes what anybody sends
ACCEPTS = 0x10000  # a flag of a unix socket that somebody can connect to
STREAM, DATAGRAM, PACKETS = 1, 2, 5  # types of unix sockets


class Kind(StrEnum):
    TCP = "tcp"
    UDP = "udp"
    UNIX_STREAM = "unix stream"
    UNIX_DATAGRAM = "unix datagram"
    UNIX_PACKETS = "unix packets"


UNIX = {STREAM: Kind.UNIX_STREAM, DATAGRAM: Kind.UNIX_DATAGRAM, PACKETS: Kind.UNIX_PACKETS}


@dataclass(frozen=True)
class Listener:
    """A socket that strangers may find; the process tells in which network, and below which root.

    `where` is an address, or the path of a unix socket, which begins with @ if it is a name in no file system.
    """

    pid: int
    program: str
    kind: Kind
    where: str
    port: int = 0

    @property
    def is_port(self) -> bool:
        return self.kind in (Kind.TCP, Kind.UDP)

    @property
    def is_on_every_address(self) -> bool:
        return self.is_port and ip_address(self.where).is_unspecified


def listeners_of(token: str) -> list[Listener]:
    """Every socket on which the live processes of a cluster listen, in any network."""
    found = {}
    for pid in members(token):
        try:
            for each in of_process(pid):
                found[_network(pid), each.kind, each.where, each.port] = each
        except OSError:  # it has just ended
            continue
    return list(found.values())


def of_process(pid: int) -> list[Listener]:
    """The sockets that a process listens on, as the tables of its own network have them."""
    program = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[-80:]
    files = (os.readlink(link) for link in Path(f"/proc/{pid}/fd").iterdir() if link.is_symlink())
    own = {name.removeprefix("socket:[").removesuffix("]") for name in files if name.startswith("socket:[")}
    ports = [*_ports(pid, Kind.TCP, LISTEN, own), *_ports(pid, Kind.UDP, UNCONNECTED, own)]
    return [Listener(pid, program, *place) for place in [*ports, *_unix(pid, own)]]


def _ports(pid: int, kind: Kind, state: str, own: set[str]) -> Iterator[tuple[Kind, str, int]]:
    for row in (*_rows(pid, kind), *_rows(pid, f"{kind}6")):
        columns = row.split()
        if columns[3] == state and columns[9] in own:
            address, _, port = columns[1].partition(":")
            yield kind, _address(address), int(port, 16)


def _unix(pid: int, own: set[str]) -> Iterator[tuple[Kind, str, int]]:
    for row in _rows(pid, "unix"):
        _, _, _, flags, kind, _, inode, *path = row.split(maxsplit=7)
        is_open = int(flags, 16) & ACCEPTS or int(kind, 16) == DATAGRAM
        if path and is_open and inode in own:
            yield UNIX[int(kind, 16)], path[0], 0


def _rows(pid: int, table: str) -> list[str]:
    """A table of the network that a process is in, without its heading; a kernel without IPv6 lacks two of them."""
    path = Path(f"/proc/{pid}/net/{table}")
    return path.read_text(errors="surrogateescape").splitlines()[1:] if path.exists() else []


def _address(packed: str) -> str:
    """An address out of the kernel's tables, which have it in words of four bytes, the last one first."""
    words = [packed[at : at + 8] for at in range(0, len(packed), 8)]
    found = ip_address(b"".join(bytes.fromhex(word)[::-1] for word in words))
    return str(getattr(found, "ipv4_mapped", None) or found)


def _network(pid: int) -> int:
    return os.stat(f"/proc/{pid}/ns/net").st_ino
