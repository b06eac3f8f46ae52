"""Hosts that are down while the others go on: how much slower the work is, and when it is done."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from models.replay.work import Array


class HostDowntimes:
    """Each host does an equal share of the work; one that is down does none of its own, and nobody does it instead.

    So the pace of a cluster of n hosts is (n - k) / n while k of them are down. A host that is struck while it is down
    is away for as long as the last strike says.

    hosts    n
    struck   which host each downtime is of, (downtimes,)
    from_s   when each host left, (downtimes,) or (runs, downtimes)
    until_s  when it would be back, if nothing struck it meanwhile; finite, (runs, downtimes)
    """

    def __init__(self, hosts: int, struck: npt.ArrayLike, from_s: npt.ArrayLike, until_s: Array) -> None:
        self._share = 1.0 / hosts
        self._starts_s = np.broadcast_to(np.asarray(from_s, dtype=float), until_s.shape)
        again_s = _struck_again(np.asarray(struck), self._starts_s)
        self._lengths_s = np.maximum(np.minimum(until_s, again_s) - self._starts_s, 0.0)
        self._turns_s = np.sort(np.concatenate([self._starts_s, self._starts_s + self._lengths_s], axis=1), axis=1)
        by_turns_s = np.stack([self._by(turn_s) for turn_s in self._turns_s.T], axis=1)
        self._by_turns_s = np.maximum.accumulate(by_turns_s, axis=1)  # where all are away, but for rounding

    def done(self, start_s: Array, end_s: Array) -> Array:
        """Work that is done between two moments [s of all hosts], (runs,)."""
        return self._by(end_s) - self._by(start_s)

    def end(self, start_s: Array, work_s: Array) -> Array:
        """When work is done that was begun at `start_s`, (runs,)."""
        due_s = self._by(start_s) + work_s
        runs, turns = self._turns_s.shape
        passed = (self._by_turns_s < due_s[:, np.newaxis]).sum(axis=1)
        each, before, after = np.arange(runs), np.maximum(passed - 1, 0), np.minimum(passed, turns - 1)
        turn_s, by_turn_s = self._turns_s[each, before], self._by_turns_s[each, before]
        amid = (passed > 0) & (passed < turns)  # of two turns; before the first and after the last all hosts work
        work_until_s = np.where(amid, self._by_turns_s[each, after] - by_turn_s, 1.0)
        until_s = np.where(amid, self._turns_s[each, after] - turn_s, 1.0)
        return turn_s + (due_s - by_turn_s) * until_s / work_until_s

    def _by(self, moment_s: Array) -> Array:
        """Work that would be done by a moment, had all hosts worked from 0 on but for these downtimes, (runs,)."""
        away_s = np.clip(moment_s[:, np.newaxis] - self._starts_s, 0.0, self._lengths_s)
        return moment_s - self._share * away_s.sum(axis=1)


def _struck_again(struck: npt.NDArray[np.int64], starts_s: Array) -> Array:
    """When the host of each downtime is struck the next time, inf if it never is; (runs, downtimes)."""
    found = np.full(starts_s.shape, np.inf)
    for number, host in enumerate(struck):
        of_host_s = starts_s[:, struck == host]
        later_s = np.where(of_host_s > starts_s[:, [number]], of_host_s, np.inf)
        found[:, number] = later_s.min(axis=1)
    return found
