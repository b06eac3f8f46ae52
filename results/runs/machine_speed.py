"""How fast a processor is: pieces of the same work in a second of CPU time.

The class of a machine (`results.runs.machine`) does not say it: virtual machines of one class may differ by a fifth.
"""

from __future__ import annotations

import random
import time
from collections import Counter

SAME_SPEED = 1.1  # machines are taken to be equally fast if neither is faster than the other by more than this factor
PIECES = 150
NUMBERS = 20_000  # of a piece, which then takes some 7 ms: so short that one is undisturbed also beside other guests


def machine_speed() -> float:
    """Pieces of work that one core of this machine does in a second of CPU time; takes one or two seconds.

    The fastest piece counts: what else runs on the same core, also in another virtual machine, can only slow one down.
    """
    return 1 / min(_cpu_time_s() for _ in range(PIECES))


def are_alike(one: float | None, other: float | None) -> bool:
    """Whether two machines are equally fast, as far as is known: None is a speed that nobody measured."""
    return one is None or other is None or max(one, other) <= SAME_SPEED * min(one, other)


def _cpu_time_s() -> float:
    """The CPU time of a piece: to draw, sort and count numbers."""
    begun_s = time.thread_time()
    draw = random.Random(1)
    numbers = sorted(draw.random() for _ in range(NUMBERS))
    Counter(int(1000 * number) for number in numbers)
    return time.thread_time() - begun_s
