"""A system that works in micro-batches, each of which ends in its checkpoint, as Structured Streaming does."""

from __future__ import annotations

import numpy as np

from models.replay.work import Array, Span, Spell


class MicroBatches:
    """A batch begins when the trigger fires, or at once where the one before it took longer; it is committed at its
    end.

    A fault takes back a share of the work of the batch that it strikes, and nothing between two batches. The batch that
    it cut off is done again, with the same records, as soon as the system is up.

    costs_s     c, (runs,)
    full_s      how long a batch takes if the system is saturated, c included, (runs,)
    interval_s  of the trigger, which fires at `trigger_s` + k interval_s; None: a batch begins when the last one ends
    load        how long the work of one second takes, c not included; from 1 on every batch is full
    lost_share  1: the whole batch is done again; less where the hosts that are left keep their part of it
    """

    def __init__(
        self,
        costs_s: Array,
        full_s: Array,
        *,
        interval_s: float | None = None,
        trigger_s: float = 0.0,
        load: float = 1.0,
        lost_share: float = 1.0,
    ) -> None:
        self._costs_s, self._full_s = costs_s, full_s
        self._interval_s, self._trigger_s, self._load = interval_s, trigger_s, load
        self._lost_share = lost_share
        self._length_s = np.full(costs_s.shape, np.nan)  # of the batch that a fault cut off, all of it
        self._kept_s = np.zeros(costs_s.shape)  # what faults left of it
        self._began_s = np.zeros(costs_s.shape)
        self._taken_s: Array | None = None  # what came until then is in some batch

    def until(self, up_s: Array, fault_s: Array, end_s: float) -> Spell:
        """See `Work`."""
        stop_s, fails = np.maximum(np.minimum(fault_s, end_s), up_s), fault_s < end_s
        if self._taken_s is None:
            self._taken_s = up_s - (self._interval_s or 0.0)
        lost_s, spans, start_s = np.zeros(up_s.shape), [], up_s
        self._lose(fails & (fault_s <= up_s), np.zeros(up_s.shape), lost_s)
        while (works := start_s < stop_s).any():
            done_s = start_s + self._begin(start_s, works)
            next_s = np.where(works, self._next(start_s, done_s), start_s)
            cut = works & (stop_s < done_s)
            worked_s = np.minimum(next_s, stop_s)
            costs = np.where(cut & fails, 0.0, self._costs_s / np.where(works, next_s - start_s, 1.0))
            spans.append(Span(start_s, worked_s, 1.0 - costs))
            self._lose(cut & fails, worked_s - start_s, lost_s)
            self._length_s[works & ~cut] = np.nan
            self._kept_s[works & ~cut] = 0.0
            start_s = worked_s
        return Spell(spans, lost_s, np.minimum(self._began_s, stop_s))

    def _begin(self, start_s: Array, works: np.ndarray) -> Array:
        """Begin a batch, or the one that was cut off again; returns how long it takes from now on."""
        fresh = works & np.isnan(self._length_s)
        length_s = self._full_s
        if self._load < 1.0:
            length_s = self._load * (start_s - self._taken_s) + self._costs_s
        self._length_s = np.where(fresh, length_s, self._length_s)
        self._began_s = np.where(fresh | (works & (self._kept_s == 0)), start_s, self._began_s)
        self._taken_s = np.where(fresh, start_s, self._taken_s)
        return self._length_s - self._kept_s

    def _next(self, start_s: Array, done_s: Array) -> Array:
        if self._interval_s is None:
            return done_s
        fires = np.floor((start_s - self._trigger_s) / self._interval_s) + 1.0
        return np.maximum(done_s, self._trigger_s + fires * self._interval_s)

    def _lose(self, struck: np.ndarray, worked_s: Array, lost_s: Array) -> None:
        """Take its share from what was done of the batch under way, where a fault struck."""
        at_risk_s = np.where(np.isnan(self._length_s), 0.0, self._kept_s + worked_s)
        lost_s += np.where(struck, self._lost_share * at_risk_s, 0.0)
        self._kept_s = np.where(struck, (1.0 - self._lost_share) * at_risk_s, self._kept_s)
