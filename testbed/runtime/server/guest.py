"""A connection to the coordinator's server, and the slot that it belongs to after its greeting."""

from __future__ import annotations

import selectors
import socket
import time
from functools import partial
from typing import Protocol

from testbed.core.shapes import UnknownMessage
from testbed.runtime.network.messages import Hello, SlotMessage, SlotStatus, encode
from testbed.runtime.network.wire import NO_PARTITION, BlockReader, Link, WireError, block


class GuestListener(Protocol):
    """The server, as its guests know it."""

    def hear(self, guest: Guest, partition: int, content: bytes) -> None:
        """A block has come; raises `UnknownMessage` for what no slot says."""

    def refuse(self, guest: Guest, why: str) -> None:
        """The guest has said what no slot says."""

    def lose(self, guest: Guest, why: str) -> None:
        """The connection has ended."""


class Guest:
    """A connection that gave the greeting of the run, and the slot at its other end once it has said hello."""

    def __init__(
        self,
        selector: selectors.BaseSelector,
        connection: socket.socket,
        serial: int,
        listener: GuestListener,
        driver: int,
    ) -> None:
        """`driver`: the number of the one that it has come to, so that names are never used twice."""
        name = f"slot-{serial}" if driver == 1 else f"slot-{driver}-{serial}"
        self.name, self.serial, self.status = name, serial, SlotStatus(-1)
        self.hello: Hello | None = None
        self.heard_s = time.monotonic()
        self._listener, self._blocks = listener, BlockReader()
        self.link = Link(selector, connection, self._on_bytes, partial(listener.lose, self, "connection ended"))

    def say(self, message: SlotMessage) -> None:
        """Send a message with the next flush; one whose connection has ended does not get it."""
        self.link.send(block(NO_PARTITION, encode(message)))

    def _on_bytes(self, data: bytes) -> None:
        self.heard_s = time.monotonic()
        try:
            for partition, content in self._blocks.feed(data):
                self._listener.hear(self, partition, content)
        except (WireError, UnknownMessage) as error:
            self._listener.refuse(self, str(error))
