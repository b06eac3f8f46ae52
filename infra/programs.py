"""Programs of the system, also those that only root's PATH has, and not every root's."""

from __future__ import annotations

import os
import shutil

SBIN = "/usr/local/sbin:/usr/sbin:/sbin"


def search_path() -> str:
    """Where programs are looked for, as PATH is written."""
    return f"{os.environ.get('PATH', os.defpath)}:{SBIN}"


def find(name: str) -> str | None:
    """The path of a program; None when it is missing."""
    return shutil.which(name, path=search_path())
