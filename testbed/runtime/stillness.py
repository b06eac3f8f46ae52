"""Detects that a dataflow with a cycle has finished: nothing moves and nothing is in flight.

By two counts of all frames, one after the other (the four counters of F. Mattern, "Algorithms for distributed
termination detection", Distributed Computing 2, 1987): if in the second as many had been sent as in the first had been
processed, and the sources had ended before, then nothing was on its way when the first count was over. Partitions do
nothing without a frame, so nothing ever will be.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass


@dataclass(frozen=True)
class Counts:
    """What a slot has counted when it had heard of count number `asked`; its partitions are in `epoch`.

    sent, processed   frames of its partitions, on all channels
    ended             whether all of its sources have
    """

    epoch: int = -1
    asked: int = 0
    sent: int = 0
    processed: int = 0
    ended: bool = False


class Stillness:
    """The coordinator's side: which count is to be asked of the slots next, and whether the end is `found`."""

    def __init__(self) -> None:
        self.asking, self.found = 0, False
        self._epoch = -1
        self._before: int | None = None

    def hear(self, epoch: int, slots: Set[str], counts: Mapping[str, Counts]) -> bool:
        """The latest counts of all who are there, in this epoch; returns whether `asking` has become another count."""
        if epoch != self._epoch:
            self._epoch, self._before, self.found = epoch, None, False
            self.asking += 1
            return True
        answers = [counts[slot] for slot in slots]
        if self.found or any((each.epoch, each.asked) != (epoch, self.asking) for each in answers):
            return False
        sent = sum(each.sent for each in answers)
        self.found = self._before is not None and sent == self._before
        self._before = sum(each.processed for each in answers) if all(each.ended for each in answers) else None
        self.asking += 1
        return True
