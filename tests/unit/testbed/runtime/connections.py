"""What tests do with connections of their own to what listens, and with descriptors."""

from __future__ import annotations

import resource
import socket
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

LOWEST = 3  # those below are always open


def is_cut_off(connection: socket.socket) -> bool:
    """Whether the other end has ended the connection; data that it sent before is ignored."""
    connection.setblocking(False)
    try:
        while connection.recv(1 << 16):
            pass
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True
    return True


@contextmanager
def few_descriptors(end: int) -> Iterator[None]:
    """Within, this process gets no descriptor from this number on; those that it has stay."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (end, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def no_descriptors() -> AbstractContextManager[None]:
    """Within, this process can open nothing more."""
    return few_descriptors(LOWEST)
