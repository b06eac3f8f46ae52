"""When the results in a file that a sink has written were out."""

from __future__ import annotations

from pathlib import Path


def out_ns(path: Path) -> int:
    """When the file got its name, which it does once it has been synced to disk [ns].

    The time of the last write (mtime) is before the sync.
    """
    return path.stat().st_ctime_ns
