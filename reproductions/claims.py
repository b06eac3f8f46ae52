"""Claims of the form "this is at least so many times that", judged with regard to how uncertain the ratio is."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from reproductions.plants import Plant
from reproductions.reproduction import ReproductionCheck, holds
from reproductions.runs_needed import CONFIDENCE, Scatter, would_decide
from results.checks.rules import NotEnough, between

IN_THE_MEAN = "in the geometric mean"  # as expectations tell what `mean_ratio` gives
SIMILAR = 0.8  # what is similar in a paper's words has at least so many times as much as the other, and the other as it


class Ratio(NamedTuple):
    """A ratio with the limits within which it lies at 95 % confidence, and between what it is.

    `of_one_run`: the limits come from within single runs, and know nothing of how runs differ.
    `scatter`: what the limits come from, if that is known of more than one run.
    `bracket`: how far from its limit the logarithm must be for any number of runs to decide; above 0 for searches,
    which know a rate no better than their last bracket.
    """

    what: str
    ratio: float
    low: float
    high: float
    of_one_run: bool = False
    scatter: Scatter | None = None
    bracket: float = 0.0

    def is_below(self, limit: float, among: int) -> bool:
        """Whether it is below the limit for certain, although it is one of `among` ratios of which any may be.

        The more ratios there are, the likelier is it that chance alone puts one of them below. So each has only its
        share of the 5 % (Bonferroni).
        """
        if among == 1 or self.scatter is None or not self.high < limit:
            return self.high < limit
        return self.scatter.half_width(among) < math.log(limit / self.ratio)

    def is_too_coarse(self, limit: float) -> bool:
        """Whether no number of runs decides on which side of the limit it is, if it stays where it is."""
        return abs(math.log(self.ratio / limit)) < self.bracket


def samples(values: pd.Series) -> dict[str, float]:
    """Of the samples of one run: how many they are, their `mean` and standard deviation `std`; all NaN of none."""
    found = values.to_numpy(dtype=float)
    if not len(found):
        return dict.fromkeys(("samples", "mean", "std"), np.nan)
    return {"samples": len(found), "mean": found.mean(), "std": found.std(ddof=1) if len(found) > 1 else np.nan}


def mean_ratio(what: str, pairs: Iterable[tuple[float, float]]) -> Ratio:
    """The geometric mean of the ratios of pairs, with limits by how the ratios differ; at least two pairs."""
    ratios = np.array([over / under if under > 0 else math.nan for over, under in pairs])
    if not (ratios > 0).all():
        raise NotEnough(f"{what}: a value is 0 or missing, so there is no ratio")
    if len(ratios) < 2:
        found = f" {ratios[0]:.2f}, but from one pair" if len(ratios) else ": no pair"
        raise NotEnough(f"{what}{found}; two or more are needed")
    logs = np.log(ratios)
    scatter = Scatter(float(logs.std(ddof=1)) / math.sqrt(len(logs)), len(logs))
    log, half = float(logs.mean()), scatter.half_width()
    return Ratio(what, math.exp(log), math.exp(log - half), math.exp(log + half), scatter=scatter)


def paired_ratio(
    what: str,
    rows: pd.DataFrame,
    value: str,
    by: str,
    over: Hashable,
    under: Hashable,
    alike: Sequence[str] = ("replicate",),
) -> Ratio:
    """The mean ratio of `value` where column `by` is `over` to where it is `under`: pairs of rows alike in `alike`.

    Raises `NotEnough` if one of a pair is missing, and if there are fewer than two pairs.
    """
    pairs = rows.pivot(index=list(alike), columns=by, values=value).reindex(columns=[over, under])
    if pairs.isna().any(axis=None):
        raise NotEnough(f"{what}: {value} is missing in at least one run of a pair")
    return mean_ratio(what, pairs.itertuples(index=False, name=None))


def at_least(
    name: str, ratios: Callable[[pd.DataFrame], list[Ratio]], limit: float, expected: str, plant: Plant
) -> ReproductionCheck:
    """Every ratio is `limit` or more, within its uncertainty: below for certain fails, too close to tell is unknown.

    So is what would be decided by the limits of single runs. If all ratios are sound, at most 5 % of such checks fail.
    """

    def decided(table: pd.DataFrame) -> pd.DataFrame:
        found = ratios(table)
        refuted = [each for each in found if each.is_below(limit, len(found))]
        open_ = [each for each in found if each.low < limit]
        if open_ and not refuted:
            told = f"it is undecided whether this is at least {limit:g}: {_told(open_)}"
            raise NotEnough(f"{told}; {_would_decide(open_, limit, len(found))}")
        if _by_one_run(refuted, found):
            single = "one run of each does not show how runs differ (use --size 3)"
            raise NotEnough(f"{single}; by these runs alone: {_told(found)}")
        return pd.DataFrame(found, columns=Ratio._fields)

    return holds(
        name,
        decided,
        [between("high", limit, None)],
        lambda frame: _told(Ratio(*row) for row in frame.itertuples(index=False)),
        expected,
        plant,
    )


def _would_decide(open_: list[Ratio], limit: float, among: int) -> str:
    """What it takes to decide a check with these open ones of `among` ratios, in words."""
    fine = [each for each in open_ if not each.is_too_coarse(limit)]
    if len(fine) < len(open_) and all(each.ratio >= limit for each in fine):
        return "no number of searches of this precision would decide"
    enough = would_decide([(each.scatter, math.log(each.ratio / limit)) for each in fine], among)
    if any(each.high < limit for each in open_):
        confidence = 100 * (1 - (1 - CONFIDENCE) / among)
        surely = f"is below the limit with {confidence:.1f} % confidence"
        return f"the check fails only if one of the {among} ratios {surely}; {enough}"
    return enough


def _by_one_run(refuted: list[Ratio], found: list[Ratio]) -> bool:
    """Whether a verdict would rest on single runs: to fail takes one ratio that is refuted, to pass takes them all."""
    alone = [each.of_one_run for each in refuted or found]
    return all(alone) if refuted else any(alone)


def _told(ratios: Iterable[Ratio]) -> str:
    return "; ".join(f"{each.what} {each.ratio:.2f} ({each.low:.2f} to {each.high:.2f})" for each in ratios)
