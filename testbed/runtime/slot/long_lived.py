"""Keeps Python's garbage collector from searching state over and over, while the slot stands still."""

from __future__ import annotations

import gc

SETTLE_S = 0.1  # the longer, the more new objects there are to search: 100,000 take some 20 ms


class LongLived:
    """What has lived for a while will live on, and is not searched any more until the session ends.

    A partition that ends lets go of its state and of all frames that it keeps, which are then freed without a search.
    What else it leaves in cycles, as whatever ends after it has settled, is freed at the end of the session.
    """

    def __init__(self) -> None:
        self._next_s = 0.0

    def on_clock(self, now_s: float) -> None:
        """Let objects settle ten times a second; by the monotonic clock."""
        if now_s >= self._next_s:
            self._next_s = now_s + SETTLE_S
            settle()

    def end(self) -> None:
        """The session is over: search everything, and free what it has left."""
        gc.unfreeze()
        gc.collect()


def settle() -> None:
    """Search what is new for garbage, and exclude all that is left from later searches."""
    gc.collect(1)
    gc.freeze()
