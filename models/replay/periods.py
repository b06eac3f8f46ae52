"""A system that works in periods of T and goes on while it checkpoints, as the paper has it and the testbed does."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from models.replay.work import Array, Span, Spell


class Periods:
    """Periods begin when the system is up; a fault takes back all work since the last complete checkpoint.

    interval_s  T, checkpoint included
    costs_s     c, (runs,)
    lags_s      from the end of a period until its checkpoint is complete, (n - 1) delta, (runs,)
    load        how long the work of one second takes, checkpoints included; from 1 on the system is never idle
    lost_shares of each fault in turn, (faults,); the last one stands for all further. Less than 1 where the hosts that
                are left keep their part of the work
    """

    def __init__(
        self,
        interval_s: float,
        costs_s: Array,
        lags_s: Array,
        load: float = 1.0,
        lost_shares: npt.ArrayLike = 1.0,
    ) -> None:
        self._lost_shares, self._fault = np.atleast_1d(lost_shares), 0
        self._interval_s, self._lags_s, self._load = interval_s, lags_s, min(load, 1.0)
        self._useful = 1.0 - costs_s / interval_s
        self._backlog_s = np.zeros(costs_s.shape)  # work that is due and not done
        self._seen_s: Array | None = None  # when it was so much

    def until(self, ready_s: Array, up_s: Array, fault_s: Array, end_s: float) -> Spell:
        """See `Work`."""
        stop_s = np.maximum(np.minimum(fault_s, end_s), up_s)
        if self._seen_s is not None:
            self._backlog_s += self._load * (up_s - self._seen_s)
        runs_s, fails = stop_s - up_s, fault_s < end_s
        safe_s = self._kept(up_s, stop_s)
        share = self._lost_shares[min(self._fault, len(self._lost_shares) - 1)]
        lost_s = np.where(fails, share * (self._done(runs_s) - self._done(safe_s)), 0.0)
        since_s = up_s + safe_s
        after = np.where(fails, 1.0, self._share(safe_s, runs_s))
        spans = [Span(up_s, since_s, self._share(np.zeros(up_s.shape), safe_s)), Span(since_s, stop_s, after)]
        self._backlog_s += self._load * runs_s - self._done(runs_s) + lost_s
        self._seen_s = stop_s
        self._fault += 1
        return Spell(spans, lost_s, since_s)

    def _kept(self, up_s: Array, stop_s: Array) -> Array:
        """How long into a spell the last checkpoint was taken that is complete when the spell stops."""
        complete = np.floor((stop_s - up_s - self._lags_s) / self._interval_s)
        return np.maximum(complete, 0.0) * self._interval_s

    def _share(self, begin_s: Array, end_s: Array) -> Array:
        """How much of this part of a spell is left beside checkpoints."""
        return self._useful

    def _done(self, runs_s: Array) -> Array:
        """Work that is done in the first `runs_s` seconds of a spell: the backlog at full speed, then new input."""
        return np.minimum(runs_s, self._backlog_s + self._load * runs_s)


class Rounds(Periods):
    """Checkpoints are taken by a clock that no recovery sets back, at times that are known; (rounds,) each, ascending.

    taken_s     when the checkpoint of a round was taken
    complete_s  when it was complete
    """

    def __init__(self, interval_s: float, costs_s: Array, taken_s: Array, complete_s: Array, load: float = 1.0) -> None:
        super().__init__(interval_s, costs_s, np.zeros(costs_s.shape), load)
        self._taken_s, self._complete_s = np.append(-np.inf, taken_s), complete_s

    def _kept(self, up_s: Array, stop_s: Array) -> Array:
        last_s = self._taken_s[np.searchsorted(self._complete_s, stop_s, side="right")]
        return np.maximum(last_s - up_s, 0.0)
