"""The descriptors of this process: which are open, and a lack of them."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress


def opened() -> set[str]:
    """The descriptors that are open now, but for sockets: those of clients that other tests have left come and go."""
    found = set()
    for name in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # the one with which the folder was read
            if not os.readlink(f"/proc/self/fd/{name}").startswith("socket:"):
                found.add(name)
    return found


@contextmanager
def descriptors_left(count: int) -> Iterator[None]:
    """Within, this process can have only so many more descriptors at a time."""
    free = [os.dup(0) for _ in range(count + 1)]  # the lowest that are free, since each new one is
    for descriptor in free:
        os.close(descriptor)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free[count], hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
