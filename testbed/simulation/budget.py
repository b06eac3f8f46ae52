"""How long a partition of a simulated run may save parts of its state: drawn at random, since there is no clock."""

from __future__ import annotations

from random import Random

from testbed.output_log.partition import Budget

BEGINS, MORE, MOST = 0.5, 0.7, 3


class DrawnBudget(Budget):
    """After half of the frames there is time, mostly for a few parts."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def begins(self) -> bool:
        return self._random.random() < BEGINS

    def more(self) -> int:
        return self._random.randint(1, MOST) if self._random.random() < MORE else 0
