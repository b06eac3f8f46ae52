"""Keeps Python's garbage collector away from state, which it would search over and over while the slot stands still."""

from __future__ import annotations

import gc

SETTLE_S = 1.0


class LongLived:
    """What has lived for a while will live on, and is not searched any more until the session ends.

    State has no cycles, so it is freed without a search. What is left behind in a cycle after it has settled is freed
    at the end of the session: the newest objects are searched before they settle, so this is little.
    """

    def __init__(self) -> None:
        self._next_s = 0.0

    def on_clock(self, now_s: float) -> None:
        """Let objects settle once a second; by the monotonic clock."""
        if now_s >= self._next_s:
            self._next_s = now_s + SETTLE_S
            settle()

    def end(self) -> None:
        """The session is over: everything is searched again."""
        gc.unfreeze()


def settle() -> None:
    """Search what is new for garbage, and nothing of what is left ever again."""
    gc.collect(1)
    gc.freeze()
