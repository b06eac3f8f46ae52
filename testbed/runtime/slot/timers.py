"""When the partitions of a slot report their progress and take their checkpoints."""

from __future__ import annotations

from math import inf

PROGRESS_S = 0.2
DRAINING_INTERVAL_S = 0.25


class Timers:
    """All times are of the monotonic clock [s].

    The partitions of a slot have one checkpoint timer. Those of all slots begin together and keep step unless the
    experiment staggers them, since checkpoints that are far apart in time do not fit together: what one has sent after
    its own, another has received before its own.

    interval_s   between checkpoints
    in_turn      how many slots take theirs one after the other, evenly spread over the interval; 1: all keep step
    """

    def __init__(self, interval_s: float, in_turn: int = 1) -> None:
        self.interval_s, self._in_turn, self._first_share = interval_s, in_turn, 1.0
        self._next_progress_s, self._next_checkpoint_s = 0.0, inf

    def begin(self, seat: int) -> None:
        """An epoch begins for the slot in this seat: no checkpoint is due until it starts."""
        self._next_checkpoint_s = inf
        self._first_share = (1 + seat % self._in_turn) / self._in_turn

    def start(self, now_s: float) -> None:
        """The first checkpoints of an epoch are due after an interval, or the slot's part of it, unless they are due
        before."""
        self._next_checkpoint_s = min(self._next_checkpoint_s, now_s + self._first_share * self.interval_s)

    def hurry(self, now_s: float) -> None:
        """Checkpoints come fast from now on."""
        self.interval_s = min(self.interval_s, DRAINING_INTERVAL_S)
        self.start(now_s)

    def progress_due(self, now_s: float) -> bool:
        """Whether it is time to tell progress; says so once each time."""
        due = now_s >= self._next_progress_s
        if due:
            self._next_progress_s = now_s + PROGRESS_S
        return due

    def checkpoint_due(self, now_s: float) -> bool:
        """Whether it is time for checkpoints; says so once each time.

        A slot that was stopped for several intervals makes up for one checkpoint, and then is in step with the others.
        """
        due = self._next_checkpoint_s <= now_s
        if due:
            self._next_checkpoint_s += self.interval_s * (1 + (now_s - self._next_checkpoint_s) // self.interval_s)
        return due
