"""A system that works in micro-batches, each of which ends in its checkpoint, as Structured Streaming does."""

from __future__ import annotations

import numpy as np

from models.replay.work import Array, Span, Spell

ROUNDING_S = 1e-3  # a batch that starts with the trigger does not start before it


class MicroBatches:
    """A batch begins when the trigger fires, or at once if the one before took longer. It is committed at its end.

    A fault takes back the work of the batch that it strikes, and nothing between two batches. The batch that it cut
    off is done again, with the same records, as soon as the system is up.

    costs_s     c, (runs,)
    lengths_s   how long the batches take one after another, c included, (batches,); the last one stands for all further
    interval_s  of the trigger, which fires at `trigger_s` + k interval_s; None: a batch begins when the last one ends
    commits_s   when each batch was committed in the run that is replayed, (batches,): one that a fault cut off there is
                cut off here, too, though it had lasted as long as it did when it was done again
    """

    def __init__(
        self,
        costs_s: Array,
        lengths_s: Array,
        *,
        interval_s: float | None = None,
        trigger_s: float = 0.0,
        commits_s: Array | None = None,
    ) -> None:
        self._costs_s, self._lengths_s = costs_s, lengths_s
        self._interval_s, self._trigger_s = interval_s, trigger_s
        self._commits_s = np.zeros(lengths_s.shape) if commits_s is None else commits_s
        self._batch = np.zeros(costs_s.shape, dtype=int)  # under way, or the next one

    def until(self, ready_s: Array, up_s: Array, fault_s: Array, end_s: float) -> Spell:
        """See `Work`."""
        stop_s, fails = np.maximum(np.minimum(fault_s, end_s), up_s), fault_s < end_s
        lost_s, since_s, spans = np.zeros(up_s.shape), stop_s.copy(), list[Span]()
        start_s, began_s = up_s, ready_s  # after a restart a batch begins at once, and its warm-up belongs to it
        while (works := start_s < stop_s).any():
            batch = np.minimum(self._batch, len(self._lengths_s) - 1)
            done_s = start_s + self._lengths_s[batch]
            done_s[self._commits_s[batch] > fault_s] = np.inf
            next_s = np.where(works, self._next(began_s, done_s), start_s)
            cut = works & (stop_s < done_s)
            worked_s = np.minimum(next_s, stop_s)
            costs = np.where(cut & fails, 0.0, self._costs_s / np.where(next_s > start_s, next_s - start_s, 1.0))
            spans.append(Span(start_s, worked_s, 1.0 - costs))
            lost_s = np.where(cut & fails, worked_s - start_s, lost_s)
            since_s = np.where(cut & fails, start_s, since_s)
            self._batch += works & ~cut
            began_s = start_s = worked_s
        return Spell(spans, lost_s, since_s)

    def _next(self, began_s: Array, done_s: Array) -> Array:
        return next_batch_s(began_s, done_s, self._interval_s, self._trigger_s)


def next_batch_s(began_s: Array, done_s: Array, interval_s: float | None, trigger_s: float) -> Array:
    """When the batch after one that began and ended then begins; see `MicroBatches`."""
    if interval_s is None:
        return done_s
    fires = np.floor((began_s - trigger_s + ROUNDING_S) / interval_s) + 1.0
    return np.maximum(done_s, trigger_s + fires * interval_s)
