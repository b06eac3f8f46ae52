"""Micro-batches whose stages consist of tasks, on hosts that die one by one while the others go on (mode `task`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from models.replay.micro_batches import next_batch_s
from models.replay.work import Array, Span, Spell

NOT_BEGUN, NO_TASK = np.inf, -np.inf


@dataclass(frozen=True)
class Stages:
    """What each batch consists of; one stage begins when the one before has ended.

    tasks   of each stage; all tasks of a stage are equally long
    shares  of the length of an undisturbed batch that each stage takes with all hosts. What is left is before the
            first stage, and the checkpoint after the last
    """

    tasks: tuple[int, ...]
    shares: tuple[float, ...]


@dataclass(frozen=True)
class Strike:
    """A fault on some hosts.

    hosts   which of them, (hosts,) or (runs, hosts); None: it stops the whole query, which goes on when `Work.until` is
            told to
    back_s  when they take tasks again; finite, (runs,)
    cold_s  what their first task of each stage then takes longer, (runs, stages)
    pace    how long the tasks of each stage take that are begun before that, on any host, as a share of the usual,
            (runs, stages): fewer hosts may share a machine, and tasks that moved read their state again
    """

    hosts: npt.NDArray[np.bool_] | None
    back_s: Array
    cold_s: Array
    pace: Array


class TaskBatches:
    """A batch begins when the trigger fires, or at once if the one before took longer. It is committed at its end.

    The tasks of a stage go to whichever core is free first. A host that dies takes the tasks that it is at,
    and the output of those that it has done, unless they were of the last stage: their results are out. What is missing
    of a stage is done again before the next stage goes on, after the tasks that other hosts are at. A host that is back
    is cold: its first task of each stage takes longer, and the others wait for it at the end of the stage.

    costs_s     c, (runs,)
    lengths_s   how long the batches take one after another if nothing strikes, c included, (batches,); the last one
                stands for all further
    hosts       n
    cores       of each host
    strikes     the faults in turn
    interval_s  of the trigger, which fires at `trigger_s` + k interval_s; None: a batch begins when the last one ends
    """

    def __init__(
        self,
        costs_s: Array,
        lengths_s: Array,
        stages: Stages,
        *,
        hosts: int,
        cores: int = 1,
        strikes: Sequence[Strike] = (),
        interval_s: float | None = None,
        trigger_s: float = 0.0,
    ) -> None:
        runs = len(costs_s)
        self._each, self._costs_s, self._lengths_s = np.arange(runs), costs_s, lengths_s
        self._stages, self._interval_s, self._trigger_s = stages, interval_s, trigger_s
        self._waves = -(-np.array(stages.tasks) // (hosts * cores))
        self._hosts, self._host_of = hosts, np.repeat(np.arange(hosts), cores)
        self._strikes, self._fault = strikes, 0
        self._free_s = np.full((runs, hosts * cores), -np.inf)
        self._cold_s = np.zeros((runs, hosts * cores, len(stages.tasks)))
        self._away_until_s, self._pace = np.full(runs, -np.inf), np.ones((runs, len(stages.tasks)))
        shape = (runs, len(stages.tasks), max(stages.tasks))
        self._no_task = np.arange(shape[2]) >= np.array(stages.tasks)[:, np.newaxis]
        self._done_s = np.full(shape, NO_TASK)
        self._core = np.full(shape, -1)
        self._batch = np.zeros(runs, dtype=int)  # under way, or the next one
        self._works = np.zeros(runs, dtype=bool)  # whether one is under way
        self._stopped = np.zeros(runs, dtype=bool)  # whether a fault stopped the query amid it
        self._began_s, self._from_s = np.zeros(runs), np.zeros(runs)  # it; the same without its warm-up
        self._struck_s = np.full(runs, np.inf)  # the first strike on it
        self._floor_s = np.full(runs, -np.inf)  # no task begins before
        self._idle_s = np.full(runs, -np.inf)  # since when none is under way
        self._next_s = np.full(runs, -np.inf)  # when the next one is due

    def until(self, ready_s: Array, up_s: Array, fault_s: Array, end_s: float) -> Spell:
        """See `Work`."""
        fails = fault_s < end_s
        stop_s = np.maximum(np.minimum(fault_s, end_s), up_s)
        limit_s = np.where(fails, stop_s, np.inf)  # the last batch goes on to its end, beyond the window
        spans, missing = list[Span](), list[Span]()
        self._resume(ready_s, up_s)
        goes_on = True
        while goes_on:
            spans.append(self._begin(up_s, stop_s))
            while self._assign(limit_s):
                pass
            goes_on = self._end(limit_s, spans, missing)
        again = fails & self._works & np.isfinite(self._struck_s)
        if fails.any() and (whole := self._strike(self._strikes[self._fault], fails, fault_s)):
            spans.append(whole)
            missing.append(whole)
        self._fault += 1
        return Spell(spans, np.zeros(stop_s.shape), stop_s, missing, again)

    def _resume(self, ready_s: Array, up_s: Array) -> None:
        """After a fault that stopped the whole query the batch is done again, and its warm-up belongs to it."""
        self._floor_s = np.maximum(self._floor_s, up_s)
        self._idle_s = np.maximum(self._idle_s, up_s)
        self._began_s = np.where(self._stopped, ready_s, self._began_s)
        self._from_s = np.where(self._stopped, up_s, self._from_s)
        self._stopped[:] = False

    def _begin(self, up_s: Array, stop_s: Array) -> Span:
        """Begin a batch where none is under way and the next one is due; returns the idle time before that."""
        since_s = self._idle_s
        start_s = np.maximum(since_s, self._next_s)
        begins, length_s = ~self._works & (start_s < stop_s), self._length_s()
        until_s = np.where(self._works, since_s, np.maximum(np.minimum(start_s, stop_s), since_s))
        head_s = np.maximum(length_s * (1.0 - sum(self._stages.shares)) - self._costs_s, 0.0)
        self._done_s[begins] = np.where(self._no_task, NO_TASK, NOT_BEGUN)
        for moment, value_s in ((self._began_s, start_s), (self._from_s, start_s), (self._floor_s, start_s + head_s)):
            moment[begins] = value_s[begins]
        self._struck_s[begins] = np.inf
        self._works |= begins
        self._idle_s = until_s
        return Span(since_s, until_s, np.ones(since_s.shape))

    def _length_s(self) -> Array:
        """How long the batch under way takes, or the next one, if no fault strikes it [s]."""
        return self._lengths_s[np.minimum(self._batch, len(self._lengths_s) - 1)]

    def _assign(self, limit_s: Array) -> bool:
        """Give one task to a core in each run where one can begin before its limit; whether there was any."""
        undone = self._done_s == NOT_BEGUN
        lacks = undone.any(axis=2)
        stage = self._needed(lacks)
        before_s = np.where(stage > 0, self._done_s[self._each, stage - 1].max(axis=1), NO_TASK)
        starts_s = np.maximum(self._free_s, np.maximum(self._floor_s, before_s)[:, np.newaxis])
        core = starts_s.argmin(axis=1)
        start_s = starts_s[self._each, core]
        gives = self._works & lacks[self._each, stage] & (start_s < limit_s)
        at = self._each[gives], stage[gives], undone[self._each, stage].argmax(axis=1)[gives]
        of = self._each[gives], core[gives], stage[gives]
        length_s = (self._length_s() * np.array(self._stages.shares)[stage] / self._waves[stage])[gives]
        pace = np.where(start_s < self._away_until_s, self._pace[self._each, stage], 1.0)[gives]
        self._done_s[at] = self._free_s[of[:2]] = start_s[gives] + pace * length_s + self._cold_s[of]
        self._core[at], self._cold_s[of] = core[gives], 0.0
        return bool(gives.any())

    def _needed(self, lacks: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
        """The stage that has to be worked on: the last one, or one whose output that needs, and that lacks some."""
        stage = np.full(len(lacks), lacks.shape[1] - 1)
        for later in range(lacks.shape[1] - 1, 0, -1):
            stage[(stage == later) & lacks[:, later] & lacks[:, later - 1]] = later - 1
        return stage

    def _end(self, limit_s: Array, spans: list[Span], missing: list[Span]) -> bool:
        """Commit the batches that are done before the limit; whether there was any.

        What such a batch took longer than it would have is lost: after the first strike on it, if there was one.
        """
        done_s = self._done_s[:, -1].max(axis=1)
        ends = self._works & (done_s + self._costs_s < limit_s)
        done_s = np.where(ends, done_s, self._from_s)
        useful_s = np.where(ends, np.maximum(self._length_s() - self._costs_s, 0.0), 0.0)
        from_s = self._from_s.copy()
        turn_s = np.clip(np.where(np.isfinite(self._struck_s), self._struck_s, from_s), from_s, done_s)
        before_s = np.minimum(turn_s - from_s, useful_s)
        for start_s, end_s, part_s in ((from_s, turn_s, before_s), (turn_s, done_s, useful_s - before_s)):
            spans.append(Span(start_s, end_s, np.ones(start_s.shape)))
            missing.append(Span(start_s, end_s, 1.0 - np.minimum(_over(part_s, end_s - start_s), 1.0)))
        committed_s = done_s + self._costs_s
        self._idle_s = np.where(ends, committed_s, self._idle_s)
        self._next_s = np.where(ends, self._next(committed_s), self._next_s)
        self._batch += ends
        self._works &= ~ends
        return bool(ends.any())

    def _next(self, committed_s: Array) -> Array:
        return next_batch_s(self._began_s, committed_s, self._interval_s, self._trigger_s)

    def _strike(self, strike: Strike, fails: npt.NDArray[np.bool_], fault_s: Array) -> Span | None:
        """Take from the batch under way what the fault undid; returns the time that a fault on the whole lost."""
        if strike.hosts is None:
            return self._stop(fails, fault_s)
        cores = np.broadcast_to(strike.hosts, (len(fails), self._hosts))[:, self._host_of] & fails[:, np.newaxis]
        lost = np.isfinite(self._done_s) & cores[self._each[:, np.newaxis, np.newaxis], self._core]
        lost[:, -1] &= self._done_s[:, -1] > fault_s[:, np.newaxis]
        self._done_s[lost] = NOT_BEGUN
        self._away_until_s = np.where(fails, np.maximum(self._away_until_s, strike.back_s), self._away_until_s)
        self._pace = np.where(fails[:, np.newaxis], strike.pace, self._pace)
        self._free_s = np.where(cores, strike.back_s[:, np.newaxis], self._free_s)
        self._cold_s = np.where(cores[:, :, np.newaxis], strike.cold_s[:, np.newaxis], self._cold_s)
        self._struck_s = np.where(fails, np.minimum(self._struck_s, fault_s), self._struck_s)
        self._floor_s = np.where(fails, np.maximum(self._floor_s, fault_s), self._floor_s)
        return None

    def _stop(self, fails: npt.NDArray[np.bool_], fault_s: Array) -> Span:
        """Nothing is left of the batch under way, and all hosts come back together; a batch begins at once then."""
        undone = fails & self._works
        self._done_s[undone] = np.where(self._no_task, NO_TASK, NOT_BEGUN)
        self._free_s[fails], self._cold_s[fails], self._struck_s[fails] = -np.inf, 0.0, np.inf
        self._next_s[fails], self._away_until_s[fails], self._stopped[undone] = -np.inf, -np.inf, True
        self._floor_s[fails] = self._idle_s[fails] = fault_s[fails]  # it may strike before an earlier restart is over
        return Span(np.where(undone, np.minimum(self._from_s, fault_s), fault_s), fault_s.copy(), np.ones(fails.shape))


def _over(part_s: Array, length_s: Array) -> Array:
    """The share that a part has of a length; 0 of no length."""
    return np.where(length_s > 0, part_s / np.where(length_s > 0, length_s, 1.0), 0.0)
