"""`incremental`, figure 12: the share of available queries over time, by what the recovery waits for.

As in the paper, a query is available again from when its relative latency is below 1.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from reproductions.incremental.experiments import TOPOLOGY_2, Waits, available, shape_of, waits_for
from reproductions.measured import Cell
from reproductions.measured_rows import Row, measured
from reproductions.plants import Plant, scaled_rows
from reproductions.reproduction import ReproductionCheck, holds
from results.checks.rules import NotEnough, between
from results.summary.availability import Availability, least_ahead
from results.views.style import BLUE, GREEN, ORANGE, WIDTH_IN, legend_above

COLORS = {Waits.NOTHING: GREEN, Waits.ROOM: BLUE, Waits.ALL: ORANGE}
SOONER = 0.9  # of the time that queries are away in the other run, on average: what is a tenth late is on time
EARLY = 0.4  # of the time to the first query under blocking recovery
CELL = ["topology", "replicate"]


def facts(cell: Cell) -> Row:
    """What is known of a cell, whether it has been run or not."""
    return {
        "topology": shape_of(cell.experiment).number,
        "waits": waits_for(cell.experiment).value,
    } | cell.origin


def queries(cell: Cell) -> Iterator[Row]:
    """Each lost query with when it was lost and when it was available again [s since the first loss]; null: never.

    Nothing of a run whose relative latencies are not known: nobody looked when a query was on time again.
    """
    found, latencies = cell.table("query_recoveries"), cell.table("query_latencies")
    if found.empty or latencies.empty or latencies["relative_latency"].isna().all():
        return
    first_ns = found["death_ns"].min()
    for _, row in found.iterrows():
        normal_s = None if pd.isna(row["normal_ns"]) else (row["normal_ns"] - first_ns) / 1e9
        yield {"query": row["query"], "lost_s": (row["death_ns"] - first_ns) / 1e9, "normal_s": normal_s}


def _availability(rows: pd.DataFrame) -> Availability:
    back_s = {"available": rows["normal_s"].astype(float).fillna(np.inf).to_numpy()}
    return Availability(tuple(rows["query"]), rows["lost_s"].to_numpy(dtype=float), back_s, 0)


def _pairs(
    table: pd.DataFrame, better: Waits, worse: Waits, topologies: tuple[int, ...]
) -> Iterator[tuple[Row, Availability, Availability]]:
    """By topology and replicate, the two runs; raises `NotEnough` if one lacks, or a query is never back in the worse.

    The run ended before that query was back, or nobody saw it: how late it is, is not known, and any other recovery
    would be ahead of it.
    """
    for key, rows in table[table["topology"].isin(topologies)].groupby(CELL):
        runs = [rows[rows["waits"] == waits.value] for waits in (better, worse)]
        for waits, run in zip((better, worse), runs, strict=True):
            if "query" not in run or run.empty or run["query"].isna().any():
                raise NotEnough(f"no run of {waits.value} on topology {key[0]} #{key[1]} has measured its queries")
        one, other = (_availability(run) for run in runs)
        if gone := other.never_back:
            where = f"{worse.value} on topology {key[0]} #{key[1]}"
            raise NotEnough(f"not available again under {where}: {', '.join(gone)}")
        yield dict(zip(CELL, key, strict=True)), one, other


def _ahead(better: Waits, worse: Waits) -> Callable[[pd.DataFrame], pd.DataFrame]:
    def compare(table: pd.DataFrame) -> pd.DataFrame:
        return pd.DataFrame(
            [
                cell | {"ahead": least_ahead(*runs), "away": _away(*runs)}
                for cell, *runs in _pairs(table, better, worse, (1, 2))
            ]
        )

    return compare


def _away(better: Availability, worse: Availability) -> float:
    """How long queries are away on average in one run, over how long they are in the other; inf if one never returns.

    A run that is nowhere behind another need not be ahead of it anywhere.
    """
    away_s = [np.sum(run.away_until_s() - run.lost_s) / run.count for run in (better, worse)]
    return float(away_s[0] / away_s[1])


def _first_back(table: pd.DataFrame) -> pd.DataFrame:
    pairs = _pairs(table, Waits.ROOM, Waits.ALL, (TOPOLOGY_2.number,))
    return pd.DataFrame([cell | {"share": one.first_back_s / other.first_back_s} for cell, one, other in pairs])


def _never_behind(name: str, better: Waits, worse: Waits, plant: Plant) -> ReproductionCheck:
    return holds(
        name,
        _ahead(better, worse),
        [between("ahead", 0.0, None), between("away", None, SOONER)],
        lambda found: (
            f"the share of {better.value} minus that of {worse.value} is {found['ahead'].min():+.0%} at least;"
            f" queries are away {found['away'].max():.2f} times as long at most"
        ),
        f"at no moment {better.value} has fewer queries available than {worse.value}, on both topologies; what is a"
        f" tenth of the time late is on time; on average queries are away at most {SOONER:g} times as long",
        plant,
    )


def _plot(table: pd.DataFrame) -> Figure:
    figure = Figure(figsize=(WIDTH_IN, 4.2), layout="constrained")
    known = table.dropna(subset=["normal_s"]) if "normal_s" in table else table.head(0)
    end_s = float(known["normal_s"].max()) if len(known) else 1.0
    panels = figure.subplots(1, 2, sharey=True)
    for panel, (number, rows) in zip(panels, table.groupby("topology"), strict=False):
        for (waits, _), run in rows.groupby(["waits", "replicate"]):
            if run["query"].isna().any():
                continue
            found = _availability(run)
            at_s = np.r_[found.turns_s, end_s]
            panel.step(at_s, 100 * found.share(at_s), where="post", color=COLORS[Waits(str(waits))], label=waits)
        panel.set(title=f"topology {number}", xlabel="time since the first loss [s]")
    panels[0].set(ylabel="queries available [%]", ylim=(-2, 102))
    legend_above(figure)
    return figure


REPRODUCTIONS = (
    measured(
        "incremental/fig-12",
        "queries available over time, by what the recovery waits for",
        needs=available,
        of_cell=queries,
        plot=_plot,
        checks=(
            _never_behind(
                "best_case.never_behind",
                Waits.NOTHING,
                Waits.ROOM,
                scaled_rows("normal_s", 50.0, waits=Waits.NOTHING.value),
            ),
            _never_behind(
                "incremental.never_behind", Waits.ROOM, Waits.ALL, scaled_rows("normal_s", 5.0, waits=Waits.ROOM.value)
            ),
            holds(
                "incremental.first_query",
                _first_back,
                [between("share", None, EARLY)],
                lambda found: f"{found['share'].min():.0%} to {found['share'].max():.0%} of blocking's time",
                f"on topology 2 the first query is back before {EARLY:.0%} of the time that Blocking takes for it",
                scaled_rows("normal_s", 0.2, waits=Waits.ALL.value),
            ),
        ),
        about=facts,
    ),
)
