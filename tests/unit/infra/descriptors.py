"""The descriptors of this process: which are open, and a lack of them."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager


def opened() -> set[str]:
    """The descriptors that are open now."""
    return set(os.listdir("/proc/self/fd"))


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
