"""A system that works in micro-batches, each of which ends in its checkpoint, as Structured Streaming does."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from models.replay.downtimes import HostDowntimes
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
    downtimes   of hosts, while the others go on with the batch; None: the system works with all hosts, or not at all
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
        downtimes: HostDowntimes | None = None,
    ) -> None:
        self._downtimes = downtimes
        self._costs_s, self._lengths_s = costs_s, lengths_s
        self._interval_s, self._trigger_s = interval_s, trigger_s
        self._commits_s = np.zeros(lengths_s.shape) if commits_s is None else commits_s
        self._lost_shares, self._fault = np.atleast_1d(lost_shares), 0
        self._batch = np.zeros(costs_s.shape, dtype=int)  # under way, or the next one
        self._kept_s = np.zeros(costs_s.shape)  # what faults left of it
        self._began_s = np.zeros(costs_s.shape)  # since when that has been worked on
        self._next_s = np.full(costs_s.shape, -np.inf)  # when the next batch is due, if none is under way
        self._idle_share = np.ones(costs_s.shape)  # of the time until then, what is left beside its checkpoint

    def until(self, ready_s: Array, up_s: Array, fault_s: Array, end_s: float) -> Spell:
        """See `Work`."""
        stop_s, fails = np.maximum(np.minimum(fault_s, end_s), up_s), fault_s < end_s
        lost_s, missing = np.zeros(up_s.shape), list[Span]()
        start_s, began_s, spans = self._resume(ready_s, up_s, stop_s)
        self._lose(fails & (fault_s <= up_s), np.zeros(up_s.shape), lost_s)
        while (works := start_s < stop_s).any():
            self._began_s = np.where(works & (self._kept_s == 0), start_s, self._began_s)
            batch = np.minimum(self._batch, len(self._lengths_s) - 1)
            done_s = self._end(start_s, self._lengths_s[batch] - self._kept_s)
            done_s[self._commits_s[batch] > fault_s] = np.inf
            next_s = np.where(works, self._next(began_s, done_s), start_s)
            cut = works & (stop_s < done_s)
            worked_s = np.minimum(next_s, stop_s)
            costs = np.where(cut & fails, 0.0, self._costs_s / np.where(next_s > start_s, next_s - start_s, 1.0))
            self._next_s = np.where(works & ~cut, next_s, self._next_s)
            self._idle_share = np.where(works, 1.0 - costs, self._idle_share)
            spans.append(Span(start_s, worked_s, 1.0 - costs))
            until_s = np.minimum(worked_s, done_s)
            done_of_it_s = self._done(start_s, until_s)
            missing.append(Span(start_s, until_s, _lacking(until_s - start_s, done_of_it_s)))
            self._lose(cut & fails, done_of_it_s, lost_s)
            self._batch += works & ~cut
            self._kept_s[works & ~cut] = 0.0
            began_s = start_s = worked_s
        self._fault += 1
        return Spell(spans, lost_s, np.minimum(self._began_s, stop_s), missing if self._downtimes else [])

    def _resume(self, ready_s: Array, up_s: Array, stop_s: Array) -> tuple[Array, Array, list[Span]]:
        """When work goes on, since when its batch is under way, and the idle time before that.

        After a restart a batch begins at once, and its warm-up belongs to it. Hosts that go on wait for the trigger, or
        are amid a batch that began before.
        """
        if self._downtimes is None:
            return up_s, ready_s, []
        start_s = np.minimum(np.maximum(up_s, self._next_s), stop_s)
        began_s = np.where(self._kept_s > 0, self._began_s, start_s)
        return start_s, began_s, [Span(up_s, start_s, self._idle_share)]

    def _end(self, start_s: Array, work_s: Array) -> Array:
        return self._downtimes.end(start_s, work_s) if self._downtimes else start_s + work_s

    def _done(self, start_s: Array, end_s: Array) -> Array:
        return self._downtimes.done(start_s, end_s) if self._downtimes else end_s - start_s

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


def _lacking(length_s: Array, done_s: Array) -> Array:
    """The share of a time in which nothing was done."""
    return np.where(length_s > 0, 1.0 - done_s / np.where(length_s > 0, length_s, 1.0), 0.0)
