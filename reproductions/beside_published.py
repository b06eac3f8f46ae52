"""Compares a new table with the published one: equal if it is computed, equal within its limits if it is measured.

Of measured tables each check is asked what it makes of both. If it tells ratios with their limits, each must be as near
to the published one as the limits of both together allow, at 95 % for all ratios of the table. A check without limits
only has its verdict to compare. Simulated rows of a measured figure rest on costs that are measured, and are treated as
measured. The size of measured tables may differ: limits are the wider, the fewer runs they come from. Published runs
may be a part of the new table. Its rows of runs that the published table has, too, are left out, since they cannot
differ.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from reproductions.judging import judge
from reproductions.reproduction import Computed, Reproduction, ReproductionCheck, ReproductionKind
from reproductions.searching import FLAT
from results.checks.rules import NotEnough
from results.damage import Damaged
from results.tables.reading import read_arrow
from results.verdict import Verdict
from results.views.gallery import published_reproduction

if TYPE_CHECKING:
    from reproductions.runs_needed import Scatter

Row = dict[str, str | None]
RELATIVE, ABSOLUTE = 1e-9, 1e-12  # what other processors and libraries may make of the same computation
WITH_LIMITS = {"what", "ratio", "low", "high", "scatter"}  # some columns of `reproductions.claims.Ratio`
EQUAL, LIKELY = "the published table", "within the limits of the published ones"


def beside_published(reproduction: Reproduction, size: int | None, written: Path) -> Row | None:
    """How the table in the folder `written` compares with the published one: verdict, observed, expected, detail.

    None where none was published; unknown where the two cannot be compared, and `detail` says why.
    """
    published = published_reproduction(reproduction.id)
    if published is None:
        return None
    computed = reproduction.kind is ReproductionKind.COMPUTED
    expected = EQUAL if computed else LIKELY
    try:
        if published.lack:
            raise NotEnough(published.lack)
        if computed and published.size != size:
            own = "a size that is not known" if size is None else size
            raise NotEnough(f"the published table is of size {published.size}, this one of {own}")
        path = published.file("parquet")
        if path is None:
            raise NotEnough("no table was published")
        old, new = as_written(path), as_written(written / path.name)
        row = (
            _equal(old, new, reproduction.searched) if computed else _alike(reproduction, old, _of_other_runs(new, old))
        )
        return row | {"expected": expected}
    except FileNotFoundError:
        lack = "there is no new table"
    except (Damaged, NotEnough) as error:
        lack = " ".join(str(error).split())
    return _row(Verdict.UNKNOWN, None, lack) | {"expected": expected}


def as_written(path: Path) -> pd.DataFrame:
    """A table as its Parquet file has it, so that types and missing values of two tables are the same.

    Raises `FileNotFoundError` and `Damaged`.
    """
    frame: pd.DataFrame = read_arrow(path).to_pandas()
    return frame


def _row(verdict: Verdict, observed: str | None, detail: str | None = None) -> Row:
    return {"verdict": verdict.value, "observed": observed, "detail": detail}


def _equal(old: pd.DataFrame, new: pd.DataFrame, searched: frozenset[str]) -> Row:
    if list(old.columns) != list(new.columns) or len(old) != len(new):
        told = f"{len(new)} rows of {len(new.columns)} columns, published {len(old)} of {len(old.columns)}"
        return _row(Verdict.FAIL, told)
    for column in old.columns:
        relative, absolute = (FLAT, FLAT) if column in searched else (RELATIVE, ABSOLUTE)
        differ = ~_same(old[column], new[column], relative, absolute)
        if differ.any():
            row = int(np.flatnonzero(differ)[0])
            first = f"{column} of row {row} is {new[column].iat[row]}, published {old[column].iat[row]}"
            return _row(Verdict.FAIL, f"{differ.sum()} of {len(old)} rows differ: {first}")
    return _row(Verdict.PASS, f"all {len(old)} rows are equal")


def _same(old: pd.Series, new: pd.Series, relative: float, absolute: float) -> np.ndarray:
    """By row, whether two columns say the same; figures may differ in their last digits."""
    if pd.api.types.is_float_dtype(old) and pd.api.types.is_numeric_dtype(new):
        return np.isclose(new.to_numpy(float), old.to_numpy(float), rtol=relative, atol=absolute, equal_nan=True)
    same = (old == new).fillna(False)  # a nullable column says of a missing value that nobody knows
    return (same | (old.isna() & new.isna())).to_numpy(bool)


def _of_other_runs(new: pd.DataFrame, old: pd.DataFrame) -> pd.DataFrame:
    """The rows of the new table but those of runs that the old one has; raises `NotEnough` if no run is left."""
    if not all("run_id" in table for table in (new, old)):
        return new
    known = new["run_id"].notna()
    in_both = known & new["run_id"].isin(old["run_id"])
    if in_both.any() and in_both.equals(known):
        raise NotEnough("made of the same runs")
    return new[~in_both]


class ComparedCheck(NamedTuple):
    """What one check makes of both tables.

    told    what speaks against agreement, or why there is nothing to compare
    ratios  those with limits that both tables have; the verdict on them is open until those of all checks are counted
    """

    check: str
    verdict: Verdict = Verdict.UNKNOWN
    told: str = ""
    ratios: pd.DataFrame | None = None


def _alike(reproduction: Reproduction, old: pd.DataFrame, new: pd.DataFrame) -> Row:
    """What all checks make of both; a check that is undecided in either says nothing against them."""
    name = reproduction.name
    published = Computed(name, old, is_stored=True)
    found = [_compared(check, published, Computed(name, new)) for check in reproduction.checks]
    among = sum(len(each.ratios) for each in found if each.ratios is not None)
    found = [each if each.ratios is None else _within_limits(each.check, each.ratios, among) for each in found]
    against = [each.told for each in found if each.verdict is Verdict.FAIL]
    if against:
        return _row(Verdict.FAIL, "; ".join(against))
    why = "; ".join(each.told for each in found if each.verdict is Verdict.UNKNOWN and each.told)
    agree = sum(each.verdict is Verdict.PASS for each in found)
    if not agree:
        return _row(Verdict.UNKNOWN, None, "; ".join(filter(None, ("no check is decided in both", why))))
    return _row(Verdict.PASS, f"{agree} of {len(found)} checks agree, the others are undecided", why or None)


def _compared(check: ReproductionCheck, old: Computed, new: Computed) -> ComparedCheck:
    judged, judged_old = judge(check, new), judge(check, old)
    if judged["verdict"] == Verdict.UNKNOWN:
        return ComparedCheck(check.name)
    if judged_old["verdict"] == Verdict.UNKNOWN:
        return ComparedCheck(check.name, told=f"{check.name} of the published table: {judged_old['detail']}")
    frames = [check.subject(each) for each in (new, old)]
    if all(set(frame.columns) >= WITH_LIMITS for frame in frames):
        return _ratios_of_both(check.name, *frames)
    if judged["verdict"] != judged_old["verdict"]:
        return ComparedCheck(
            check.name, Verdict.FAIL, f"{check.name}: {judged['verdict']}, published {judged_old['verdict']}"
        )
    return ComparedCheck(check.name, Verdict.PASS)


def _ratios_of_both(name: str, new: pd.DataFrame, old: pd.DataFrame) -> ComparedCheck:
    both = new.merge(old, on="what", suffixes=("", "_published"))
    if both.empty:
        return ComparedCheck(name, told=f"{name}: the two tables have no ratio in common")
    return ComparedCheck(name, ratios=both)


def _within_limits(name: str, ratios: pd.DataFrame, among: int) -> ComparedCheck:
    """Whether all ratios of a check agree, which are some of `among` ratios of the table."""
    far = _beyond_limits(ratios, among)
    return ComparedCheck(name, Verdict.FAIL, f"{name}: {far}") if far else ComparedCheck(name, Verdict.PASS)


def _beyond_limits(both: pd.DataFrame, among: int) -> str | None:
    """The first ratio whose distance from the published one is more than the limits of both allow together."""
    for row in both.itertuples():
        new = _half_log(row.low, row.high, row.scatter, among)
        allowed = math.hypot(new, _half_log(row.low_published, row.high_published, row.scatter_published, among))
        if abs(math.log(row.ratio / row.ratio_published)) > allowed:
            limits = f"{row.ratio_published:.2f} ({row.low_published:.2f} to {row.high_published:.2f})"
            return f"{row.what} {row.ratio:.2f} ({row.low:.2f} to {row.high:.2f}), published {limits}"
    return None


def _half_log(low: float, high: float, scatter: Scatter | None, among: int) -> float:
    """Half of the limits of a ratio's logarithm, of which those of `among` ratios all hold at 95 % (Bonferroni).

    The more ratios there are, the likelier is it that chance alone puts one of them far from its published one.
    """
    own = math.log(high / low) / 2
    return own if scatter is None else max(own, scatter.half_width(among))
