"""A wrong model of batches of tasks, for tests of whether the error is noticed."""

from __future__ import annotations

import numpy as np

from models.replay.task_batches import Strike, TaskBatches


class KeepingHosts(TaskBatches):
    """Hosts keep what they hold when they are struck, as the cluster does with a share for each host."""

    def _strike(self, strike: Strike, fails: np.ndarray, fault_s: np.ndarray) -> None:
        held_s, cores = self._done_s.copy(), self._core.copy()
        super()._strike(strike, fails, fault_s)
        kept = np.isfinite(held_s) & (held_s <= fault_s[:, np.newaxis, np.newaxis])
        self._done_s[kept], self._core[kept] = held_s[kept], cores[kept]
