"""When the partitions of a slot report their progress and take their checkpoints."""

from __future__ import annotations

from math import inf

PROGRESS_S = 0.2
DRAINING_INTERVAL_S = 0.25


class Timers:
    """All times are of the monotonic clock [s].

    The partitions of a slot have one checkpoint timer, and those of all slots begin together and keep step, since
    checkpoints that are far apart in time do not fit together: what one has sent after its own, another has received
    before its own.

    interval_s   between checkpoints
    """

    def __init__(self, interval_s: float) -> None:
        self.interval_s = interval_s
        self._next_progress_s, self._next_checkpoint_s = 0.0, inf

    def start(self, now_s: float) -> None:
        """The first checkpoints of an epoch are due after an interval, unless they are due before."""
        self._next_checkpoint_s = min(self._next_checkpoint_s, now_s + self.interval_s)

    def stop(self) -> None:
        """No checkpoint is due until the next `start`."""
        self._next_checkpoint_s = inf

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
