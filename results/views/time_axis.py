"""What the time axis of a run shows: in which phase of a recovery it is, and how fast it commits."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pandas as pd

from results.runs.store import Run
from results.summary.findings import PHASES, seconds_from, table_or_empty, the_run

MOMENTS = ("death", "notice", "ready", "restored", "normal")  # a phase of a recovery lies between two of them
PHASES_DOWN = 2  # so many phases end only when the query works again


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
    start_ns, window_s = int(facts["window_start_ns"]), float(facts["window_s"])
    moments = np.stack([seconds_from(start_ns, table[f"{name}_ns"]).to_numpy() for name in MOMENTS])
    moments[1:2] = np.where(np.isnan(moments[1]), moments[2], moments[1])  # a phase that was not seen takes no time
    moments[1 : PHASES_DOWN + 1] = np.nan_to_num(moments[1 : PHASES_DOWN + 1], nan=window_s)
    return _merged(np.clip(moments, 0.0, window_s))


def _merged(moments: np.ndarray) -> list[Span]:
    """Spans without overlap, from one row of moments for each of MOMENTS and one column for each recovery."""
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


def commit_rate(throughput: pd.DataFrame) -> pd.Series:
    """Records committed per second, on average since the commit before; null up to the first commit and after the last.

    A batch commits all of its records at one moment. Per second they are spikes, as high as the batch is long, which
    hide how fast the query works; spread over the time since the commit before they are as many records. The batch of
    the first commit began before the window.
    """
    committed = throughput["committed_records"].astype("float64")
    is_commit = committed > 0
    commits_before = is_commit.cumsum().shift(fill_value=0)
    rate = committed.groupby(commits_before).transform("mean")
    return rate.where((commits_before > 0) & (commits_before < is_commit.sum()))
