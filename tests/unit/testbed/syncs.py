"""What survives a crash of the host."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def note_syncs(monkeypatch: pytest.MonkeyPatch) -> dict[Path, set[str]]:
    """By folder the names that were in it when it was last synced."""
    found: dict[Path, set[str]] = {}
    sync = os.fsync

    def noted(descriptor: int) -> None:
        sync(descriptor)
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        if path.is_dir():
            found[path] = set(os.listdir(path))

    monkeypatch.setattr(os, "fsync", noted)
    return found
