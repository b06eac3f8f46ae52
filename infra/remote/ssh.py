"""Connections to hosts over SSH: to a pinned host key only, with time limits, keepalive and retries.

A `SshSession` over SSH is one as `infra.remote.session` describes it.
"""

from __future__ import annotations

import logging
import os
import shlex
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import paramiko
from cryptography.exceptions import UnsupportedAlgorithm

from experiments.errors import EnvironmentFailure
from experiments.waiting import retry
from infra.remote.json_lines import PIECE_BYTES, JsonLines, reason_of
from infra.remote.session import Disconnected
from infra.threads import precedence_here

PORT = 22
CONNECT_LIMIT_S, ATTEMPTS_LIMIT_S, PAUSE_S = 5.0, 15.0, 0.1
LONGEST_DELAY_S = 2.0  # of what a host sends: a step of a new connection takes two messages of it, one after the other
KEEPALIVE_S = 10
UNREACHED = (OSError, EOFError, paramiko.SSHException)
NOT_JUDGED = ("timeout", "EOF")  # in what paramiko says of a login that the server neither accepted nor refused
# What paramiko, and `cryptography` below it, raise for a private key that is encrypted, and for what is no usable key.
LOCKED = (TypeError, paramiko.PasswordRequiredException)
NO_KEY = (ValueError, UnsupportedAlgorithm, paramiko.SSHException, paramiko.UnknownKeyType)
UNACKNOWLEDGED_LIMIT_MS = 10_000  # after that the kernel gives a connection to a vanished host up
ERROR_OUTPUT_BYTES = 10_000

# Its transport threads log what they raise, traceback included; the callers here say the same in one line.
logging.getLogger("paramiko").setLevel(logging.CRITICAL)


@dataclass(frozen=True)
class Login:
    """How to log in to hosts: a host that is not in `known_hosts` is refused.

    `pinned_in` is what a person would look into for the pinned key, where that is not `known_hosts` itself.
    """

    user: str
    key: Path
    known_hosts: Path
    port: int = PORT
    pinned_in: Path | None = None


def connect(login: Login, name: str, address: str) -> paramiko.SSHClient:
    """Log in to a host; one that does not answer yet is tried again for `ATTEMPTS_LIMIT_S`.

    Raises `EnvironmentFailure` for keys that cannot be read or used, an unknown or changed host key and a refused key
    at once, and for a host that cannot be reached within the limit.
    """
    key = _private_key(login, name)
    if not os.access(login.known_hosts, os.R_OK):
        raise EnvironmentFailure(f"{login.known_hosts}, needed to log in to {name}, cannot be read", "restore it")
    try:
        attempt = partial(_admitted, login, key, name, address)
        return retry(attempt, UNREACHED, interval_s=PAUSE_S, limit_s=ATTEMPTS_LIMIT_S)
    except UNREACHED as error:
        cause = f"{name} at {address} cannot be reached over SSH ({reason_of(error)})"
        remedy = f"see that sshd listens on port {login.port} there, the firewall, and `ip route`"
        raise EnvironmentFailure(cause, remedy) from None


def _private_key(login: Login, name: str) -> paramiko.PKey:
    """The key of a login, with the certificate in KEY-cert.pub if there is one.

    Raises `EnvironmentFailure` for a file that cannot be read or is damaged, and for a key that has a passphrase.
    """
    try:
        return paramiko.PKey.from_path(login.key)  # `key_filename` would tell how the last type of key failed
    except OSError as error:
        cause = f"{error.filename or login.key}, needed to log in to {name}, cannot be read ({error.strerror})"
        raise EnvironmentFailure(cause, "restore it") from None
    except LOCKED:
        found = "a key with a passphrase"
    except NO_KEY:
        certificate = certificate_of(login.key)
        or_else = f", or its certificate {certificate} is damaged" if certificate.exists() else ""
        found = f"no private key, or a damaged one{or_else}"
    cause = f"{login.key}, needed to log in to {name}, holds {found}"
    raise EnvironmentFailure(cause, "put a private SSH key without a passphrase there (RSA, ECDSA or Ed25519)")


def certificate_of(key: Path) -> Path:
    """The file of a private key's certificate, where OpenSSH looks for it, too; a key need not have one."""
    return Path(f"{key}-cert.pub")


def _admitted(login: Login, key: paramiko.PKey, name: str, address: str) -> paramiko.SSHClient:
    """Log in once; raises `EnvironmentFailure` for what a further attempt would not mend."""
    try:
        return _attempt(login, key, name, address)
    except paramiko.BadHostKeyException:
        pinned_in = login.pinned_in or login.known_hosts
        cause = f"{name} at {address} shows another host key than the one pinned in {pinned_in}"
        raise EnvironmentFailure(cause, "find out who answers there; never accept the key blindly") from None
    except paramiko.AuthenticationException as error:
        if any(sign in str(error) for sign in NOT_JUDGED):
            raise
        raise EnvironmentFailure(
            f"{name} at {address} refuses {login.user}'s key {login.key}", "authorize that key on the host"
        ) from None


def _attempt(login: Login, key: paramiko.PKey, name: str, address: str) -> paramiko.SSHClient:
    client = paramiko.SSHClient()
    client.set_missing_host_key_policy(paramiko.RejectPolicy())
    client.load_host_keys(str(login.known_hosts))
    entry = entry_of(address, login.port)
    if client.get_host_keys().lookup(entry) is None:
        raise EnvironmentFailure(f"no host key of {name} ({entry}) is in {login.known_hosts}", "put it there, checked")
    try:
        client.connect(
            address,
            port=login.port,
            username=login.user,
            pkey=key,
            allow_agent=False,
            look_for_keys=False,
            timeout=CONNECT_LIMIT_S,
            banner_timeout=CONNECT_LIMIT_S,
            auth_timeout=CONNECT_LIMIT_S,
            transport_factory=SharingTransport,
        )
        _keep_alive(client)
    except BaseException:
        client.close()
        raise
    return client


def refusal(delay_s: float) -> str | None:
    """Why what a host sends cannot be delayed by so much [s]; None if it can.

    An existing connection survives a longer delay. But if it breaks, or if the injector dies, the host can be healed
    over a new one only.
    """
    if delay_s <= LONGEST_DELAY_S:
        return None
    return f"a delay of at most {LONGEST_DELAY_S:g} s: a longer one lets no new SSH connection through to heal it"


def entry_of(address: str, port: int) -> str:
    """How a file of known hosts names a host."""
    return address if port == PORT else f"[{address}]:{port}"


def _keep_alive(client: paramiko.SSHClient) -> None:
    transport = client.get_transport()
    if transport is not None:
        transport.set_keepalive(KEEPALIVE_S)
        # Without delay: an order must not wait until the one before it is acknowledged.
        for option, value in ((socket.TCP_NODELAY, 1), (socket.TCP_USER_TIMEOUT, UNACKNOWLEDGED_LIMIT_MS)):
            transport.sock.setsockopt(socket.IPPROTO_TCP, option, value)


@contextmanager
def answered(client: paramiko.SSHClient, limit_s: float) -> Iterator[None]:
    """Close a connection if what is done within takes longer: paramiko awaits the start of a command without a limit.

    A machine whose kernel goes on while its sshd stands still would be awaited for ever.
    """
    closing = threading.Timer(limit_s, client.close)
    closing.start()
    try:
        yield
    finally:
        closing.cancel()


class SharingTransport(paramiko.Transport):  # type: ignore[misc]  # it has no types
    """A transport whose thread has the precedence of the one that connects.

    Whoever sends or reads on the connection waits for that thread.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._take_precedence = precedence_here()

    def run(self) -> None:
        """Serve the connection until it ends."""
        self._take_precedence()
        super().run()


class SshSession(JsonLines):
    """A program on a host, with a connection of its own."""

    lost_by = UNREACHED

    def __init__(self, client: paramiko.SSHClient, command: Sequence[str]) -> None:
        super().__init__()
        self._client = client
        try:
            self._channel = client.get_transport().open_session(timeout=CONNECT_LIMIT_S)
            with answered(client, CONNECT_LIMIT_S):
                self._channel.exec_command(f"exec {shlex.join(command)}")
        except (AttributeError, *self.lost_by) as error:
            client.close()
            raise Disconnected(reason_of(error)) from None

    @property
    def alive(self) -> bool:
        return not (self._channel.closed or self._channel.exit_status_ready())

    def set_limit(self, limit_s: float) -> None:
        self._channel.settimeout(limit_s)

    def send(self, line: bytes) -> None:
        self._channel.sendall(line)

    def receive(self) -> bytes:
        piece: bytes = self._channel.recv(PIECE_BYTES)
        return piece

    def error_output(self) -> str:
        said: bytes = self._channel.recv_stderr(ERROR_OUTPUT_BYTES) if self._channel.recv_stderr_ready() else b""
        return said.decode(errors="replace")

    def close(self) -> None:
        self._client.close()
