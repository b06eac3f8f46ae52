"""The checkpoint and restart process under given failures: many runs at once, a block of failures at a time.

Source: sections 3 and 4 of the `utilization` paper, re-derived from failure times alone, so that it holds for any law.
After a failure at s the system is up again at s + R, unless a failure comes first and starts the recovery again. From
then on it works in periods of T, and the checkpoint of period k is complete (n - 1) delta after the period's end, at
s + R + k T + (n - 1) delta. The next failure, at f, takes back all periods without a complete checkpoint. So the work
of floor((f - s - R - (n - 1) delta) / T) periods is kept, none if that is negative: also where f cuts the recovery
short, and where (n - 1) delta is longer than T.

Over exponential gaps the mean of that floor is the sum over k of exp(-L (R + (n - 1) delta + k T)); L (T - c) times
it is eq. 10.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from models.simulation.laws import Times

NEGLIGIBLE = 1e-18  # of the window: a shorter period keeps all work at once, to the last digit


@dataclass(frozen=True)
class CheckpointProcess:
    """The process of section 4; times in any one unit, not validated.

    interval  T, the length of a period with its checkpoint; above checkpoint_cost
    delay     (n - 1) delta, from the end of a period until its checkpoint is complete
    """

    interval: float
    checkpoint_cost: float
    recovery_time: float
    delay: float = 0.0

    def utilizations(self, failures: Iterable[Times], window: float) -> Times:
        """The useful share of [0, window], (runs,), between 0 and 1.

        failures  blocks of failure times, each (any number, runs), ascending down a column and from block to block.
                  A run begins with its first failure, which should not come after time 0. Blocks are taken until
                  every run has failed after the window, or until there is no more: then the last period succeeds.

        If an edge of the window cuts a period, the part within the window counts, less the same part of one
        checkpoint. It counts only if the checkpoint of the period completes, even after the window. So whether an
        instant is useful does not depend on the window, and failures that are in their steady state at time 0 give
        the long-run utilization without bias.
        """
        interval = max(self.interval, NEGLIGIBLE * window)
        kept = np.zeros(1)
        for block in _joined(failures):
            kept = kept + self._kept(block, window, interval)
            if block[-1].min() >= window:
                break
        return kept / window * ((self.interval - self.checkpoint_cost) / self.interval)

    def _kept(self, failures: Times, window: float, interval: float) -> Times:
        """How long each run worked in periods between the given failures that were not taken back, (runs,)."""
        with np.errstate(over="ignore"):
            up = failures[:-1] + self.recovery_time
            ends = failures[1:] - up  # becomes, in place, where the work of a spell that is kept ends
            ends -= self.delay
            ends /= interval
        np.floor(ends, out=ends)
        np.maximum(ends, 0.0, out=ends)
        ends *= interval
        ends += up
        np.clip(ends, 0.0, window, out=ends)
        np.clip(up, 0.0, window, out=up)
        return (ends - up).sum(axis=0)


def _joined(blocks: Iterable[Times]) -> Iterator[Times]:
    """Each block after the last failures of the block before it; at the end the last failures of all, and no more."""
    last: Times | None = None
    for block in blocks:
        yield block if last is None else np.concatenate([last[np.newaxis], block])
        last = block[-1]
    if last is not None:
        yield np.stack([last, np.full_like(last, np.inf)])
