"""Recoveries would read and replay no more than the targets allow, if there was time to keep to them. If windows are
saved only when they open, recoveries would read and replay as much as the model says.

Whether there was time follows from the reports. A partition may save windows for CI in every CP. If it spent some of
that between two reports, but at most half, then in at least one check period between them it stopped early, because
both targets were met: Q and U held then, and the log has grown since by no more than between the two reports. The half
leaves room for periods that begin late, since one begins with a frame. Without a frame none begins, and no time is
spent. The same must hold of the two reports before, so that nothing of a replay, in which nothing is saved, is between
them. No time suffices for a Q below the open windows.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from experiments.spec import Experiment
from experiments.wording import significant
from experiments.workloads.cec_prices import CecPricesSpec
from results.checks.check import Check, Parting, keeps_output_log
from results.checks.evidence import Evidence
from results.checks.rules import NotEnough, between
from results.checks.subjects.output_logs import described, reported

SPENT = 0.5  # of the time for saving windows
CHANCE = 0.001  # how often the oldest window of a run that follows the model is outside its limits
FEWEST_OF_A_PARTITION = 100  # items; the model is one of many items
DEVIATIONS = 4  # of the items of a partition, and of the entries since its oldest window opened
COUNTED = ("records", "opens", "checks", "results", "check_s")


def has_extent_target(experiment: Experiment) -> bool:
    """Whether there is a Q."""
    return keeps_output_log(experiment) and experiment.engine.log_extent is not None


def has_replay_target(experiment: Experiment) -> bool:
    """Whether there is a U."""
    return keeps_output_log(experiment) and experiment.engine.log_replay is not None


def follows_model(experiment: Experiment) -> bool:
    """Whether windows of the workload that the model knows are saved only when they open."""
    engine, workload = experiment.engine, experiment.workload
    saves_again = (engine.log_extent, engine.log_replay, engine.log_failure_rate) != (None, None, None)
    return (
        described(experiment)
        and not saves_again
        and isinstance(workload, CecPricesSpec)
        and workload.window_records > 1
    )


def reports(evidence: Evidence) -> pd.DataFrame:
    """The reports that followed one with time enough: also how much of each count came between (`of_...`)."""
    rows = evidence.rows("output_logs", "no partition has reported its log").sort_values(["partition", "at_ns"])
    of = rows.groupby("partition", sort=False)
    for name in (*COUNTED, "at_ns", "open_windows"):
        rows[f"of_{name}"] = of[name].diff().astype("float64")
    interval_s, period_s = evidence.experiment.engine.check_pace_run_s
    periods = np.floor(rows["of_at_ns"] / 1e9 / period_s)
    rows["spent"] = rows["of_check_s"] / (periods * interval_s).where(periods > 0)
    # Counts start from 0 again when a partition is restored. While it replays, it takes no new records in.
    rows["goes_on"] = (rows[[f"of_{name}" for name in COUNTED]] >= 0).all(axis=1) & (rows["of_records"] > 0)
    before = rows.groupby("partition", sort=False)["goes_on"].shift(fill_value=False).astype(bool)
    found = rows[rows["goes_on"] & before & (rows["of_check_s"] > 0) & (rows["spent"] <= SPENT)]
    if found.empty:
        share = f"{SPENT:.0%} of the time for saving windows"
        raise NotEnough(f"no two successive reports show that at most {share} was spent")
    return found


def extents(evidence: Evidence) -> pd.DataFrame:
    """Return `extent`, `allowed` and `share`, the first by the second, of the reports with time enough for Q."""
    target = evidence.experiment.engine.log_extent
    if target is None:
        raise NotEnough("there is no target for the extent")
    found = reports(evidence)
    found = found[(found["open_windows"] <= target) & (found["open_windows"] - found["of_open_windows"] <= target)]
    if found.empty:
        raise NotEnough(f"more windows were open than the target of {target:,} entries allows")
    # A window that closes adds an entry of its own only if no result closes it, so this is an upper limit.
    closed = found["of_opens"] - found["of_open_windows"]
    grown = found["of_opens"] + found["of_checks"] + found["of_results"] + closed.clip(lower=0)
    return _beside(found, "extent", target + grown, evidence)


def replays(evidence: Evidence) -> pd.DataFrame:
    """Return `replay`, `allowed` and `share`, the first by the second, of the reports with time enough for U."""
    target = evidence.experiment.engine.log_replay
    if target is None:
        raise NotEnough("there is no target for the replay")
    found = reports(evidence)
    return _beside(found, "replay", target + found["of_records"], evidence)


def _beside(found: pd.DataFrame, column: str, allowed: pd.Series, evidence: Evidence) -> pd.DataFrame:
    """The column beside what is allowed; raises `NotEnough` if nothing is wrong and nothing is known of a partition."""
    share = found[column] / allowed
    known, partitions = found["partition"].nunique(), evidence.experiment.engine.partitions
    if known < partitions and (share <= 1).all():
        raise NotEnough(f"only {known} of {partitions} partitions have reported with time to spare")
    return found[["at_ns", "partition", column]].assign(allowed=allowed, share=share).reset_index(drop=True)


def modelled_extents(evidence: Evidence) -> pd.DataFrame:
    """Return one row for each partition, of its last report: `extent`, and it by the least and the most of the model.

    `apart` is the larger of how far it is below the least and above the most, as a ratio.

    Raises `NotEnough` if the oldest window may have opened before the log had settled.
    """
    from models.log_extent import extent  # imported here: a command that only lists checks need not import SciPy

    last, least, most = _settled(evidence)
    return _within(last, "extent", _likely(extent(*least))[0], _likely(extent(*most))[1])


def modelled_replays(evidence: Evidence) -> pd.DataFrame:
    """Return one row for each partition, of its last report: `replay`, and it by the least and the most of the model.

    A recovery replays the records after the oldest footprint. If windows are saved only when they open, that is the
    record that opened the oldest window, so the replay is the age of this window, in records of the partition. The
    limits of the age are thus those of the replay. The limits of the extent are wider, since the number of entries for
    so many records varies.

    Raises `NotEnough` if the oldest window may have opened before the log had settled.
    """
    from models.log_extent import oldest_window  # imported here: a command that only lists checks need not import SciPy

    last, least, most = _settled(evidence)
    return _within(last, "replay", max(1.0, oldest_window(*least)), oldest_window(*most))


def _settled(evidence: Evidence) -> tuple[pd.DataFrame, tuple[float, int, float], tuple[float, int, float]]:
    """The last report of each partition, and what `oldest_window` takes for the youngest and the oldest that the oldest
    window of a partition may be."""
    from models.log_extent import oldest_window, settles_after  # imported here for the same reason

    workload, partitions = evidence.experiment.workload, evidence.experiment.engine.partitions
    if not isinstance(workload, CecPricesSpec):
        raise NotEnough("the workload has no count windows")
    last = reported(evidence).sort_values("at_ns").groupby("partition").last()
    items, size, tail = workload.items / partitions, workload.window_records, CHANCE / 2 / partitions
    if items < FEWEST_OF_A_PARTITION:
        raise NotEnough(f"a partition has {items:,.0f} items; the model needs {FEWEST_OF_A_PARTITION}")
    few, many = _likely(items) if partitions > 1 else (items, items)
    least, most = (few, size, tail), (many, size, 1 - tail)
    settled = max(2 * oldest_window(*most), settles_after(many, size))
    if (last["records"] < settled).any():
        raise NotEnough(f"partitions have read fewer than {settled:,.0f} records: the log has not settled")
    return last, least, most


def _within(last: pd.DataFrame, column: str, low: float, high: float) -> pd.DataFrame:
    of_low, of_high = last[column] / low, last[column] / high
    found = last[["at_ns", column]].assign(of_low=of_low, of_high=of_high, low=low, high=high)
    return found.assign(apart=np.maximum(of_high, 1 / of_low)).reset_index()


def _likely(count: float) -> tuple[float, float]:
    """Between what a number lies that is that large on average, and is made of many independent ones."""
    return max(1.0, count - DEVIATIONS * count**0.5), count + DEVIATIONS * count**0.5


def _as_modelled(column: str, subject: Callable[[Evidence], pd.DataFrame], *, model: str, would: str) -> Check:
    """The check of a quantity that has no target: `would` says what a recovery would do."""

    def worst(report: pd.Series) -> str:
        low, high = f"{report['low']:,.0f}", f"{report['high']:,.0f}"
        return f"{column} of {report['partition']} is {report[column]:,.0f} instead of {low} to {high}"

    return Check(
        name=f"output_logs.modelled_{column}",
        table="output_logs",
        subject=subject,
        rules=lambda evidence: [between("of_low", 1, None), between("of_high", None, 1)],
        observed=lambda frame: ", ".join(f"{each:,}" for each in frame[column]),
        expected=lambda evidence: f"what the model gives for {model}",
        asks=f"in the last report, a recovery would {would} as the model gives for windows that are saved only when"
        f" they open; chance alone takes the age of the oldest window beyond the limits in {CHANCE:.1%} of runs",
        asked_of="`output_logs.open_windows`, with windows of 2 records or more, without `engine.log_extent`,"
        " `engine.log_replay` and `engine.log_failure_rate`",
        applies=follows_model,
        parting=Parting("apart", worst),
    )


def _within_target(
    column: str,
    subject: Callable[[Evidence], pd.DataFrame],
    applies: Callable[[Experiment], bool],
    *,
    most: str,
    would: str,
    grown: str,
    besides: str = "",
) -> Check:
    """The check of a target: `most` is its symbol, and `would` says what a recovery would do within the target."""

    def worst(report: pd.Series) -> str:
        found, allowed = f"{report[column]:,.0f}", f"{report['allowed']:,.0f}"
        return f"{column} of {report['partition']} is {found}, and at most {allowed} is allowed"

    return Check(
        name=f"output_logs.{column}",
        table="output_logs",
        subject=subject,
        rules=lambda evidence: [between("share", 0, 1)],
        observed=lambda frame: (
            f"{len(frame):,} reports, at most {significant(frame['share'].max())} of what is allowed"
        ),
        expected=lambda evidence: f"in each report, at most {most} plus {grown} since the previous report",
        asks=f"a recovery would {would}, besides those that came since the previous report; only reports with time"
        f" to spare count (at most {SPENT:.0%} of CI was used per CP{besides}), and each partition must have one",
        asked_of=f"`engine.log_{column}`",
        applies=applies,
        parting=Parting("share", worst),
    )


CHECKS: tuple[Check, ...] = (
    _within_target(
        "extent",
        extents,
        has_extent_target,
        most="Q",
        would="read at most Q entries",
        grown="the growth of the log",
        besides=", and Q is not below the number of open windows",
    ),
    _within_target(
        "replay", replays, has_replay_target, most="U", would="replay at most U records", grown="the records read"
    ),
    _as_modelled(
        "extent", modelled_extents, model="the entries since the oldest window opened", would="read as many entries"
    ),
    _as_modelled("replay", modelled_replays, model="the age of the oldest window", would="replay as many records"),
)
