"""Commands in a network namespace of their own."""

from __future__ import annotations

import os
import subprocess


def in_a_namespace(*command: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a new network namespace, which is gone with it."""
    return subprocess.run(["unshare", "--net", *command], capture_output=True, text=True, cwd=os.getcwd())
