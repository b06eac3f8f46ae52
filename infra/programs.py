"""Finds programs of the system, also in the folders of root's PATH."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess

SBIN = "/usr/local/sbin:/usr/sbin:/sbin"
LIMIT_S = 5.0


def search_path() -> str:
    """Where programs are looked for, as PATH is written."""
    return f"{os.environ.get('PATH', os.defpath)}:{SBIN}"


def find(name: str) -> str | None:
    """The path of a program; None when it is missing."""
    return shutil.which(name, path=search_path())


def environment() -> dict[str, str]:
    """This process's environment, with all of those on its PATH."""
    return {**os.environ, "PATH": search_path()}


def run(*command: str, text: str = "", limit_s: float = LIMIT_S) -> subprocess.CompletedProcess[str]:
    """What became of a command that gets this input; raises `OSError` when its program is missing, or does not end."""
    try:
        return subprocess.run(command, env=environment(), input=text, capture_output=True, text=True, timeout=limit_s)
    except subprocess.TimeoutExpired:
        raise TimeoutError(errno.ETIMEDOUT, f"no end in {limit_s:g} s", command[0]) from None
