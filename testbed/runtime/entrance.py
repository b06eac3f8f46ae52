"""Where connections come in. Of a stranger nothing is read but a greeting; who does not give the right one goes."""

from __future__ import annotations

import errno
import hmac
import selectors
import socket
import struct
import time
from collections.abc import Callable

from testbed.runtime.secret import TOKEN_BYTES
from testbed.runtime.wire import Address

GREETING_LIMIT_S = 3.0
MOST_STRANGERS = 32  # of more than these, the one that came first goes
MOST_ACCEPTED = 16  # at once: whoever listens has other work, too
PAUSE_S = 0.1  # without descriptors nobody can be let in, and a listener that is looked at would never let others rest
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
        """The numbers of a greeting with this token, None if it has another; takes as long whatever it has."""
        whom, given, *numbers = self._layout.unpack(data)
        is_known = hmac.compare_digest(given, token)
        return tuple(numbers) if is_known and whom == self._whom else None


class Entrance:
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
        self._strangers: dict[_Stranger, None] = {}  # in the order in which they came
        self._socket = socket.create_server((host, 0), backlog=BACKLOG)
        self._socket.setblocking(False)
        self.address: Address = self._socket.getsockname()[:2]
        self._resume_s: float | None = None
        self._listen()

    @property
    def strangers(self) -> int:
        """How many connections have not given a greeting yet."""
        return len(self._strangers)

    def on_clock(self, now_s: float) -> None:
        """Strangers go when their time is over; after a pause others come in again."""
        for stranger in list(self._strangers):
            if now_s < stranger.deadline_s:
                break
            self._see_off(stranger)
        if self._resume_s is not None and now_s >= self._resume_s:
            self._listen()

    def drop_strangers(self) -> None:
        """End all connections that have not been handed on, but for greetings that have just come."""
        for stranger in list(self._strangers):
            self._see_off(stranger)

    def close(self) -> None:
        """End all connections that have not been handed on, and stop listening."""
        for stranger in list(self._strangers):
            self.leave(stranger).close()
        if self._resume_s is None:
            self._selector.unregister(self._socket)
        self._socket.close()

    def on_event(self, mask: int) -> None:
        """The selector says that somebody is at the door."""
        for _ in range(MOST_ACCEPTED):
            try:
                connection, _ = self._socket.accept()
            except OSError as error:
                if error.errno in NO_ROOM:
                    self._pause()
                return
            self._receive(connection)

    def read(self, stranger: _Stranger) -> None:
        """What a stranger has said by now, and whether that is enough."""
        try:
            data = stranger.connection.recv(self._greeting.size - len(stranger.said))
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        stranger.said += data
        if not data or not self._greeting.may_begin_with(stranger.said):
            self.leave(stranger).close()
        elif len(stranger.said) == self._greeting.size:
            self._judge(stranger)

    def leave(self, stranger: _Stranger) -> socket.socket:
        """Their connection, which is nobody's now."""
        del self._strangers[stranger]
        self._selector.unregister(stranger.connection)
        return stranger.connection

    def knows(self, stranger: _Stranger) -> bool:
        """Whether a stranger is still here."""
        return stranger in self._strangers

    def _receive(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        if len(self._strangers) == MOST_STRANGERS:
            self._see_off(next(iter(self._strangers)))
        stranger = _Stranger(self, connection, time.monotonic() + GREETING_LIMIT_S)
        self._strangers[stranger] = None
        self._selector.register(connection, selectors.EVENT_READ, stranger.on_event)

    def _judge(self, stranger: _Stranger) -> None:
        connection, numbers = self.leave(stranger), self._greeting.numbers(self._token, stranger.said)
        if numbers is None:
            connection.close()
        else:
            self._on_guest(connection, numbers)

    def _see_off(self, stranger: _Stranger) -> None:
        """A greeting may have come that nobody has looked at: whoever waited for long at the door gives it at once."""
        self.read(stranger)
        if stranger in self._strangers:
            self.leave(stranger).close()

    def _listen(self) -> None:
        self._selector.register(self._socket, selectors.EVENT_READ, self.on_event)
        self._resume_s = None

    def _pause(self) -> None:
        self.drop_strangers()
        self._selector.unregister(self._socket)
        self._resume_s = time.monotonic() + PAUSE_S


class _Stranger:
    """A connection, and what it has said so far."""

    def __init__(self, entrance: Entrance, connection: socket.socket, deadline_s: float) -> None:
        self.connection, self.deadline_s, self.said = connection, deadline_s, b""
        self._entrance = entrance

    def on_event(self, mask: int) -> None:
        if self._entrance.knows(self):  # it may have gone since the selector was asked
            self._entrance.read(self)
