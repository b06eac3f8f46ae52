"""Which protection processes the most at which failure rate, or under a set rate has the highest utilization.

Who does `quiet` records per second while nothing fails, and loses `cost` seconds of that to a failure, does
quiet / (1 + f * cost) at f failures per second. If `quiet` is utilization, that is how much of it is left. f counts
failures per second of the time that is not lost to them: at the failure rate of the runs from which both come, this is
what they did. At other rates it takes the cost of a failure to be the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from results.protection.estimates import PERCENTILES, Estimate, Floats

CURVE_POINTS = 61


@dataclass(frozen=True, eq=False)
class Contestant:
    """One protection: what it does without failures, and seconds that a failure costs, both of them with draws.

    quiet     records/s, or under a set rate utilization
    tried_at  failures per second, outside of what they cost, of the run in which they came most often
    """

    name: str
    quiet: Estimate
    cost_s: Estimate
    tried_at: float

    def at(self, failure_rate: npt.ArrayLike) -> Floats:
        """Records/s or utilization at some failure rates [1/s]."""
        return np.asarray(self.quiet.value / (1 + np.asarray(failure_rate) * self.cost_s.value))

    def drawn_at(self, failure_rate: npt.ArrayLike) -> Floats:
        """The same by each of the draws: draws x failure rates."""
        quiet, costs_s = _draws(self.quiet)[:, None], _draws(self.cost_s)[:, None]
        return np.asarray(quiet / (1 + np.atleast_1d(np.asarray(failure_rate, dtype=float)) * costs_s))


@dataclass(frozen=True)
class Win:
    """A span of failure rates [1/s] in which one protection is best.

    share   of the draws in which it does so in the middle of the span
    until_between  95 % interval of the end, where another one takes over; the upper limit is inf if perhaps none ever
                   does. None at the end of what is compared
    tried   whether the span begins below the highest failure rate that runs of every contestant saw
    """

    winner: str
    since: float
    until: float
    share: float
    until_between: tuple[float, float] | None
    tried: bool

    def to_json(self) -> dict[str, Any]:
        """With null for an interval without an upper limit."""
        low, high = self.until_between or (None, None)
        return {
            "winner": self.winner,
            "since": self.since,
            "until": self.until,
            "share": self.share,
            "until_low": low,
            "until_high": None if high is None or np.isinf(high) else high,
            "tried": self.tried,
        }


def furthest(contestants: Sequence[Contestant]) -> float:
    """The highest failure rate that is compared [1/s]: there the costliest failures have taken half.

    Beyond, failures strike while another one still costs, and no cost of a single failure says what happens then.
    """
    costliest_s = max(each.cost_s.value for each in contestants)
    return 1 / costliest_s if costliest_s > 0 else max(each.tried_at for each in contestants)


def wins(contestants: Sequence[Contestant]) -> list[Win]:
    """Who is best, from no failures on up; empty only of fewer than two."""
    if len(contestants) < 2:
        return []
    spans = _spans(contestants, furthest(contestants))
    tried_at = min(each.tried_at for each in contestants)
    followers = [*(winner for _, _, winner in spans[1:]), None]
    return [
        Win(
            contestants[winner].name,
            since,
            until,
            _share(contestants, winner, (since + until) / 2),
            None if after is None else _limits(contestants[winner], contestants[after]),
            since < tried_at,
        )
        for (since, until, winner), after in zip(spans, followers, strict=True)
    ]


def ahead_until(
    quiet: npt.ArrayLike, cost_s: npt.ArrayLike, other_quiet: npt.ArrayLike, other_s: npt.ArrayLike
) -> Floats:
    """The failure rate [1/s] up to which the one is better than the other: 0 if not even without failures.

    Infinite if it does at any failure rate. All arguments broadcast.
    """
    quiet, cost_s, other_quiet, other_s = np.broadcast_arrays(
        *(np.asarray(each, dtype=float) for each in (quiet, cost_s, other_quiet, other_s))
    )
    lead, loss = quiet - other_quiet, other_quiet * cost_s - quiet * other_s
    with np.errstate(divide="ignore", invalid="ignore"):
        meeting = np.where(loss > 0, lead / loss, np.inf)
    return np.asarray(np.where(lead > 0, meeting, 0.0))


def curve(contestant: Contestant, failure_rates: Floats) -> dict[str, list[float]]:
    """Records/s or utilization over failure rates, with the limits of 95 %: `{value, low, high}`."""
    low, high = np.percentile(contestant.drawn_at(failure_rates), PERCENTILES, axis=0)
    value = contestant.at(failure_rates)
    return {"value": value.tolist(), "low": low.tolist(), "high": high.tolist()}


def compared_rates(contestants: Sequence[Contestant]) -> Floats:
    """Failure rates [1/s] for a curve, from none to the highest that is compared."""
    return np.linspace(0.0, furthest(contestants), CURVE_POINTS)


def _spans(contestants: Sequence[Contestant], end: float) -> list[tuple[float, float, int]]:
    """Since, until and the number of the best, by the means; neighbours that share the best are one."""
    meetings = set[float]()
    for one, other in combinations(contestants, 2):
        for first, second in ((one, other), (other, one)):
            at = float(_ahead(first, second))
            meetings |= {at} if 0 < at < end else set()
    spans: list[tuple[float, float, int]] = []
    for since, until in pairwise([0.0, *sorted(meetings), end]):
        best = int(np.argmax([each.at((since + until) / 2) for each in contestants]))
        if spans and spans[-1][2] == best:
            since = spans.pop()[0]
        spans.append((since, until, best))
    return spans


def _share(contestants: Sequence[Contestant], winner: int, failure_rate: float) -> float:
    drawn = np.column_stack([each.drawn_at(failure_rate)[:, 0] for each in contestants])
    return float((drawn.argmax(axis=1) == winner).mean())


def _limits(leader: Contestant, follower: Contestant) -> tuple[float, float]:
    drawn = ahead_until(*(_draws(each) for one in (leader, follower) for each in (one.quiet, one.cost_s)))
    low, high = np.percentile(drawn, PERCENTILES, method="nearest")  # nothing lies between a rate and never
    return float(low), float(high)


def _ahead(one: Contestant, other: Contestant) -> Floats:
    return ahead_until(*(each.value for of in (one, other) for each in (of.quiet, of.cost_s)))


def _draws(estimate: Estimate) -> Floats:
    if estimate.draws is None:
        raise ValueError("an estimate of too few values does not take part in a contest")
    return estimate.draws
