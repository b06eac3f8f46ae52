"""The phases of recoveries and the commit rate of a run over time."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pandas as pd

from experiments.engines import EngineName
from experiments.recovery_modes import PARTIAL
from results.runs.store import Run
from results.summary.findings import BETWEEN, PHASES, seconds_from, table_or_empty, the_run
from results.tables.schema import LedgerClass

PHASES_DOWN = 2  # the first two phases: the query works again only when they have ended
EARLIEST_S, LATEST_S = -1e7, 1e7  # a run is shorter than four months


class Span(NamedTuple):
    """A phase of recoveries, in seconds from the start of the window."""

    phase: str
    begin_s: float
    end_s: float


def phase_spans(run: Run) -> list[Span]:
    """In which phase the run is when it recovers, in the order of time, within the window.

    Recoveries of several partitions overlap: then the earliest of their phases counts. A query that is not ready by
    the end of the window is down until then; of other phases whose end is not known nothing is told.
    """
    facts, table = the_run(run), table_or_empty(run, "recoveries")
    if facts is None or table.empty:
        return []
    window_s, moments = float(facts["window_s"]), _seconds(facts, table, *(f"{name}_ns" for name in BETWEEN))
    moments[1:2] = np.where(np.isnan(moments[1]), moments[2], moments[1])  # a phase that was not seen takes no time
    moments[1 : PHASES_DOWN + 1] = np.nan_to_num(moments[1 : PHASES_DOWN + 1], nan=window_s)
    return _merged(np.clip(moments, 0.0, window_s))


def _merged(moments: np.ndarray) -> list[Span]:
    """Spans without overlap, from one row of moments for each of BETWEEN and one column for each recovery."""
    edges = np.unique(moments[~np.isnan(moments)])
    spans: list[Span] = []
    for begin_s, end_s in pairwise(edges.tolist()):
        covered = ((moments[:-1] <= begin_s) & (end_s <= moments[1:])).any(axis=1)  # NaN covers nothing
        if not covered.any():
            continue
        phase = PHASES[int(covered.argmax())]
        if spans and spans[-1].phase == phase and spans[-1].end_s == begin_s:
            begin_s = spans.pop().begin_s
        spans.append(Span(phase, begin_s, end_s))
    return spans


def commit_rate(run: Run, throughput: pd.DataFrame) -> np.ndarray:
    """Committed records per second, for each second of the table `throughput`, when the work for them was done.

    What a commit adds is spread evenly over the time since the commit before, without downtime and lost work: there
    the rate is 0. After the last commit it is NaN, because nothing tells how fast the query worked then. If an outage
    came later that undid all work, the rate is 0 up to its end.
    """
    facts, commits = the_run(run), table_or_empty(run, "checkpoints").sort_values("completed_ns")
    from_s = throughput["second"].to_numpy(dtype=float)
    if facts is None or commits.empty:
        return np.full(len(from_s), np.nan)
    begun_s, committed_s = _seconds(facts, commits, "started_ns", "completed_ns")
    moments_s = np.r_[begun_s[0], committed_s]
    away = _down_or_undone(run, facts, moments_s)
    committed = np.r_[0.0, commits["records"].to_numpy(dtype=float).cumsum()]

    def committed_by(at_s: np.ndarray) -> np.ndarray:
        """What was committed within an outage was processed before it."""
        return np.interp(_worked_s(at_s, away), _worked_s(moments_s, away), committed)

    rate = committed_by(from_s + 1.0) - committed_by(from_s)
    return np.where(from_s + 1.0 <= np.max(away[1], initial=moments_s[-1]), rate, np.nan)


def _down_or_undone(run: Run, facts: pd.Series, moments_s: np.ndarray) -> np.ndarray:
    """Spans in which nothing was done that lasted [s], one row of beginnings and one of ends; they may overlap.

    Lost time that belongs to a batch is not among them: the batch outlived the fault. The ledger of the testbed has
    shares of time, not moments, so there an outage counts from the commit before it, of `moments_s`, or from the fault
    if something is committed during the outage, because that was done before. There are none if survivors work on.
    """
    if facts["recovery"] in PARTIAL:
        return np.empty((2, 0))
    if facts["engine"] == EngineName.DATAFLOW:
        spans = _seconds(facts, table_or_empty(run, "recoveries"), "death_ns", "ready_ns")
        by_death, by_ready = np.searchsorted(moments_s, spans, "right")
        spans[0] = np.where(by_death == by_ready, np.r_[EARLIEST_S, moments_s][by_death], spans[0])
    else:
        ledger = table_or_empty(run, "ledger")
        is_lost = (ledger["class"] == LedgerClass.LOST) & ledger["batch"].isna()
        is_down = ledger["class"].isin([LedgerClass.DETECT, LedgerClass.RESTART])
        spans = _seconds(facts, ledger[is_lost | is_down], "start_ns", "end_ns")
    return np.nan_to_num(spans, nan=max(float(facts["window_s"]), moments_s[-1]))


def _seconds(facts: pd.Series, table: pd.DataFrame, *columns: str) -> np.ndarray:
    """Columns of moments as rows of seconds from the start of the window, NaN if unknown."""
    return np.stack([seconds_from(int(facts["window_start_ns"]), table[name]).to_numpy() for name in columns])


def _worked_s(at_s: np.ndarray, away: np.ndarray) -> np.ndarray:
    """How much time outside the spans `away` passed up to each moment [s], from a common zero."""
    begins, ends = np.sort(away)
    edges = np.r_[EARLIEST_S, np.sort(away, axis=None), LATEST_S]
    is_at_work = np.searchsorted(begins, edges[:-1], "right") == np.searchsorted(ends, edges[:-1], "right")
    return np.interp(at_s, edges, np.r_[0.0, np.cumsum(np.diff(edges) * is_at_work)])
