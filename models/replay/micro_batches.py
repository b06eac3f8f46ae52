"""A system that works in micro-batches, each of which ends in its checkpoint, as Structured Streaming does."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from models.replay.work import Array, Span, Spell

ROUNDING_S = 1e-3  # a batch that starts with the trigger does not start before it


class MicroBatches:
    """A batch begins when the trigger fires, or at once if the one before took longer. It is committed at its end.

    A fault takes back a share of the work of the batch that it strikes, and nothing between two batches. The batch that
    it cut off is done again, with the same records, as soon as the system is up.

    costs_s     c, (runs,)
    lengths_s   how long the batches take one after another, c included, (batches,); the last one stands for all further
    interval_s  of the trigger, which fires at `trigger_s` + k interval_s; None: a batch begins when the last one ends
    commits_s   when each batch was committed in the run that is replayed, (batches,): one that a fault cut off there is
                cut off here, too, though it had lasted as long as it did when it was done again
    lost_shares of each fault in turn, (faults,); the last one stands for all further. 1: the whole batch is done again;
                less where the hosts that are left keep their part of it
    """

    def __init__(
        self,
        costs_s: Array,
        lengths_s: Array,
        *,
        interval_s: float | None = None,
        trigger_s: float = 0.0,
        commits_s: Array | None = None,
        lost_shares: npt.ArrayLike = 1.0,
    ) -> None:
        self._costs_s, self._lengths_s = costs_s, lengths_s
        self._interval_s, self._trigger_s = interval_s, trigger_s
        self._commits_s = np.zeros(lengths_s.shape) if commits_s is None else commits_s
        self._lost_shares, self._fault = np.atleast_1d(lost_shares), 0
        self._batch = np.zeros(costs_s.shape, dtype=int)  # under way, or the next one
        self._kept_s = np.zeros(costs_s.shape)  # what faults left of it
        self._began_s = np.zeros(costs_s.shape)  # since when that has been worked on

    def until(self, ready_s: Array, up_s: Array, fault_s: Array, end_s: float) -> Spell:
        """See `Work`."""
        stop_s, fails = np.maximum(np.minimum(fault_s, end_s), up_s), fault_s < end_s
        lost_s, spans, start_s = np.zeros(up_s.shape), [], up_s
        began_s = ready_s  # the first batch has begun then, its warm-up included
        self._lose(fails & (fault_s <= up_s), np.zeros(up_s.shape), lost_s)
        while (works := start_s < stop_s).any():
            self._began_s = np.where(works & (self._kept_s == 0), start_s, self._began_s)
            batch = np.minimum(self._batch, len(self._lengths_s) - 1)
            done_s = start_s + self._lengths_s[batch] - self._kept_s
            done_s[self._commits_s[batch] > fault_s] = np.inf
            next_s = np.where(works, self._next(began_s, done_s), start_s)
            cut = works & (stop_s < done_s)
            worked_s = np.minimum(next_s, stop_s)
            costs = np.where(cut & fails, 0.0, self._costs_s / np.where(works, next_s - start_s, 1.0))
            spans.append(Span(start_s, worked_s, 1.0 - costs))
            self._lose(cut & fails, worked_s - start_s, lost_s)
            self._batch += works & ~cut
            self._kept_s[works & ~cut] = 0.0
            began_s = start_s = worked_s
        self._fault += 1
        return Spell(spans, lost_s, np.minimum(self._began_s, stop_s))

    def _next(self, began_s: Array, done_s: Array) -> Array:
        if self._interval_s is None:
            return done_s
        fires = np.floor((began_s - self._trigger_s + ROUNDING_S) / self._interval_s) + 1.0
        return np.maximum(done_s, self._trigger_s + fires * self._interval_s)

    def _lose(self, struck: np.ndarray, worked_s: Array, lost_s: Array) -> None:
        """Take its share from what was done of the batch under way, where a fault struck."""
        lengths_s = self._lengths_s[np.minimum(self._batch, len(self._lengths_s) - 1)]
        share, at_risk_s = self._lost_shares[min(self._fault, len(self._lost_shares) - 1)], self._kept_s + worked_s
        if share < 1.0:  # the rest of a batch that some hosts have done is no longer than the batch
            at_risk_s = np.minimum(at_risk_s, lengths_s)
        lost_s += np.where(struck, share * at_risk_s, 0.0)
        self._kept_s = np.where(struck, (1.0 - share) * at_risk_s, self._kept_s)
