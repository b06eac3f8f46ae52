"""What a benchmark does on SIGTERM."""

from __future__ import annotations

import signal
import sys


def end_by_sigterm() -> None:
    """From now on, SIGTERM raises `SystemExit` in the main thread, so that `finally` blocks end what was started.

    By default SIGTERM ends a program at once, and the processes that it started live on. Only the main thread may call
    this.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
