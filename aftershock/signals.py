"""One way to end a command: Ctrl-C, a termination signal and a hang-up of the terminal are handled alike."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def interrupting() -> Iterator[None]:
    """Every ending signal raises `KeyboardInterrupt` meanwhile."""
    with _handled(signal.default_int_handler):
        yield


@contextmanager
def ignored() -> Iterator[None]:
    """Ending signals do nothing meanwhile: a second Ctrl-C must not cut a clean-up short."""
    with _handled(signal.SIG_IGN):
        yield


@contextmanager
def _handled(handler: Any) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number in ENDING}
    try:
        yield
    finally:
        for number, handled in before.items():
            signal.signal(number, handled)


def signal_group(group: int, number: signal.Signals) -> None:
    """Send a signal to a process group; a group of which nobody is left is fine."""
    with suppress(ProcessLookupError):
        os.killpg(group, number)
