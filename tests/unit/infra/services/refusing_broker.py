"""A Kafka broker that lets nobody in: it speaks the protocol as far as the login."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

SASL_HANDSHAKE, API_VERSIONS, SASL_AUTHENTICATE = 17, 18, 36
NEWEST = {SASL_HANDSHAKE: 1, API_VERSIONS: 3, SASL_AUTHENTICATE: 0}  # by request, the newest version that is answered
FIRST_FLEXIBLE = 3  # version of API_VERSIONS: from it on, arrays are compact and there are tagged fields
SASL_AUTHENTICATION_FAILED = 58


@contextmanager
def refusing_broker(address: str, words: str | None) -> Iterator[str]:
    """The HOST:PORT of a broker that refuses each login with these words, or ends the connection amid it (None)."""
    with socket.create_server((address, 0)) as server:
        serving = threading.Thread(target=_serve, args=(server, words))
        serving.start()
        try:
            yield "{}:{}".format(*server.getsockname())
        finally:
            server.shutdown(socket.SHUT_RDWR)
            serving.join()


def _serve(server: socket.socket, words: str | None) -> None:
    with suppress(OSError):  # it was shut down
        while True:
            client, _ = server.accept()
            with client, suppress(ConnectionError), client.makefile("rb") as requests:
                _talk(client, requests, words)


def _talk(client: socket.socket, requests: BinaryIO, words: str | None) -> None:
    while size := requests.read(4):
        key, version, number = struct.unpack_from(">hhi", requests.read(int.from_bytes(size, "big")))
        if key == SASL_HANDSHAKE and words is None:
            return
        answer = struct.pack(">i", number) + _answer(key, version, words or "")
        client.sendall(struct.pack(">i", len(answer)) + answer)
        if key == SASL_AUTHENTICATE:
            return


def _answer(key: int, version: int, words: str) -> bytes:
    if key == API_VERSIONS:
        flexible = version >= FIRST_FLEXIBLE
        known = [struct.pack(">hhh", name, 0, newest) + b"\0" * flexible for name, newest in NEWEST.items()]
        count = bytes([len(known) + 1]) if flexible else struct.pack(">i", len(known))
        return struct.pack(">h", 0) + count + b"".join(known) + (struct.pack(">i", 0) + b"\0") * flexible
    if key == SASL_HANDSHAKE:
        return struct.pack(">hi", 0, 1) + _text("PLAIN")
    return struct.pack(">h", SASL_AUTHENTICATION_FAILED) + _text(words) + struct.pack(">i", 0)


def _text(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()
