"""The connections between slots: frames go one way, credit comes back. They last as long as their two workers."""

from __future__ import annotations

import selectors
import socket
import struct
from collections.abc import Callable, Sequence

import pyarrow as pa

from testbed.core.effects import Grant
from testbed.core.frames import Frame, FrameReader
from testbed.runtime.network.admission import Admission, Fields, Greeting
from testbed.runtime.network.messages import NOBODY, Peers
from testbed.runtime.network.wire import Address, Link, WireError, begin_connecting

PEER = Greeting(b"AS-PEER\n", "III")  # the worker that speaks, its slot, and the last epoch that it knows of
CREDIT = struct.Struct("<III")


class Mesh:
    """What one slot has of the mesh.

    `on_frame` and `on_grant` are called for what arrives from current workers of other slots. `on_broken` is called
    with a slot to which, or from which, the connection ended; what was on its way is lost.
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
        self._peers, self._since = NOBODY, 0
        self._sending: dict[int, Link] = {}
        self._receiving: dict[int, Link] = {}
        self._admission = Admission(selector, host, PEER, token, self._on_guest)
        self.address = self._admission.address
        self.sent_bytes = 0

    def form(self, peers: Peers) -> None:
        """A recovery begins: connections with workers that are not there any more end.

        What was lost on a connection with one that is still there comes again only if everybody rolls back, so
        `on_broken` is called again.
        """
        for links in (self._sending, self._receiving):
            for slot in [each for each in links if self._is_new(peers, each)]:
                links.pop(slot).close()
        if self._peers is NOBODY:
            self._since = peers.epoch
        self._peers = peers
        for slot in {each for links in (self._sending, self._receiving) for each in links if links[each].closed}:
            self._on_broken(slot)

    def drop(self) -> None:
        """End all connections."""
        for link in (*self._sending.values(), *self._receiving.values()):
            link.close()
        self._sending, self._receiving = {}, {}
        self._peers = NOBODY

    def on_clock(self, now_s: float) -> None:
        """Close connections that have given no greeting in time [s, monotonic]."""
        self._admission.on_clock(now_s)

    def close(self) -> None:
        """End all connections and stop listening."""
        self.drop()
        self._admission.close()

    def send(self, slot: int, data: bytes) -> None:
        """A frame for a partition of another slot; leaves with the next `flush`, or never if it has no worker."""
        address = self._peers.addresses[slot]
        if address is None:
            return
        self.sent_bytes += len(data)
        (self._sending.get(slot) or self._connect(slot, address)).send(data)

    def grant(self, slot: int, grant: Grant) -> None:
        """Credit for a channel from another slot; nothing happens if that is gone."""
        if slot in self._receiving:
            self._receiving[slot].send(CREDIT.pack(grant.channel, grant.epoch, grant.messages))

    def flush(self) -> None:
        """Send what the connections take now."""
        for link in (*self._sending.values(), *self._receiving.values()):
            link.flush()

    def _is_new(self, peers: Peers, slot: int) -> bool:
        return slot >= len(peers.workers) or peers.workers[slot] != self._peers.workers[slot]

    def _connect(self, slot: int, address: Address) -> Link:
        connection = begin_connecting(address, self._host)
        credit = _CreditReader(self._on_grant, len(self._schemas))
        link = Link(self._selector, connection, credit.feed, lambda: self._on_broken(slot))
        peers = self._peers
        link.send(PEER.of(self._token, peers.workers[peers.mine], peers.mine, peers.epoch))
        self._sending[slot] = link
        return link

    def _on_guest(self, connection: socket.socket, numbers: Fields) -> None:
        """Who is not the current worker of its slot is shut out, and so is who is there already.

        So is who has yet to hear of the recovery since which the connections of this slot count. It will end all of
        its own when it does, and that of a connection that was let in would look like a break.
        """
        worker, slot, epoch = numbers
        workers = self._peers.workers
        is_current = slot < len(workers) and worker == workers[slot] and epoch >= self._since
        if not is_current or slot in self._receiving:
            connection.close()
            return
        reader = FrameReader(self._schemas)

        def feed(data: bytes) -> None:
            for frame in reader.feed(data):
                self._on_frame(frame)

        self._receiving[slot] = Link(self._selector, connection, feed, lambda: self._on_broken(slot))


class _CreditReader:
    def __init__(self, on_grant: Callable[[Grant], None], channels: int) -> None:
        self._rest, self._on_grant, self._channels = b"", on_grant, channels

    def feed(self, data: bytes) -> None:
        data = self._rest + data
        whole = len(data) - len(data) % CREDIT.size
        self._rest = data[whole:]
        for fields in CREDIT.iter_unpack(data[:whole]):
            grant = Grant(*fields)
            if grant.channel >= self._channels:
                raise WireError(f"credit for the channel {grant.channel} of {self._channels}")
            self._on_grant(grant)
