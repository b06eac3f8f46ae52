"""The checks of `ppa`, figures 12 and 13. Each is of all cells that it names: the worst of them decides."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from reproductions.plants import InRows, put_in_rows, scaled_rows
from reproductions.ppa.tentative_plans import PlannedBy
from reproductions.ppa.tentative_queries import Query
from reproductions.reproduction import ReproductionCheck, holds
from results.checks.rules import NotEnough, Rule, between

TRACKS = 0.05  # apart at most, of what predicts the accuracy: as `results.checks.subjects.tentative` asks of every run
MISLEADS = 0.1  # apart at least, of what promises too much
NEARLY = 0.9  # of the optimum's
BEHIND = 0.05  # at least, of the worst plan
BY_TREES, BY_COMPLETENESS = PlannedBy.STRUCTURE_AWARE, PlannedBy.COMPLETENESS
MEASURES = ("output_fidelity", "internal_completeness", "accuracy")
Compare = Callable[[pd.DataFrame], pd.DataFrame]
SAME_REASON = (
    "the regions of Q2 do not send to each other and put out different amounts, so the tasks whose loss costs most"
    " are those of one region after the other, and greedy plans have whole trees"
)


def _cells(table: pd.DataFrame, planner: PlannedBy, *queries: Query) -> pd.DataFrame:
    """By query and number of copies, the medians over the replicates; raises `NotEnough` if some are missing."""
    rows = table[(table["planner"] == planner) & table["query"].isin([query.value for query in queries])]
    if rows.empty or "accuracy" not in rows or rows["accuracy"].isna().any():
        raise NotEnough(f"the accuracy under planner {planner.value} is not known of every query and number of copies")
    return rows.groupby(["query", "copies"])[list(MEASURES)].median()


def _apart(metric: str, planner: PlannedBy, *queries: Query) -> Compare:
    """By how much a metric says more than the accuracy is, in each cell."""

    def compare(table: pd.DataFrame) -> pd.DataFrame:
        found = _cells(table, planner, *queries)
        return pd.DataFrame({"apart": found[metric] - found["accuracy"]})

    return compare


def _risen(table: pd.DataFrame) -> pd.DataFrame:
    """How much more completeness and accuracy plans by completeness have with the most copies than with the fewest."""
    found = _cells(table, BY_COMPLETENESS, Query.INCIDENTS).sort_index()
    risen = found.iloc[-1] - found.iloc[0]
    return pd.DataFrame({"completeness": [risen["internal_completeness"]], "accuracy": [risen["accuracy"]]})


def _rates_apart(table: pd.DataFrame) -> pd.DataFrame:
    """How far the fidelity under the rates that a run measured before the loss is from that under ours."""
    if "fidelity_in_run" not in table or table["fidelity_in_run"].isna().all():
        raise NotEnough("no run has told the rates before the loss")
    if table["accuracy"].isna().any():
        raise NotEnough("not every run has been made")
    if table.loc[table["accuracy"] > 0, "fidelity_in_run"].isna().any():
        raise NotEnough("not every run with tentative output has told the rates before the loss")
    told = table[table["fidelity_in_run"].notna()]
    return pd.DataFrame({"apart": told["fidelity_in_run"].astype(float) - told["output_fidelity"]})


def _relative(column: str, query: Query) -> Compare:
    """What the structure-aware plan reaches of what the plan by dynamic programming does, where these two differ."""

    def compare(table: pd.DataFrame) -> pd.DataFrame:
        plans = table[table["query"] == query].drop_duplicates(["planner", "copies"])
        dp, ours = (plans[plans["planner"] == each].set_index("copies")["copied"] for each in (PlannedBy.DP, BY_TREES))
        differ = dp.index[dp != ours.reindex(dp.index)]
        if differ.empty:
            at = ", ".join(str(copies) for copies in dp.index)
            raise NotEnough(f"the plans are the same at {query}, {at} copies: there is nothing to compare")
        best, found = (_cells(table, each, query).loc[query.value].loc[differ] for each in (PlannedBy.DP, BY_TREES))
        return pd.DataFrame({"ratio": (found[column] / best[column])[best[column] > 0]})

    return compare


def _ahead(column: str, query: Query) -> Compare:
    """By how much the greedy plan is behind the worse of the other two, in each cell in which there is any output."""

    def compare(table: pd.DataFrame) -> pd.DataFrame:
        dp, ours, greedy = (_cells(table, each, query) for each in (PlannedBy.DP, BY_TREES, PlannedBy.GREEDY))
        ahead = dp[column].combine(ours[column], min) - greedy[column]
        return pd.DataFrame({"ahead": ahead[dp["output_fidelity"] > 0]})

    return compare


def _told(frame: pd.DataFrame) -> str:
    """The range of each column, and the numbers of copies at which it was taken."""
    ranges = ", ".join(f"{name} {frame[name].min():.2f} to {frame[name].max():.2f}" for name in frame)
    copies = frame.index.get_level_values("copies") if "copies" in frame.index.names else ()
    return ranges + (f", at {', '.join(map(str, dict.fromkeys(copies)))} copies" if len(copies) else "")


def _with_another_plan(column: str, factor: float) -> InRows:
    """On Q2, structure-aware plans are others than dp's, and reach this share of what dp's do."""
    where = {"planner": BY_TREES.value, "query": Query.INCIDENTS.value}
    worse, other = scaled_rows(column, factor, **where), put_in_rows("copied", "another plan", **where)
    return InRows(f"another plan, and {worse.what}", lambda table: other.change(worse.change(table)))


def _as_good(column: str, query: Query) -> InRows:
    """Greedy plans reach what structure-aware ones do."""

    def change(table: pd.DataFrame) -> pd.DataFrame:
        keys = ["query", "copies", "replicate"]
        ours = table[table["planner"] == BY_TREES].set_index(keys)[column]
        tied = table.set_index(keys).index.map(ours).to_series(index=table.index)
        is_greedy = (table["planner"] == PlannedBy.GREEDY) & (table["query"] == query)
        return table.assign(**{column: table[column].mask(is_greedy, tied)})

    return InRows(f"{column} of greedy := that of structure-aware, {query.value}", change)


def _far(low: float | None, high: float | None, column: str = "apart") -> list[Rule]:
    return [between(column, low, high)]


def _of_planners(column: str) -> tuple[ReproductionCheck, ...]:
    words = column.replace("_", " ")
    close = f"{words} of structure-aware plans is at least {NEARLY:g} of dp's where the plans differ"
    worst = f"{words} of greedy plans is at least {BEHIND:g} below that of dp's and of structure-aware ones"
    return (
        holds(
            f"structure_aware.{column}_close_to_dp.q1",
            _relative(column, Query.BOUND),
            _far(NEARLY, None, "ratio"),
            _told,
            f"{close}, for Q1",
            scaled_rows(column, 0.5, planner=BY_TREES.value, query=Query.BOUND.value),
        ),
        holds(
            f"structure_aware.{column}_close_to_dp.q2",
            _relative(column, Query.INCIDENTS),
            _far(NEARLY, None, "ratio"),
            _told,
            f"{close}, for Q2",
            _with_another_plan(column, 0.5),
        ),
        holds(
            f"greedy.{column}_worst.q1",
            _ahead(column, Query.BOUND),
            _far(BEHIND, None, "ahead"),
            _told,
            f"{worst}, for Q1",
            _as_good(column, Query.BOUND),
        ),
        holds(
            f"greedy.{column}_worst.q2",
            _ahead(column, Query.INCIDENTS),
            _far(BEHIND, None, "ahead"),
            _told,
            f"{worst}, for Q2",
            put_in_rows(column, 0.0, planner=PlannedBy.GREEDY.value, query=Query.INCIDENTS.value),
            fails=SAME_REASON,
        ),
    )


METRIC_CHECKS: tuple[ReproductionCheck, ...] = (
    holds(
        "fidelity.tracks_accuracy",
        _apart("output_fidelity", BY_TREES, Query.BOUND, Query.INCIDENTS),
        _far(-TRACKS, TRACKS),
        _told,
        f"output fidelity and accuracy are at most {TRACKS:g} apart, for both queries",
        scaled_rows("accuracy", 0.7, planner=BY_TREES.value, query=Query.INCIDENTS.value),
    ),
    holds(
        "completeness.misleads_with_joins",
        _apart("internal_completeness", BY_COMPLETENESS, Query.INCIDENTS),
        _far(MISLEADS, None),
        _told,
        f"of every plan by internal completeness for Q2, it promises at least {MISLEADS:g} too much",
        put_in_rows("accuracy", 0.45, planner=BY_COMPLETENESS.value, copies=9),
    ),
    holds(
        "completeness.more_is_not_more_accurate",
        _risen,
        [between("completeness", MISLEADS, None), between("accuracy", None, TRACKS)],
        _told,
        f"for Q2, more copies give plans by internal completeness at least {MISLEADS:g} more of it, and their accuracy"
        f" rises by at most {TRACKS:g}",
        put_in_rows("accuracy", 0.6, planner=BY_COMPLETENESS.value, copies=12),
    ),
    holds(
        "rates.as_planned_by",
        _rates_apart,
        _far(-TRACKS, TRACKS),
        _told,
        f"under the rates that a run measured before the loss, output fidelity differs by at most {TRACKS:g}",
        scaled_rows("fidelity_in_run", 0.7, planner=BY_TREES.value, copies=12),
    ),
)
PLANNER_CHECKS: tuple[ReproductionCheck, ...] = (*_of_planners("output_fidelity"), *_of_planners("accuracy"))
