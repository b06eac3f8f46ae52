"""Connections that never block, and the blocks that coordinator and slots exchange."""

from __future__ import annotations

import selectors
import socket
import struct
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress

from experiments.errors import AftershockError

Address = tuple[str, int]
RECEIVED_BYTES = 1 << 18
MOST_PIECES = 64
UNHEARD_LIMIT_MS = 10_000  # a connection on which nothing sent was heard of for so long is broken
BLOCK = struct.Struct("<Ii")
LONGEST_BLOCK = 1 << 22
NO_PARTITION = -1


class WireError(AftershockError):
    """What arrived is not what the other end would send."""


class Link:
    """One TCP connection. What is sent waits, in order, until the other end takes it; `flush` when a turn is over.

    The bound on what waits is the sender's: channels have credit, and control messages are few.
    """

    def __init__(
        self,
        selector: selectors.BaseSelector,
        connection: socket.socket,
        on_bytes: Callable[[bytes], None],
        on_end: Callable[[], None],
    ) -> None:
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNHEARD_LIMIT_MS)
        self._selector, self._socket = selector, connection
        self._on_bytes, self._on_end = on_bytes, on_end
        self._waiting: deque[memoryview] = deque()
        self._writing, self.closed = False, False
        selector.register(connection, selectors.EVENT_READ, self.on_event)

    def send(self, data: bytes) -> None:
        """Queue bytes for the next `flush`; those for a connection that has ended are dropped."""
        if not self.closed:
            self._waiting.append(memoryview(data))

    def flush(self) -> None:
        """Send what the connection takes now; the rest goes when it takes more."""
        try:
            while self._waiting and not self.closed:
                pieces = [self._waiting[i] for i in range(min(len(self._waiting), MOST_PIECES))]
                self._drop(self._socket.sendmsg(pieces))
        except (BlockingIOError, InterruptedError):
            pass
        except OSError:
            self._hear_out()
        if not self.closed and self._writing != bool(self._waiting):
            self._writing = bool(self._waiting)
            mask = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._writing else 0)
            self._selector.modify(self._socket, mask, self.on_event)

    def on_event(self, mask: int) -> None:
        """The selector says that the connection can be read or written."""
        if mask & selectors.EVENT_READ and not self.closed:
            self._read()
        if mask & selectors.EVENT_WRITE and not self.closed:
            self.flush()

    def close(self) -> None:
        """End the connection without calling the code that waits for its end."""
        if not self.closed:
            self.closed = True
            self._selector.unregister(self._socket)
            self._socket.close()

    def _read(self) -> None:
        try:
            data = self._socket.recv(RECEIVED_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        if data:
            self._on_bytes(data)
        else:
            self._end()

    def _hear_out(self) -> None:
        """The other end has gone. What it said before is still to be read, and then reading ends the connection."""
        self._waiting.clear()
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def _end(self) -> None:
        if not self.closed:
            self.close()
            self._on_end()

    def _drop(self, sent: int) -> None:
        while sent:
            first = self._waiting[0]
            if sent < len(first):
                self._waiting[0] = first[sent:]
                return
            sent -= len(first)
            self._waiting.popleft()


def begin_connecting(address: Address, source: str) -> socket.socket:
    """A connection that may not be established yet: the first write to it shows whether it is."""
    connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    connection.setblocking(False)
    connection.bind((source, 0))
    connection.connect_ex(address)
    return connection


def block(partition: int, content: bytes) -> bytes:
    """A message for or from a partition, or `NO_PARTITION`."""
    return BLOCK.pack(len(content), partition) + content


class BlockReader:
    """Blocks out of a stream of bytes that arrives in any pieces."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """The blocks that are complete by now; raises `WireError` for one that is longer than any."""
        self._rest += data
        at = 0
        try:
            while len(self._rest) - at >= BLOCK.size:
                length, partition = BLOCK.unpack_from(self._rest, at)
                if length > LONGEST_BLOCK:
                    raise WireError(f"a block of {length} bytes")
                begin, end = at + BLOCK.size, at + BLOCK.size + length
                if len(self._rest) < end:
                    return
                at = end
                yield partition, bytes(self._rest[begin:end])
        finally:
            del self._rest[:at]


def turn(selector: selectors.BaseSelector, timeout_s: float) -> float:
    """Wait for connections that can go on, and let them; returns how long it waited [s]."""
    begun_s = time.monotonic()
    ready = selector.select(timeout_s)
    waited_s = time.monotonic() - begun_s
    for key, mask in ready:
        key.data(mask)
    return waited_s
