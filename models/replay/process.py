"""The checkpoint-and-restart process under faults that are known: what one run of the model measures.

Source: sections 3 and 4 of the `utilization` paper. Eq. 10 is the mean over all that exponential failures may do. One
run sees one draw of them, and with few failures the luck of that draw moves utilization far more than an error of the
model does. A replay takes the draw as given. What is then left between measured and replayed is the scatter of single
recoveries and checkpoints, and what the model gets wrong.

After a fault the system is ready to work again R later. A fault during the recovery starts it again. The first work
then takes longer than usual (the warm-up). How the system works, and what a fault takes back, is in `periods` and
`micro_batches`.

Work that no fault took back counts as useful. So does idle time; checkpoints do not. These are the terms of a run's
ledger. Work that an edge of the window cuts is charged its part of one checkpoint.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from models.replay.work import Array, Span, Spell, Work


@dataclass(frozen=True)
class Faults:
    """When faults struck and how long the system took to come back, in each run [s]; (runs, faults).

    struck_s    ascending, from the start of the window; inf where a run has fewer faults than others
    restarts_s  from then until the system is ready to work, if no other fault strikes meanwhile
    warm_ups_s  from ready until it works at its usual pace
    """

    struck_s: Array
    restarts_s: Array
    warm_ups_s: Array


@dataclass(frozen=True)
class ReplayResult:
    """What the replays measure within the window; the second index is that of the fault that began an outage.

    utilizations  (runs,)
    down_s        (runs, faults), from the fault until the system was ready
    warm_up_s     (runs, faults)
    lost_s        (runs, faults), work that the faults of the outage took back, or that hosts did not do that were away
    spans         how useful the time was
    """

    utilizations: Array
    down_s: Array
    warm_up_s: Array
    lost_s: Array
    spans: list[Span]

    def useful_by(self, moments_s: Array) -> Array:
        """Useful time from the start of the window until each of these moments [s], mean of all runs; same shape.

        moments_s  ascending
        """
        total = np.zeros(moments_s.shape)
        for span in self.spans:
            begin, end = np.searchsorted(moments_s, [span.start_s.min(), span.end_s.max()])
            reached_s = np.clip(moments_s[begin:end, np.newaxis], span.start_s, span.end_s)
            total[begin:end] += ((reached_s - span.start_s) * span.share).mean(axis=1)
            total[end:] += ((span.end_s - span.start_s) * span.share).mean()
        return total


def replay(work: Work, faults: Faults, window_s: float, since_s: Array) -> ReplayResult:
    """Replay [0, window_s] in every run at once; the run ends well at window_s.

    since_s  when the period or batch began that is under way as the window opens, 0 or before, (runs,)
    """
    outages = _Outages(faults, window_s, since_s)
    for fault in range(faults.struck_s.shape[1]):
        outages.strike(fault, work.until(outages.ready_s, outages.up_s, faults.struck_s[:, fault], window_s))
    return outages.end(work.until(outages.ready_s, outages.up_s, np.full(since_s.shape, np.inf), window_s))


class _Outages:
    """The accounts of all runs, from fault to fault."""

    def __init__(self, faults: Faults, window_s: float, since_s: Array) -> None:
        self._faults, self._window_s = faults, window_s
        self._down_from_s = self.ready_s = self.up_s = since_s
        self._first = np.zeros(since_s.shape, dtype=int)  # the fault that began the outage
        self._down_s, self._warm_up_s, self._lost_s = (np.zeros(faults.struck_s.shape) for _ in range(3))
        self._spans: list[Span] = []

    def strike(self, fault: int, spell: Spell) -> None:
        """Stop work, and begin a recovery, or begin it again; a run without this fault is over."""
        given = self._faults
        struck_s = np.minimum(given.struck_s[:, fault], self._window_s)
        happens, begins = struck_s < self._window_s, struck_s >= self.ready_s
        self._close(spell, struck_s, happens)
        self._first = np.where(begins & ~np.asarray(spell.again), fault, self._first)
        self._lose(spell.since_s, struck_s, spell.lost_s)
        cold = begins & happens & (struck_s < self.up_s)  # what was done of the first batch, which was slow
        self._lose(self.ready_s, struck_s, np.where(cold, struck_s - self.ready_s, 0.0), was_useful=False)
        self._down_from_s = struck_s
        self.ready_s = np.where(happens, struck_s + given.restarts_s[:, fault], self._window_s)
        self.up_s = np.where(happens, self.ready_s + given.warm_ups_s[:, fault], self._window_s)

    def end(self, spell: Spell) -> ReplayResult:
        self._close(spell, np.full(self.up_s.shape, self._window_s), np.zeros(self.up_s.shape, dtype=bool))
        useful_s = sum(((span.end_s - span.start_s) * span.share for span in self._spans), np.zeros(self.up_s.shape))
        utilizations = np.maximum(useful_s, 0.0) / self._window_s
        return ReplayResult(utilizations, self._down_s, self._warm_up_s, self._lost_s, self._spans)

    def _close(self, spell: Spell, until_s: Array, struck: npt.NDArray[np.bool_]) -> None:
        """Charge what came between the last fault and now: recovery, warm-up if it was not cut short, and work."""
        self._charge(self._down_s, self._down_from_s, np.minimum(self.ready_s, until_s))
        warm_until_s = np.where(struck & (until_s < self.up_s), self.ready_s, np.minimum(self.up_s, until_s))
        self._charge(self._warm_up_s, self.ready_s, warm_until_s)
        for span in spell.spans:
            self._spans.append(Span(self._inside(span.start_s), self._inside(span.end_s), span.share))
        for span in spell.missing:
            self._lose(span.start_s, span.end_s, span.share * (span.end_s - span.start_s))

    def _lose(self, since_s: Array, struck_s: Array, lost_s: Array, *, was_useful: bool = True) -> None:
        """Charge lost work, as far as it was done in the window; what counted as useful meanwhile does so no more."""
        length_s = struck_s - since_s
        share = np.where(length_s > 0, lost_s / np.where(length_s > 0, length_s, 1.0), 0.0)
        self._charge(self._lost_s, since_s, struck_s, share)
        if was_useful:
            self._spans.append(Span(self._inside(since_s), self._inside(struck_s), -share))

    def _charge(self, account: Array, start_s: Array, end_s: Array, share: Array | float = 1.0) -> None:
        if not account.size:
            return
        inside_s = np.maximum(self._inside(end_s) - self._inside(start_s), 0.0)
        account[np.arange(inside_s.size), self._first] += inside_s * share

    def _inside(self, moment_s: Array) -> Array:
        return np.clip(moment_s, 0.0, self._window_s)
