"""Keeps memory that was freed for what comes next: to touch memory fresh from the kernel takes longer than to copy into
it, and a slot stands still meanwhile."""

from __future__ import annotations

import ctypes

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # mallopt(3), glibc
KEPT_BLOCK, KEPT_END = 32 << 20, 64 << 20  # bytes; columns of a million keys are 8 MB and 16 MB


def keep_freed_memory() -> None:
    """Let the C library of this process keep blocks of less than 32 MB when they are freed, and 64 MB at the end of the
    heap of each of its arenas.

    Does nothing where the C library has no `mallopt`, or refuses.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(MMAP_THRESHOLD, KEPT_BLOCK)
        mallopt(TRIM_THRESHOLD, KEPT_END)
