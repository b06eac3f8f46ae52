"""A system that takes its checkpoints at borders of event time, as protocol `batch-aligned` of the testbed does."""

from __future__ import annotations

import numpy as np

from models.replay.periods import Periods
from models.replay.work import Array


class Borders(Periods):
    """Border k ends the records that are due before `border_s` + k `interval_s`; who has read them has come to it.

    Without a backlog that is at that very moment. With one it is later, and borders follow each other faster until the
    system has caught up. If the load is more than it can take, they follow each other more slowly for ever. A fault
    takes back what was read beyond the last border whose checkpoint is complete.

    interval_s  from border to border, in the time at which records are due
    border_s    one of the borders
    costs_s     c of each border, (runs,)
    lags_s      from when a border is reached until its checkpoint is complete, (runs,)
    load        how long the work of one second takes, checkpoints included; finite
    behind_s    how far the system is behind at first, in the time at which records are due, (runs,)
    """

    def __init__(
        self, interval_s: float, border_s: float, costs_s: Array, lags_s: Array, load: float, behind_s: Array
    ) -> None:
        super().__init__(interval_s, costs_s, lags_s)
        self._border_s, self._costs_s, self._load = border_s, costs_s, load
        self._backlog_s = load * behind_s

    def _kept(self, up_s: Array, stop_s: Array) -> Array:
        behind_s = self._backlog_s / self._load
        from_s = up_s - behind_s  # what is due before that has been read
        read_s = self._read(np.maximum(stop_s - up_s - self._lags_s, 0.0))
        borders = np.floor((from_s + read_s - self._border_s) / self._interval_s)
        away_s = self._border_s + borders * self._interval_s - from_s
        return np.maximum(np.maximum(away_s * self._load, away_s - behind_s), 0.0)

    def _share(self, begin_s: Array, end_s: Array) -> Array:
        """One that catches up meets more borders in the same time, and pays for each."""
        length_s = np.where(end_s > begin_s, end_s - begin_s, 1.0)
        return 1.0 - self._costs_s / self._interval_s * (self._read(end_s) - self._read(begin_s)) / length_s

    def _read(self, runs_s: Array) -> Array:
        """How much is read in the first `runs_s` seconds of a spell, in the time at which records are due."""
        return self._done(runs_s) / self._load
