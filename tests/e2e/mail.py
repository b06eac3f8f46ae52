"""A mail server that takes what it is sent and keeps it."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage

GREETING, DONE, GO_ON, LOGGED_IN, BYE = b"220 test\r\n", b"250 ok\r\n", b"354 go on\r\n", b"235 ok\r\n", b"221 bye\r\n"


class _Session(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        self.wfile.write(GREETING)
        for line in self.rfile:
            match line[:4].upper():
                case b"EHLO":
                    self.wfile.write(b"250-test\r\n250 AUTH PLAIN\r\n")
                case b"AUTH":
                    self.wfile.write(LOGGED_IN)
                case b"DATA":
                    self.wfile.write(GO_ON)
                    lines = iter(self.rfile.readline, b".\r\n")
                    self.server.received.append(message_from_bytes(b"".join(lines), policy=policy.default))
                    self.wfile.write(DONE)
                case b"QUIT":
                    self.wfile.write(BYE)
                    return
                case _:
                    self.wfile.write(DONE)


class MailServer(socketserver.ThreadingTCPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Session)
        self.received: list[EmailMessage] = []

    @property
    def port(self) -> int:
        return self.server_address[1]


@contextmanager
def mail_server() -> Iterator[MailServer]:
    with MailServer() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()
