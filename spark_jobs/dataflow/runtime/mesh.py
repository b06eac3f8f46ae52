"""The connections between slots: frames go one way, credit comes back. New ones for every epoch."""

from __future__ import annotations

import selectors
import socket
import struct
from collections.abc import Callable, Sequence

import pyarrow as pa

from spark_jobs.dataflow.effects import Grant
from spark_jobs.dataflow.frames import Frame, FrameReader
from spark_jobs.dataflow.runtime.messages import Peers
from spark_jobs.dataflow.runtime.wire import Link, Listener, begin_connecting

GREETING = struct.Struct("<16sII")  # of the run; the epoch, and the slot that speaks
CREDIT = struct.Struct("<III")


class Mesh:
    """What one slot has of the mesh.

    `on_frame` and `on_grant` are called for what arrives in the current epoch. `on_broken` is called with a slot to
    which, or from which, the connection ended in it; what was on its way is lost.
    """

    def __init__(
        self,
        selector: selectors.BaseSelector,
        host: str,
        token: bytes,
        schemas: Sequence[pa.Schema],
        on_frame: Callable[[Frame], None],
        on_grant: Callable[[Grant], None],
        on_broken: Callable[[int], None],
    ) -> None:
        self._selector, self._host, self._token, self._schemas = selector, host, token, schemas
        self._on_frame, self._on_grant, self._on_broken = on_frame, on_grant, on_broken
        self._peers = Peers(-1, (), -1)
        self._sending: dict[int, Link] = {}
        self._receiving: dict[int, Link] = {}
        self._strangers: set[Link] = set()
        self._listener = Listener(selector, host, self._on_connection)
        self.address = self._listener.address
        self.sent_bytes = 0

    def form(self, peers: Peers) -> None:
        """A new epoch begins: what is left of the old one ends."""
        self.drop()
        self._peers = peers

    def drop(self) -> None:
        """End all connections."""
        for link in (*self._sending.values(), *self._receiving.values(), *self._strangers):
            link.close()
        self._sending, self._receiving, self._strangers = {}, {}, set()
        self._peers = Peers(-1, (), -1)

    def close(self) -> None:
        self.drop()
        self._listener.close()

    def send(self, slot: int, data: bytes) -> None:
        """A frame for a partition of another slot; it leaves with the next `flush`."""
        self.sent_bytes += len(data)
        (self._sending.get(slot) or self._connect(slot)).send(data)

    def grant(self, slot: int, grant: Grant) -> None:
        """Credit for a channel from another slot; nothing happens if that is gone."""
        if slot in self._receiving:
            self._receiving[slot].send(CREDIT.pack(grant.channel, grant.epoch, grant.frames))

    def flush(self) -> None:
        for link in (*self._sending.values(), *self._receiving.values()):
            link.flush()

    def _connect(self, slot: int) -> Link:
        connection = begin_connecting(self._peers.addresses[slot], self._host)
        credit = _CreditReader(self._on_grant)
        link = Link(self._selector, connection, credit.feed, lambda: self._on_broken(slot))
        link.send(GREETING.pack(self._token, self._peers.epoch, self._peers.mine))
        self._sending[slot] = link
        return link

    def _on_connection(self, connection: socket.socket) -> None:
        greeting = _Greeted(self)
        greeting.link = Link(self._selector, connection, greeting.feed, greeting.end)
        self._strangers.add(greeting.link)


class _CreditReader:
    def __init__(self, on_grant: Callable[[Grant], None]) -> None:
        self._rest, self._on_grant = b"", on_grant

    def feed(self, data: bytes) -> None:
        data = self._rest + data
        whole = len(data) - len(data) % CREDIT.size
        self._rest = data[whole:]
        for fields in CREDIT.iter_unpack(data[:whole]):
            self._on_grant(Grant(*fields))


class _Greeted:
    """A connection that another slot made: first a greeting, then frames. Who has another epoch is shut out."""

    link: Link

    def __init__(self, mesh: Mesh) -> None:
        self._mesh, self._rest, self._slot = mesh, b"", -1
        self._reader = FrameReader(mesh._schemas)

    def feed(self, data: bytes) -> None:
        if self._slot < 0:
            self._rest += data
            if len(self._rest) < GREETING.size or not self._greet():
                return
            data, self._rest = self._rest[GREETING.size :], b""
        for frame in self._reader.feed(data):
            self._mesh._on_frame(frame)

    def end(self) -> None:
        self._mesh._strangers.discard(self.link)
        if self._slot >= 0:
            self._mesh._on_broken(self._slot)

    def _greet(self) -> bool:
        token, epoch, slot = GREETING.unpack_from(self._rest)
        self._mesh._strangers.discard(self.link)
        if token != self._mesh._token or epoch != self._mesh._peers.epoch:
            self.link.close()
            return False
        self._slot = slot
        self._mesh._receiving[slot] = self.link
        return True
