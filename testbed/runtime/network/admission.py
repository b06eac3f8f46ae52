"""Accepts connections: reads nothing but the greeting until that is complete and right."""

from __future__ import annotations

import errno
import hmac
import selectors
import socket
import struct
import time
from collections.abc import Callable

from testbed.runtime.network.secret import TOKEN_BYTES
from testbed.runtime.network.wire import Address

GREETING_LIMIT_S = 3.0
MOST_PENDING = 32  # of more than these, the one that came first goes
MOST_ACCEPTED = 16  # at once: the listening thread has other work, too
PAUSE_S = 0.1  # without free descriptors no connection can be accepted; a polled listener would keep the loop busy
NO_ROOM = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
BACKLOG = 128

Fields = tuple[int, ...]


class Greeting:
    """The bytes that a connection begins with: whom it greets (eight letters), the run's token, and some numbers."""

    def __init__(self, whom: bytes, numbers: str = "") -> None:
        """`numbers`: their formats as `struct` has them."""
        self._whom, self._layout = whom, struct.Struct(f"<8s{TOKEN_BYTES}s{numbers}")
        self.size = self._layout.size

    def of(self, token: bytes, *numbers: int) -> bytes:
        """The bytes of the greeting; raises `struct.error` for numbers that do not fit their formats."""
        return self._layout.pack(self._whom, token, *numbers)

    def may_begin_with(self, data: bytes) -> bool:
        """By what is no secret. The token is looked at only when it is there whole."""
        return data[: len(self._whom)] == self._whom[: len(data)]

    def numbers(self, token: bytes, data: bytes) -> Fields | None:
        """The numbers of a greeting with this token, None if it has another. The time does not depend on its token."""
        whom, given, *numbers = self._layout.unpack(data)
        is_known = hmac.compare_digest(given, token)
        return tuple(numbers) if is_known and whom == self._whom else None


class Admission:
    """Listens on an address, at a port that is free, and hands on the connections that give a greeting.

    `on_guest` gets the connection and the greeting's numbers, and has it from then on. `on_clock` must be called now
    and then.
    """

    def __init__(
        self,
        selector: selectors.BaseSelector,
        host: str,
        greeting: Greeting,
        token: bytes,
        on_guest: Callable[[socket.socket, Fields], None],
    ) -> None:
        self._selector, self._greeting, self._token, self._on_guest = selector, greeting, token, on_guest
        self._pending: dict[_PendingConnection, None] = {}  # in the order in which they came
        self._socket = socket.create_server((host, 0), backlog=BACKLOG)
        self._socket.setblocking(False)
        self.address: Address = self._socket.getsockname()[:2]
        self._resume_s: float | None = None
        self._listen()

    @property
    def pending(self) -> int:
        """How many connections have not given a greeting yet."""
        return len(self._pending)

    def on_clock(self, now_s: float) -> None:
        """Close pending connections whose time is over, and listen again after a pause."""
        for pending in list(self._pending):
            if now_s < pending.deadline_s:
                break
            self._drop(pending)
        if self._resume_s is not None and now_s >= self._resume_s:
            self._listen()

    def drop_pending(self) -> None:
        """End all connections that have not been handed on, but for greetings that have just come."""
        for pending in list(self._pending):
            self._drop(pending)

    def close(self) -> None:
        """End all connections that have not been handed on, and stop listening."""
        for pending in list(self._pending):
            self.leave(pending).close()
        if self._resume_s is None:
            self._selector.unregister(self._socket)
        self._socket.close()

    def on_event(self, mask: int) -> None:
        """The selector says that connections have come in."""
        for _ in range(MOST_ACCEPTED):
            try:
                connection, _ = self._socket.accept()
            except OSError as error:
                if error.errno in NO_ROOM:
                    self._pause()
                return
            self._receive(connection)

    def read(self, pending: _PendingConnection) -> None:
        """What a connection has said by now, and whether that is enough."""
        try:
            data = pending.connection.recv(self._greeting.size - len(pending.said))
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        pending.said += data
        if not data or not self._greeting.may_begin_with(pending.said):
            self.leave(pending).close()
        elif len(pending.said) == self._greeting.size:
            self._judge(pending)

    def leave(self, pending: _PendingConnection) -> socket.socket:
        """The socket, which is not pending any more."""
        del self._pending[pending]
        self._selector.unregister(pending.connection)
        return pending.connection

    def knows(self, pending: _PendingConnection) -> bool:
        """Whether the connection is still pending."""
        return pending in self._pending

    def _receive(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        if len(self._pending) == MOST_PENDING:
            self._drop(next(iter(self._pending)))
        pending = _PendingConnection(self, connection, time.monotonic() + GREETING_LIMIT_S)
        self._pending[pending] = None
        self._selector.register(connection, selectors.EVENT_READ, pending.on_event)

    def _judge(self, pending: _PendingConnection) -> None:
        connection, numbers = self.leave(pending), self._greeting.numbers(self._token, pending.said)
        if numbers is None:
            connection.close()
        else:
            self._on_guest(connection, numbers)

    def _drop(self, pending: _PendingConnection) -> None:
        """First read again: the greeting of a connection that was waiting may have arrived in the meantime."""
        self.read(pending)
        if pending in self._pending:
            self.leave(pending).close()

    def _listen(self) -> None:
        self._selector.register(self._socket, selectors.EVENT_READ, self.on_event)
        self._resume_s = None

    def _pause(self) -> None:
        self.drop_pending()
        self._selector.unregister(self._socket)
        self._resume_s = time.monotonic() + PAUSE_S


class _PendingConnection:
    """A connection that has not given a greeting yet, and what it has said so far."""

    def __init__(self, admission: Admission, connection: socket.socket, deadline_s: float) -> None:
        self.connection, self.deadline_s, self.said = connection, deadline_s, b""
        self._admission = admission

    def on_event(self, mask: int) -> None:
        if self._admission.knows(self):  # it may have gone since the selector was asked
            self._admission.read(self)
