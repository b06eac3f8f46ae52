"""The checks of `ppa`, figures 12 and 13. Each is of all cells that it names: the worst of them decides."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from reproductions.plants import InRows, put_in_rows, scaled_rows
from reproductions.ppa.tentative_plans import PlannedBy, copies_of
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
SPREAD_REASON = "every server gives out nearly the same top entries, so a few servers are enough to find most of them"
NONE_HALF_FED = "no copies bring a join that gets one of its inputs and lacks another"


def _cells(table: pd.DataFrame, planner: PlannedBy, *queries: Query) -> pd.DataFrame:
    """By query and number of copies, the medians over the replicates; raises `NotEnough` if some are missing."""
    rows = table[(table["planner"] == planner) & table["query"].isin([query.value for query in queries])]
    cells = {(query.value, copies) for query in queries for copies in copies_of(query, planner)}
    lacks = not cells.issubset(zip(rows["query"], rows["copies"], strict=True))
    if rows.empty or lacks or "accuracy" not in rows or rows["accuracy"].isna().any():
        raise NotEnough(f"the accuracy under planner {planner.value} is not known of every query and number of copies")
    return rows.groupby(["query", "copies"])[list(MEASURES)].median()


def _apart(metric: str, planner: PlannedBy, *queries: Query) -> Compare:
    """By how much a metric says more than the accuracy is, in each cell."""

    def compare(table: pd.DataFrame) -> pd.DataFrame:
        found = _cells(table, planner, *queries)
        return pd.DataFrame({"apart": found[metric] - found["accuracy"]})

    return compare


def _of_q2(table: pd.DataFrame) -> pd.DataFrame:
    """The cells of plans by completeness for Q2, with the number of their `half_fed_joins`."""
    rows = table[(table["planner"] == BY_COMPLETENESS) & (table["query"] == Query.INCIDENTS)]
    joins = rows.groupby(["query", "copies"])["half_fed_joins"].max()
    return _cells(table, BY_COMPLETENESS, Query.INCIDENTS).assign(half_fed_joins=joins).sort_index()


def _misled(table: pd.DataFrame) -> pd.DataFrame:
    """By how much completeness says more than the accuracy is, in each cell with a join that lacks an input."""
    found = _of_q2(table)
    half_fed = found[found["half_fed_joins"] > 0]
    if half_fed.empty:
        raise NotEnough(NONE_HALF_FED)
    return pd.DataFrame({"apart": half_fed["internal_completeness"] - half_fed["accuracy"]})


def _added(table: pd.DataFrame) -> pd.DataFrame:
    """What copies add that bring another join that lacks an input: to completeness and to accuracy."""
    found = _of_q2(table)
    added = found.diff()[found["half_fed_joins"].diff() > 0]
    if added.empty:
        raise NotEnough(NONE_HALF_FED)
    return pd.DataFrame({"completeness": added["internal_completeness"], "accuracy": added["accuracy"]})


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


def _tracks_where_spread(metric: str, planner: PlannedBy) -> ReproductionCheck:
    """That a metric predicts the accuracy of Q1 if every server has every entry, which it does not."""
    query, words = Query.SPREAD.value, metric.replace("_", " ")

    def as_promised(table: pd.DataFrame) -> pd.DataFrame:
        where = (table["planner"] == planner) & (table["query"] == query)
        return table.assign(accuracy=table["accuracy"].mask(where, table[metric]))

    return holds(
        f"{metric.rpartition('_')[2]}.tracks_accuracy.q1_spread",
        _apart(metric, planner, Query.SPREAD),
        _far(-TRACKS, TRACKS),
        _told,
        f"{words} and accuracy are at most {TRACKS:g} apart, for Q1 with entries spread over servers",
        InRows(f"accuracy := {words}, planner {planner.value}, {query}", as_promised),
        fails=SPREAD_REASON,
    )


METRIC_CHECKS: tuple[ReproductionCheck, ...] = (
    holds(
        "fidelity.tracks_accuracy",
        _apart("output_fidelity", BY_TREES, Query.BOUND, Query.INCIDENTS),
        _far(-TRACKS, TRACKS),
        _told,
        f"output fidelity and accuracy are at most {TRACKS:g} apart, for Q1 with entries bound to servers and for Q2",
        scaled_rows("accuracy", 0.7, planner=BY_TREES.value, query=Query.INCIDENTS.value),
    ),
    _tracks_where_spread("output_fidelity", BY_TREES),
    holds(
        "completeness.tracks_accuracy.q1",
        _apart("internal_completeness", BY_COMPLETENESS, Query.BOUND),
        _far(-TRACKS, TRACKS),
        _told,
        f"internal completeness and accuracy are at most {TRACKS:g} apart, for Q1 with entries bound to servers",
        scaled_rows("accuracy", 0.7, planner=BY_COMPLETENESS.value, query=Query.BOUND.value),
    ),
    _tracks_where_spread("internal_completeness", BY_COMPLETENESS),
    holds(
        "completeness.misleads_with_joins",
        _misled,
        _far(MISLEADS, None),
        _told,
        f"of every plan by internal completeness for Q2 with a join that lacks an input, it promises at least"
        f" {MISLEADS:g} too much",
        put_in_rows("accuracy", 0.45, planner=BY_COMPLETENESS.value, copies=9),
    ),
    holds(
        "completeness.more_is_not_more_accurate",
        _added,
        [between("completeness", MISLEADS, None), between("accuracy", None, TRACKS)],
        _told,
        f"for Q2, copies that bring a join without one of its inputs add at least {MISLEADS:g} to internal"
        f" completeness, and at most {TRACKS:g} to accuracy",
        put_in_rows("accuracy", 0.6, planner=BY_COMPLETENESS.value, copies=13),
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
