"""What may have the name of a file without being one, for tests of those who read files, lock them and follow them."""

from __future__ import annotations

import contextlib
import os
import socket
from pathlib import Path

STRANGE = ["a FIFO", "a link", "a folder", "a socket"]


def put(kind: str, path: Path) -> None:
    """Something that is no regular file, under that name."""
    match kind:
        case "a FIFO":
            os.mkfifo(path)
        case "a link":
            path.symlink_to(path.with_name("nowhere"))
        case "a folder":
            path.mkdir()
        case "a socket":
            # The path of a socket may have 107 characters.
            with socket.socket(socket.AF_UNIX) as server, contextlib.chdir(path.parent):
                server.bind(path.name)
