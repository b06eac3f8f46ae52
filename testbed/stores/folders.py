"""Folders whose names survive a crash of the host.

To sync a file is not enough: its name is part of its folder, which is synced by itself.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path


def make_folder(folder: Path) -> None:
    """Make a folder, and those above it that are missing, and return once the names of those made are safe on the disk.

    That of a folder which is there counts as safe. Raises `OSError`.
    """
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Return once the names in a folder are safe on the disk, where the file system can sync folders by themselves.

    Raises `OSError`.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # so a file system says that it syncs no folders
            raise
    finally:
        os.close(descriptor)
