"""`checkmate`, figure 8 and table III: how long checkpoints take, how many there are, how many can't be used."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import stats

from experiments.engines import ProtocolName
from reproductions.checkmate.by_protocol import CIC, COOR, NAMES, UNC, by_query, complete, draw_by_workers, facts
from reproductions.checkmate.experiments import PROTOCOLS, QUERIES, SHORT, SHUFFLED, killed, load_of, loaded
from reproductions.checkmate.simulated import SimulatedCell, simulated, simulated_at_least
from reproductions.claims import Ratio, at_least, mean_of_runs, ratio_of, samples
from reproductions.measured import Cell
from reproductions.measured_rows import Row, measured
from reproductions.plants import InRows, like_rows, put_in_rows
from reproductions.reproduction import ReproductionCheck, holds
from reproductions.runs_needed import CONFIDENCE, half_of_mean
from results.checks.rules import NotEnough, between

ROUND = "round"  # the partition under which the table of checkpoints has the coordinator's rounds
WELL_ABOVE = 2.0
WELL_ABOVE_TOLD = f"a round of COOR takes at least {WELL_ABOVE:g} times as long as a checkpoint of UNC and CIC"
MOST_INVALID = 0.05
LEAST_PRINTED = 0.02  # the least of UNC and CIC where there is a shuffle
CHANCE = 0.05  # how likely none may be by chance
PRINTED_COLUMNS = ("total_on_10", "invalid_percent_on_10", "total_on_50", "invalid_percent_on_50")  # workers
PRINTED = {
    "q1": {UNC: (303, 0, 1437, 0), CIC: (285, 0, 1428, 0), COOR: (240, 0, 1200, 0)},
    "q3": {UNC: (455, 4, 2399, 3), CIC: (471, 3, 2517, 4), COOR: (400, 0, 2000, 0)},
    "q8": {UNC: (384, 2, 1924, 2), CIC: (386, 3, 1920, 3), COOR: (360, 0, 1800, 0)},
    "q12": {UNC: (282, 3, 1446, 3), CIC: (282, 4, 1451, 3), COOR: (240, 0, 1200, 0)},
}


def checkpoint_times(cell: Cell) -> Iterator[Row]:
    """How long checkpoints took [s]: those of partitions; of coordinated ones the rounds, which alone are of use."""
    stored = _stored(cell)
    if len(stored):
        in_rounds = cell.experiment.engine.protocol_run is ProtocolName.COORDINATED
        yield samples(stored["seconds"][(stored["partition"] == ROUND) == in_rounds])


def times_under_load(cell: Cell) -> Iterator[Row]:
    """The same with the load; nothing of a search."""
    if load := load_of(cell.experiment):
        for times in checkpoint_times(cell):
            yield load | times


def simulated_times(cell: SimulatedCell) -> Iterator[Row]:
    """How long they took, simulated [s]."""
    yield samples(pd.Series(cell.loaded().checkpoint_seconds, dtype=float))


def checkpoint_counts(cell: Cell) -> Iterator[Row]:
    """How many checkpoints partitions took, and how many of them a recovery left behind."""
    taken, about = taken_checkpoints(cell), facts(cell)
    if len(taken):
        yield validity(taken) | _printed(about["query"], about["protocol"])


def simulated_counts(cell: SimulatedCell) -> Iterator[Row]:
    """The same, simulated: of those stored before the failure, which lie beyond the line."""
    found = cell.loaded()
    counts = _counts(found.checkpoints, found.invalid)
    yield counts | _printed(cell.query.value, SHORT[cell.protocol])


def taken_checkpoints(cell: Cell) -> pd.DataFrame:
    """The checkpoints of partitions in the window, and whether each was stored while a partition was missing."""
    stored = _stored(cell)
    if stored.empty:
        return stored
    taken = stored[stored["partition"] != ROUND]
    recoveries = cell.table("recoveries").reindex(columns=["notice_ns", "ready_ns"]).dropna()
    outages = list(recoveries.itertuples(index=False))
    amid = [any(notice_ns <= at_ns < ready_ns for notice_ns, ready_ns in outages) for at_ns in taken["completed_ns"]]
    return taken.assign(in_outage=amid)


def validity(taken: pd.DataFrame) -> Row:
    """How many there are, and how many a recovery left behind, but for those `in_outages`, which are told apart.

    The paper's workers all go back as soon as one is missed. Here Spark takes seconds to bring up another, in which
    the others go on; what is downstream of the lost one then takes checkpoints that can't be of use any more.
    """
    before = taken[~taken["in_outage"]]
    return _counts(len(before), int(before["invalid"].sum())) | {"in_outages": len(taken) - len(before)}


def _counts(checkpoints: int, invalid: int) -> Row:
    return {"checkpoints": checkpoints, "invalid": invalid, "invalid_share": invalid / max(1, checkpoints)}


def _printed(query: str, protocol: str) -> Row:
    """What the paper's table has."""
    values = zip(PRINTED_COLUMNS, PRINTED[query][protocol], strict=True)
    return {f"printed_{name}": value for name, value in values}


def _stored(cell: Cell) -> pd.DataFrame:
    """The checkpoints of the window."""
    stored = cell.table("partition_checkpoints")
    return stored[stored["in_window"]] if len(stored) else stored


def ratios_to_coordinated(rows: pd.DataFrame) -> list[Ratio]:
    """Mean of COOR over that of UNC, and over that of CIC; the rows are those of one cell of anything else."""
    known = complete(rows, "mean")
    means = {name: mean_of_runs(known[known["protocol"] == name]) for name in NAMES}
    return [ratio_of(f"COOR / {name}", means[COOR], means[name]) for name in (UNC, CIC)]


AS_LONG = like_rows(("mean", "std"), COOR, CIC)


def _well_above(query: str) -> ReproductionCheck:
    def ratios(table: pd.DataFrame) -> list[Ratio]:
        return ratios_to_coordinated(by_query(table, query))

    return at_least(f"{query}.coordinated_well_above", ratios, WELL_ABOVE, WELL_ABOVE_TOLD, AS_LONG)


def _simulated_well_above(query: str) -> ReproductionCheck:
    def ratios(table: pd.DataFrame) -> list[tuple[str, float]]:
        means = complete(by_query(table, query), "mean").set_index("protocol")["mean"]
        return [(f"COOR / {other}", means[COOR] / means[other]) for other in (UNC, CIC)]

    return simulated_at_least(f"{query}.coordinated_well_above", ratios, WELL_ABOVE, WELL_ABOVE_TOLD, AS_LONG)


def _plot_times(table: pd.DataFrame) -> Figure:
    errors = half_of_mean(table["std"], table["samples"])
    figure = draw_by_workers(table.assign(error=errors), "mean", "error")
    figure.axes[0].set(yscale="log", ylabel="mean time of rounds (COOR), of\npartitions' checkpoints (UNC, CIC) [s]")
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside upper right", ncols=len(NAMES))
    return figure


def _all_valid(query: str) -> ReproductionCheck:
    def shares(table: pd.DataFrame) -> pd.DataFrame:
        rows = _counted(table, query, COOR)
        if (rows["checkpoints"] == 0).any() and not rows["invalid_share"].any():
            raise NotEnough(f"COOR took no checkpoint that could be invalid: {_counts_told(rows)}")
        return rows

    name, expected = f"{query}.coordinated_all_valid", "COOR: none invalid"
    return holds(name, shares, [between("invalid_share", 0, 0.0)], _counts_told, expected, ONE_IN_A_HUNDRED)


def _counted(table: pd.DataFrame, query: str, *protocols: str) -> pd.DataFrame:
    rows = by_query(table, query)
    return complete(rows[rows["protocol"].isin(protocols)], "checkpoints", "invalid", "invalid_share")


def few_invalid(name: str, counted: Callable[[pd.DataFrame], pd.DataFrame], expected: str) -> ReproductionCheck:
    """At most `MOST_INVALID` of the checkpoints of a protocol are invalid, whatever chance has done to these.

    `counted` takes the rows from the table that have `checkpoints` and `invalid`. The replicates count together. The
    limits of the share are those of Clopper and Pearson, at 95 %.
    """

    def shares(table: pd.DataFrame) -> pd.DataFrame:
        summed = _summed(counted(table))
        invalid, valid = summed["invalid"], summed["checkpoints"] - summed["invalid"]
        low = np.nan_to_num(stats.beta.ppf((1 - CONFIDENCE) / 2, invalid, valid + 1))  # of none invalid it is nan
        high = stats.beta.ppf((1 + CONFIDENCE) / 2, invalid + 1, valid)
        few = high <= MOST_INVALID
        if not few.all() and not (low > MOST_INVALID).any():
            told = f"too few checkpoints to decide whether at most {MOST_INVALID:.0%} are invalid"
            raise NotEnough(f"{told}: {_counts_told(summed[~few])}")
        return summed.assign(low=low)

    return holds(name, shares, [between("low", 0, MOST_INVALID)], _counts_told, expected, TENTH_INVALID)


def _few_invalid(query: str) -> ReproductionCheck:
    def counted(table: pd.DataFrame) -> pd.DataFrame:
        return _counted(table, query, UNC, CIC)

    return few_invalid(f"{query}.few_invalid", counted, "UNC, CIC: at most 5 % invalid")


def _summed(rows: pd.DataFrame) -> pd.DataFrame:
    """The counts of all replicates together, by protocol and workers."""
    return rows.groupby(["protocol", "workers"], sort=False)[["checkpoints", "invalid"]].sum().reset_index()


def _some_invalid(query: str) -> ReproductionCheck:
    """Where the paper has 2 to 4 % there are some; none of a few shows nothing."""

    def counts(table: pd.DataFrame) -> pd.DataFrame:
        summed = _summed(_counted(table, query, UNC, CIC))
        by_chance = (1 - LEAST_PRINTED) ** summed["checkpoints"] > CHANCE
        few = (summed["invalid"] == 0) & by_chance
        if few.any() and not ((summed["invalid"] == 0) & ~by_chance).any():
            even_if = f"even if {LEAST_PRINTED:.0%} of all were invalid, chance could leave none among so few"
            raise NotEnough(f"too few checkpoints to decide: {_counts_told(summed[few])}; {even_if}")
        return summed

    return holds(
        f"{query}.some_invalid",
        counts,
        [between("invalid", 1, None)],
        _counts_told,
        f"UNC and CIC: some invalid (printed: {LEAST_PRINTED:.0%} to 4 %)",
        NONE_OF_MANY,
    )


def _counts_told(rows: pd.DataFrame) -> str:
    told = rows[["protocol", "workers", "invalid", "checkpoints"]].itertuples(index=False)
    return ", ".join(
        f"{name} on {workers} workers: {invalid:.0f} of {count:.0f} invalid" for name, workers, invalid, count in told
    )


def _plot_counts(table: pd.DataFrame) -> Figure:
    figure = draw_by_workers(table.assign(percent=100 * table["invalid_share"]), "percent")
    for panel in figure.axes:
        panel.axhline(100 * MOST_INVALID, color="black", ls="--", lw=1)
    figure.axes[0].set(ylabel=f"invalid checkpoints after one kill [%]; dashed: {MOST_INVALID:.0%}")
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside upper right", ncols=len(NAMES))
    return figure


ONE_IN_A_HUNDRED = put_in_rows("invalid_share", 0.01, protocol=COOR)
TENTH_INVALID = InRows(
    "of CIC 40 of 400 invalid",
    lambda table: table.assign(
        invalid=table["invalid"].mask(table["protocol"] == CIC, 40),
        checkpoints=table["checkpoints"].mask(table["protocol"] == CIC, 400),
    ),
)
NONE_OF_MANY = InRows("none of 400 invalid", lambda table: table.assign(invalid=0, checkpoints=400))
COUNT_CHECKS = (
    *(_all_valid(query) for query in QUERIES),
    *(_few_invalid(query) for query in QUERIES),
    *(_some_invalid(query) for query in SHUFFLED),
)


REPRODUCTIONS = (
    measured(
        "checkmate/fig-08",
        "mean checkpoint time by protocol and query, at 80 % of what the protocol sustains",
        needs=loaded,
        of_cell=times_under_load,
        plot=_plot_times,
        about=facts,
        checks=tuple(_well_above(query) for query in SHUFFLED),
        simulation=simulated(PROTOCOLS, simulated_times, tuple(_simulated_well_above(query) for query in SHUFFLED)),
    ),
    measured(
        "checkmate/table-3",
        "checkpoints taken, and the share of invalid ones after a kill",
        needs=killed,
        of_cell=checkpoint_counts,
        plot=_plot_counts,
        about=facts,
        checks=COUNT_CHECKS,
        simulation=simulated(PROTOCOLS, simulated_counts, COUNT_CHECKS),
    ),
)
