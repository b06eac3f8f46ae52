"""The share of queries that are available over time, of one run and of several that are compared.

Source: `incremental`, figure 12. Only queries count that were lost: a survivor is available in every run. Three runs
of one experiment belong together: the best case (all hosts return at once), recovery query by query, and blocking.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
import numpy.typing as npt
import pandas as pd

from results.runs.store import Run
from results.summary.findings import table_or_empty

Floats = npt.NDArray[np.float64]
MOMENTS = ("planned", "available", "predicted", "normal")
ALWAYS_KNOWN = ("planned", "available")
BY_MODEL = "predicted"
NS = 1e9
NORMAL = 1.2  # relative latency below which a query is available again
NORMAL_S = 3.0  # on average over so long
TOLERANCE, LEAST_S = 0.1, 0.25  # of the time since a burst's first loss, or a batch: how late a query may be


@dataclass(frozen=True)
class Availability:
    """Queries that were lost, in seconds since the first loss of the run.

    queries   their names; one that was lost in two bursts is there twice
    lost_s    when each was lost
    back_s    by name of the moment when each was planned, available, planned by the model, or on time again; inf: never
    first_ns  the first loss
    """

    queries: tuple[str, ...]
    lost_s: Floats
    back_s: Mapping[str, Floats]
    first_ns: int

    @property
    def count(self) -> int:
        """How many different queries were lost."""
        return len(set(self.queries))

    def share(self, at_s: npt.ArrayLike, moment: str = "available") -> Floats:
        """The share of these queries that are available at some times [s].

        By the model it is NaN while a query is away whose moment is null: never, or unknown.
        """
        times = np.asarray(at_s, dtype=float)[..., None]
        untold = np.isinf(self.back_s[moment]) & (moment == BY_MODEL)
        away = (self.lost_s <= times) & (times < np.where(untold, self.away_until_s(), self.away_until_s(moment)))
        return np.where((away & untold).any(axis=-1), np.nan, 1.0 - away.sum(axis=-1) / self.count)

    def away_until_s(self, moment: str = "available") -> Floats:
        """When each was back [s], or lost again without having been back: from then on its next loss counts."""
        return np.minimum(self.back_s[moment], np.array(next_losses(self.queries, self.lost_s.tolist())))

    @property
    def turns_s(self) -> Floats:
        """When any of the shares changes [s]."""
        moments = np.concatenate([self.lost_s, *self.back_s.values()])
        return np.unique(moments[np.isfinite(moments)])

    @property
    def first_back_s(self) -> float:
        """When the first query was available again [s]; inf: never."""
        return float(self.back_s["available"].min())

    @property
    def never_back(self) -> tuple[str, ...]:
        """The queries that did not become available again."""
        lost = np.flatnonzero(np.isinf(self.away_until_s()))
        return tuple(dict.fromkeys(self.queries[i] for i in lost))


def next_losses(queries: Sequence[str], lost: Sequence[float]) -> list[float]:
    """When the query of each loss is lost the next time, in the unit of `lost`; inf: never."""
    losses = list(zip(queries, lost, strict=True))
    return [min((at for other, at in losses if other == query and at > first), default=inf) for query, first in losses]


def availability(run: Run) -> Availability | None:
    """The availability of the queries that were lost; None if no query was lost or none is recorded."""
    rows = table_or_empty(run, "query_recoveries")
    if rows.empty:
        return None
    first_ns = int(rows["death_ns"].min())
    back_s = {name: _seconds(rows[f"{name}_ns"], first_ns) for name in MOMENTS}
    known = {name: at_s for name, at_s in back_s.items() if name in ALWAYS_KNOWN or np.isfinite(at_s).any()}
    return Availability(tuple(rows["query"]), _seconds(rows["death_ns"], first_ns), known, first_ns)


def least_ahead(better: Availability, worse: Availability) -> float | None:
    """By how much the share of one run lies above that of another, at the moment when it does least; negative: below.

    None if there is no burst of losses that struck both. Each burst counts by itself, from its last loss on: while
    hosts still die, it is chance which queries they take first. What comes at most a tenth of the time since the first
    loss of its burst too late, or a batch, is on time.
    """
    # A late run may still miss queries when the next burst strikes, so that only the other run tells the two apart.
    starts_s = max(_burst_starts_s(better), _burst_starts_s(worse), key=len)
    found = [_least_ahead_in(better, worse, number, starts_s) for number in range(len(starts_s))]
    return min((each for each in found if each is not None), default=None)


def _burst_starts_s(of: Availability) -> list[float]:
    """When bursts of losses begin: a query is lost while none is missing."""
    starts_s, all_back_s = list[float](), -np.inf
    until_s = of.away_until_s()
    for i in np.argsort(of.lost_s, kind="stable"):
        if of.lost_s[i] > all_back_s:
            starts_s.append(float(of.lost_s[i]))
        all_back_s = max(all_back_s, until_s[i])
    return starts_s


def _least_ahead_in(better: Availability, worse: Availability, number: int, starts_s: list[float]) -> float | None:
    """The same of the losses that are nearest to the start of this burst; None if either run has none of them."""
    nearest = [np.abs(each.lost_s[:, None] - np.array(starts_s)).argmin(axis=1) == number for each in (better, worse)]
    if not all(each.any() for each in nearest):
        return None
    lost_s, back_s = zip(*(_lost_and_back_s(*each) for each in zip((better, worse), nearest, strict=True)), strict=True)
    moments_s = np.unique(np.concatenate([*lost_s, *back_s]))
    moments_s = moments_s[(moments_s >= max(each.max() for each in lost_s)) & np.isfinite(moments_s)]
    late_s = np.maximum(TOLERANCE * (moments_s - min(each.min() for each in lost_s)), LEAST_S)
    missing = [
        ((lost <= at[:, None]) & (at[:, None] < back)).sum(axis=1) / run.count
        for run, lost, back, at in zip((better, worse), lost_s, back_s, (moments_s + late_s, moments_s), strict=True)
    ]
    return float((missing[1] - missing[0]).min())


def _lost_and_back_s(of: Availability, chosen: npt.NDArray[np.bool_]) -> tuple[Floats, Floats]:
    return of.lost_s[chosen], of.away_until_s()[chosen]


def _seconds(moments_ns: pd.Series, first_ns: int) -> Floats:
    return ((moments_ns.astype("Float64") - first_ns) / NS).to_numpy(dtype=float, na_value=np.inf)
