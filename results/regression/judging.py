"""Verdicts on many comparisons at once: better, same, worse, or unknown.

*Better* and *worse* hold for all metrics of one call together: the probability of any such verdict when nothing has
changed is at most `FALSE_ALARM` (Holm's correction), and the change must be as large as the metric's minimum effect.
*Same* is shown too, not assumed: a change of the minimum effect would have shown more, at `FALSE_SAME`. What is neither
is unknown: too few runs, or too much noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from results.regression.bootstrap import DRAWS, RARE, Comparison, Stratum, chances, draws_for, reaches
from results.regression.change import Change
from results.summary.metrics import Better, Metric, Scale

FALSE_ALARM = 0.01  # half of them better, half worse; of counts see `_of_counts`
FALSE_SAME = 0.05
FEWEST_CANDIDATES, FEWEST_BASELINE = 3, 5
ABOVE, BELOW, OFTENER = 2, 4, 4  # the tests of a count share its false alarms: a half, a quarter and a quarter of them
NOTHING = np.empty(0)
LARGEST = 20.0  # a change beyond this says nothing: as a logarithm 500 million times as much


def overall(verdicts: Sequence[Change]) -> Change:
    """Worse if any is, else unknown if any is (or there is none), else better if any is, else same."""
    return next((change for change in Change if change in verdicts), Change.UNKNOWN)


@dataclass(frozen=True)
class Pair:
    """The values of one metric: of candidates and baseline, by stratum; a stratum that lacks either does not count."""

    metric: Metric
    strata: tuple[Stratum, ...]

    @cached_property
    def candidates(self) -> np.ndarray:
        """Values of the candidates in the strata that count, in the metric's unit."""
        return np.concatenate([NOTHING, *(candidates for candidates, _ in self.comparable)])

    @cached_property
    def baseline(self) -> np.ndarray:
        """Values of the baseline in the strata that count, in the metric's unit."""
        return np.concatenate([NOTHING, *(baseline for _, baseline in self.comparable)])

    @property
    def enough(self) -> bool:
        """Whether enough runs measured the metric for a verdict: 3 candidates and 5 of the baseline."""
        return len(self.candidates) >= FEWEST_CANDIDATES and len(self.baseline) >= FEWEST_BASELINE

    @property
    def measured(self) -> bool:
        """Whether any run measured it."""
        return any(len(values) for stratum in self.strata for values in stratum)

    @cached_property
    def comparison(self) -> Comparison:
        """On the scale where changes are differences."""
        return Comparison(
            tuple(
                (on_scale(self.metric, candidates), on_scale(self.metric, baseline))
                for candidates, baseline in self.comparable
            )
        )

    @property
    def comparable(self) -> list[Stratum]:
        """The strata that have both."""
        return [stratum for stratum in self.strata if all(map(len, stratum))]


def on_scale(metric: Metric, values: np.ndarray) -> np.ndarray:
    """Logarithms for a metric whose ratios are compared."""
    return np.log(np.maximum(values, metric.resolution)) if metric.scale is Scale.RATIO else values


def from_scale(metric: Metric, level: float) -> float:
    """A level on the metric's scale, in its unit."""
    return math.exp(level) if metric.scale is Scale.RATIO else level


def margin(metric: Metric) -> float:
    """The minimum effect on the metric's scale."""
    effect = metric.minimum_effect or 0.0
    return math.log1p(effect) if metric.scale is Scale.RATIO else effect


@dataclass(frozen=True)
class Chances:
    """What the change of one pair says about whether anything changed.

    p_value  probability of a change at least this large if nothing changed
    p_same   probability of one this small if something did
    """

    change: float
    p_value: float
    p_same: float


@dataclass(frozen=True)
class Judgement:
    """What was found on one metric.

    `effect` is relative for a metric on the scale `ratio` (.15 is 15 % more), else in its unit, and for a count that of
    the largest values, in the stratum where it is largest; `low` and `high` bound it at the confidence at which the
    verdict was reached. `p_value` is corrected for the number of metrics.
    """

    metric: Metric
    verdict: Change
    candidates: int
    baseline: int
    candidate_median: float | None = None
    baseline_median: float | None = None
    effect: float | None = None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    why: str = ""

    def row(self) -> dict[str, Any]:
        """As a row of the table `regression`, but for what it is of."""
        metric = {"metric": self.metric.name, "unit": self.metric.unit, "better": self.metric.better.value}
        names = ("candidates", "baseline", "candidate_median", "baseline_median", "effect", "low", "high", "p_value")
        found = {name: getattr(self, name) for name in (*names, "why")}
        return {**metric, "scale": self.metric.scale.value, "verdict": self.verdict.value, **found}


def judge(pairs: Sequence[Pair]) -> list[Judgement]:
    """Judge all pairs of one call together, with the interval of each change."""
    judged = [pair for pair in pairs if pair.enough]
    level = FALSE_ALARM / max(1, len(judged))
    found = measure(judged, level)
    corrected = holm([one.p_value for one in found])
    widths = _widths(judged, found, [own for _, own in corrected])
    made = map(_judgement, judged, found, corrected, widths)
    return [next(made) if pair.enough else _too_few(pair) for pair in pairs]


def measure(pairs: Sequence[Pair], level: float, draws: int = DRAWS) -> list[Chances]:
    """The probabilities for pairs with enough runs, told apart down to `level`, the smallest that decides.

    What few of the draws reach is looked at again with as many as that level needs, so that a change can be found
    however many others are judged with it.
    """
    places = [place for place, pair in enumerate(pairs) if pair.metric.scale is not Scale.COUNT]
    comparisons = [pairs[place].comparison for place in places]
    changes = [comparison.change for comparison in comparisons]
    rooms = [max(0.0, margin(pairs[place].metric) - abs(change)) for place, change in zip(places, changes, strict=True)]
    both = chances(comparisons, list(zip(changes, rooms, strict=True)), draws).reshape(-1, 2)
    p_values = _told_apart(comparisons, both[:, 0], level, draws)
    bootstrapped = map(Chances, changes, p_values.tolist(), (both[:, 1] / 2).tolist())
    return [_of_counts(pair) if pair.metric.scale is Scale.COUNT else next(bootstrapped) for pair in pairs]


def _told_apart(comparisons: Sequence[Comparison], p_values: np.ndarray, level: float, draws: int) -> np.ndarray:
    more, told = draws_for(level), p_values.copy()
    rare = np.flatnonzero(p_values <= RARE).tolist() if more > draws else []
    if rare:
        again = [comparisons[place] for place in rare]
        told[rare] = chances(again, [[one.change] for one in again], more)[:, 0]
    return told


def _widths(pairs: Sequence[Pair], found: Sequence[Chances], levels: Sequence[float]) -> list[float | None]:
    """Half the width of each interval, on the metric's scale; None for a count.

    What is no `RARE` change has an interval of that level at the least: it takes no more draws, and holds "none".
    """
    places = [place for place, pair in enumerate(pairs) if pair.metric.scale is not Scale.COUNT]
    rare = {place for place in places if found[place].p_value <= RARE}
    widths: list[float | None] = [None] * len(pairs)
    for own in (sorted(rare), [place for place in places if place not in rare]):
        wanted = [levels[place] if place in rare else max(levels[place], RARE) for place in own]
        comparisons = [pairs[place].comparison for place in own]
        for place, width in zip(own, reaches(comparisons, wanted, draws_for(min(wanted, default=1))), strict=True):
            widths[place] = width
    return widths


def _of_counts(pair: Pair) -> Chances:
    """The exact rule of counts: what never happened must not happen, unless by chance; else how many are beyond all.

    Where nothing has changed, every order of the runs of a stratum is as likely as any other: that the k largest of
    them are candidates has the probability C(candidates, k) / C(all, k), however the counts are distributed (Rosenbaum,
    Tables for a nonparametric test of location, 1954). Candidates beyond the baseline of their own stratum are added
    up over the strata, which do not depend on each other. Fewer is told only if all candidates are below.

    One large count in the baseline would hide all that stay below it. So it is tested, too, whether more runs are above
    zero than before (Fisher's exact test); the change is then that from zero. Where chance hardly makes so many, or so
    few, of them the counts are not the same.
    """
    change = max(float(candidates.max() - baseline.max()) for candidates, baseline in pair.comparable)
    if not pair.baseline.any() and pair.candidates.any() and not pair.metric.by_chance:
        return Chances(change, 0.0, 1.0)
    if all(candidates.max() < baseline.min() for candidates, baseline in pair.comparable):
        return Chances(change, min(1.0, BELOW * _as_many_beyond(pair, len(pair.candidates))), 1.0)
    beyond, (more, fewer) = _beyond(pair), _as_often(pair)
    above, oftener = ABOVE * _as_many_beyond(pair, beyond), OFTENER * more
    if oftener < above and change <= 0:
        change = float(pair.candidates.max())
    within = all(baseline.min() <= candidates.min() for candidates, baseline in pair.comparable)
    is_same = within and not beyond and 2 * min(more, fewer) > FALSE_SAME
    return Chances(change, min(1.0, above, oftener), 0.0 if is_same else 1.0)


def _beyond(pair: Pair) -> int:
    """How many candidates are above the whole baseline of their stratum."""
    return sum(int((candidates > baseline.max()).sum()) for candidates, baseline in pair.comparable)


def _as_many_beyond(pair: Pair, beyond: int) -> float:
    """The probability that by chance `beyond` or more candidates are above the baselines of their strata."""
    numbers = np.ones(1)  # the probability of each number beyond, over the strata so far
    for candidates, baseline in pair.comparable:
        own, runs = len(candidates), len(candidates) + len(baseline)
        as_many = [math.comb(own, k) / math.comb(runs, k) for k in range(own + 1)]
        numbers = np.convolve(numbers, -np.diff([*as_many, 0.0]))
    return float(numbers[beyond:].sum())


def _as_often(pair: Pair) -> tuple[float, float]:
    """The probabilities that by chance as many candidates or more, and as many or fewer, are above zero."""
    numbers = np.ones(1)  # the probability of each number above zero, over the strata so far
    for candidates, baseline in pair.comparable:
        own, runs = len(candidates), len(candidates) + len(baseline)
        lossy = np.count_nonzero(candidates) + np.count_nonzero(baseline)
        chosen = [math.comb(lossy, k) * math.comb(runs - lossy, own - k) / math.comb(runs, own) for k in range(own + 1)]
        numbers = np.convolve(numbers, chosen)
    seen = np.count_nonzero(pair.candidates)
    return float(numbers[seen:].sum()), float(numbers[: seen + 1].sum())


def holm(p_values: Sequence[float]) -> list[tuple[float, float]]:
    """For each p-value the one corrected for their number, and the level that it was held against.

    Holm, A Simple Sequentially Rejective Multiple Test Procedure, 1979: the smallest of m against 1/m of the level, the
    next against 1/(m - 1), until one does not pass; the rest are held against the level at which that one failed.
    """
    corrected: list[tuple[float, float]] = [(1.0, FALSE_ALARM)] * len(p_values)
    highest, level = 0.0, 0.0
    for rank, place in enumerate(np.argsort(p_values)):
        left = len(p_values) - rank
        if highest <= FALSE_ALARM:
            level = FALSE_ALARM / left
        highest = max(highest, min(1.0, left * p_values[place]))
        corrected[place] = highest, level
    return corrected


def verdict(metric: Metric, found: Chances, p_value: float) -> Change:
    """What follows for one metric from its probabilities, with the p-value that was corrected."""
    if p_value <= FALSE_ALARM and abs(found.change) >= margin(metric) and found.change:
        return Change.WORSE if (found.change > 0) == (metric.better is Better.LOWER) else Change.BETTER
    return Change.SAME if found.p_same <= FALSE_SAME else Change.UNKNOWN


def _judgement(pair: Pair, found: Chances, corrected: tuple[float, float], width: float | None) -> Judgement:
    decided = verdict(pair.metric, found, corrected[0])
    low, high = (None if width is None else _effect(pair.metric, found.change + sign * width) for sign in (-1, 1))
    return Judgement(
        pair.metric,
        decided,
        *_described(pair),
        effect=_effect(pair.metric, found.change),
        low=low,
        high=high,
        p_value=corrected[0],
        why=_doubt(pair) if decided is Change.UNKNOWN else "",
    )


def _doubt(pair: Pair) -> str:
    if pair.metric.scale is Scale.COUNT and (beyond := _beyond(pair)):
        return f"more than ever before in {beyond} of {len(pair.candidates)} runs, which chance can do"
    if pair.metric.scale is Scale.COUNT and pair.baseline.any():
        new, old = (f"{np.count_nonzero(values)} of {len(values)} runs" for values in (pair.candidates, pair.baseline))
        return f"above zero in {new} instead of {old}, which does not show whether it changed"
    return "noise hides whether it changed"


def _effect(metric: Metric, change: float) -> float | None:
    """A change as people read it; None for a bound that the noise leaves open. Counts have no such bounds."""
    if metric.scale is not Scale.COUNT and not abs(change) < LARGEST:
        return None
    return math.expm1(change) if metric.scale is Scale.RATIO else change


def _described(pair: Pair) -> tuple[int, int, float | None, float | None]:
    sets = (pair.candidates, pair.baseline)
    new, old = (float(np.median(values)) if len(values) else None for values in sets)
    return len(pair.candidates), len(pair.baseline), new, old


def _too_few(pair: Pair) -> Judgement:
    needed = f"{FEWEST_CANDIDATES} runs and {FEWEST_BASELINE} of a baseline are needed"
    return Judgement(pair.metric, Change.UNKNOWN, *_described(pair), why=f"too few runs measured it: {needed}")
