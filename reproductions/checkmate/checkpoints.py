"""`checkmate`, figure 8 and table III: how long checkpoints take, how many there are, how many can't be used."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import stats

from experiments.engines import ProtocolName
from experiments.wording import counted
from reproductions.checkmate.by_protocol import (
    CIC,
    COOR,
    NAMES,
    UNC,
    by_query,
    complete,
    draw_by_workers,
    facts,
    protocols_ratio,
)
from reproductions.checkmate.experiments import (
    LOAD_RATES,
    PROTOCOLS,
    QUERIES,
    SHORT,
    SHUFFLED,
    killed,
    load_in_words,
    loaded,
)
from reproductions.checkmate.simulated import SimulatedCell, simulated, simulated_at_least
from reproductions.claims import IN_THE_MEAN, Ratio, at_least, samples
from reproductions.measured import Cell
from reproductions.measured_rows import Row, measured
from reproductions.plants import InRows, Plant, like_rows, put_in_rows
from reproductions.reproduction import ReproductionCheck, holds
from reproductions.runs_needed import BARS, CONFIDENCE, half_of_mean
from results.checks.rules import NotEnough, Rule, between

ROUND = "round"  # the partition under which the table of checkpoints has the coordinator's rounds
WELL_ABOVE = 2.0
MOST_INVALID = 0.05
LEAST_PRINTED = 0.02  # the least of UNC and CIC where there is a shuffle
CHANCE = 0.05  # how likely none may be by chance
DOUBT = (1 - CONFIDENCE) / 2  # beyond each of the limits
RUNS_FOR_FEW = math.ceil(math.log(DOUBT) / math.log(1 - MOST_INVALID))  # if none of them has an invalid checkpoint
RUNS_FOR_SOME = math.ceil(math.log(CHANCE) / math.log(1 - LEAST_PRINTED))  # before none can be no chance any more
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
    """The same with the load [records/s]."""
    for times in checkpoint_times(cell):
        yield {"load_rate": cell.experiment.load.rate} | times


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
    """The checkpoints of partitions in the window, and whether each was stored while a partition was missing.

    What was not ready by the end was missing until then.
    """
    stored = _stored(cell)
    if stored.empty:
        return stored
    taken = stored[stored["partition"] != ROUND]
    recoveries = cell.table("recoveries").reindex(columns=["notice_ns", "ready_ns"]).dropna(subset=["notice_ns"])
    outages = list(recoveries.astype("Int64").fillna(np.iinfo(np.int64).max).itertuples(index=False))
    amid = [any(notice_ns <= at_ns < ready_ns for notice_ns, ready_ns in outages) for at_ns in taken["completed_ns"]]
    return taken.assign(in_outage=amid)


def validity(taken: pd.DataFrame) -> Row:
    """How many there are, and how many a recovery left behind, but for those `in_outages`, which are told apart.

    The paper's workers all go back as soon as one is missed. Here Spark takes seconds to bring up another, in which
    the others go on; what is downstream of the lost one then takes checkpoints that can't be of use any more. How many
    those are is in `invalid_in_outages`.
    """
    before, amid = taken[~taken["in_outage"]], taken[taken["in_outage"]]
    told = {"in_outages": len(amid), "invalid_in_outages": int(amid["invalid"].sum())}
    return _counts(len(before), int(before["invalid"].sum())) | told


def _counts(checkpoints: int, invalid: int) -> Row:
    return {"checkpoints": checkpoints, "invalid": invalid, "invalid_share": invalid / max(1, checkpoints)}


def _printed(query: str, protocol: str) -> Row:
    """What the paper's table has; nothing of the cyclic query, which is in another."""
    values = zip(PRINTED_COLUMNS, PRINTED[query][protocol], strict=True) if query in PRINTED else ()
    return {f"printed_{name}": value for name, value in values}


def _stored(cell: Cell) -> pd.DataFrame:
    """The checkpoints of the window."""
    stored = cell.table("partition_checkpoints")
    return stored[stored["in_window"]] if len(stored) else stored


def _well_above(other: str) -> ReproductionCheck:
    def ratios(table: pd.DataFrame) -> list[Ratio]:
        return [protocols_ratio(table[table["query"].isin(SHUFFLED)], "mean", COOR, other)]

    expected = f"with a shuffle a round of COOR takes at least {WELL_ABOVE:g} times as long as a checkpoint of {other}"
    return at_least(
        f"coordinated.well_above_{other.lower()}",
        ratios,
        WELL_ABOVE,
        f"{expected}, {IN_THE_MEAN}",
        like_rows(("mean",), COOR, other),
    )


def _simulated_well_above(query: str) -> ReproductionCheck:
    def ratios(table: pd.DataFrame) -> list[tuple[str, float]]:
        means = complete(by_query(table, query), "mean").set_index("protocol")["mean"]
        return [(f"COOR / {other}", means[COOR] / means[other]) for other in (UNC, CIC)]

    expected = f"a round of COOR takes at least {WELL_ABOVE:g} times as long as a checkpoint of UNC and CIC"
    plant = like_rows(("mean", "std"), COOR, CIC)
    return simulated_at_least(f"{query}.coordinated_well_above", ratios, WELL_ABOVE, expected, plant)


def _plot_times(table: pd.DataFrame) -> Figure:
    errors = half_of_mean(table["std"], table["samples"])
    figure = draw_by_workers(table.assign(error=errors), "mean", "error")
    figure.axes[0].set(yscale="log", ylabel="mean time of rounds (COOR), of\npartitions' checkpoints (UNC, CIC) [s]")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper right", ncols=len(NAMES), title=BARS, title_fontsize=9)
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


def few_invalid(name: str, rows_of: Callable[[pd.DataFrame], pd.DataFrame], expected: str) -> ReproductionCheck:
    """At most `MOST_INVALID` of the checkpoints of a protocol are invalid on average, by the limits of `_over_runs`.

    `rows_of` takes from the table a row for each run, with `checkpoints` and `invalid`. One run decides nothing.
    """

    def shares(table: pd.DataFrame) -> pd.DataFrame:
        found = _over_runs(rows_of(table))
        few = found["high"] <= MOST_INVALID
        if not few.all() and not (found["low"] > MOST_INVALID).any():
            told = f"it is undecided whether at most {MOST_INVALID:.0%} are invalid: {_counts_told(found[~few])}"
            raise NotEnough(f"{told}; where no run has any, it takes {RUNS_FOR_FEW} runs")
        return found

    return holds(name, shares, [between("low", None, MOST_INVALID)], _counts_told, expected, TENTH_INVALID)


def _over_runs(rows: pd.DataFrame) -> pd.DataFrame:
    """By protocol and workers: `checkpoints` and `invalid` of all `runs`, and the limits of the mean share of a run.

    Each run has one kill, which makes its checkpoints invalid together: kills are independent, checkpoints are not. So
    the limits, each at 97.5 %, assume that runs are independent and alike. A run without a checkpoint does not count as
    a run.

    The upper limit assumes nothing of how many checkpoints a kill can make invalid: one that was not seen may make all
    of them invalid. If a checkpoint is drawn from each of n runs, all of these are valid with the probability
    `all_valid`, the product of the valid shares. Its mean is (1 - m)^n if m is the mean share of invalid ones. By
    Markov's inequality it is above (1 - m)^n / .025 in at most 2.5 % of all cases. So m is at most
    1 - (.025 `all_valid`)^(1 / n). A further invalid checkpoint never lowers this limit. Without any it is about
    3.7 / n (a rule of three), and with a single run it is at least 97.5 %.

    The lower limit is Student's, by how the shares of runs differ, or that of Clopper and Pearson for all checkpoints
    together if this is lower. Of one run it is 0.
    """
    share = rows["invalid"] / rows["checkpoints"]
    columns = {"checkpoints": ("checkpoints", "sum"), "invalid": ("invalid", "sum"), "runs": ("share", "count")}
    columns |= {"mean": ("share", "mean"), "std": ("share", "std"), "all_valid": ("valid", "prod")}
    runs = rows.assign(share=share, valid=1 - share)
    found = runs.groupby(["protocol", "workers"], sort=False).agg(**columns).reset_index()
    of_runs = found["mean"] - half_of_mean(found["std"], found["runs"])
    of_checkpoints = stats.beta.ppf(DOUBT, found["invalid"], found["checkpoints"] - found["invalid"] + 1)
    low = np.minimum(of_runs, of_checkpoints).fillna(0.0)
    return found.assign(low=low, high=1 - (DOUBT * found["all_valid"]) ** (1 / found["runs"]))


def few_invalid_of(query: str) -> ReproductionCheck:
    """At most `MOST_INVALID` of the checkpoints of UNC and of CIC are invalid on average, as `few_invalid` judges."""
    return few_invalid(f"{query}.few_invalid", lambda table: _counted(table, query, UNC, CIC), FEW_TOLD)


def some_invalid(query: str, printed: str = f"{LEAST_PRINTED:.0%} to 4 %") -> ReproductionCheck:
    """Where the paper has 2 to 4 % there are some; a few runs without any show nothing: one kill in 50 may make all."""

    def counts(table: pd.DataFrame) -> pd.DataFrame:
        found = _over_runs(_counted(table, query, UNC, CIC))
        none, by_chance = found["invalid"] == 0, found["runs"] < RUNS_FOR_SOME
        if (none & by_chance).any() and not (none & ~by_chance).any():
            even_if = f"even if {LEAST_PRINTED:.0%} of all were invalid, chance could leave none"
            told = f"too few runs to decide: {_counts_told(found[none])}"
            raise NotEnough(f"{told}; {even_if} in fewer than {RUNS_FOR_SOME} runs")
        return found

    rules = [between("invalid", 1, None)]
    expected = f"{SOME_TOLD} (printed: {printed})"
    return holds(f"{query}.some_invalid", counts, rules, _counts_told, expected, NONE_IN_MANY)


def check_counts(query: str, name: str, rule: Rule, expected: str, plant: Plant) -> ReproductionCheck:
    """A rule that every count of a query holds with UNC and with CIC, without limits of confidence."""
    return holds(
        f"{query}.{name}", lambda table: _counted(table, query, UNC, CIC), [rule], _counts_told, expected, plant
    )


def simulated_some_invalid(query: str) -> ReproductionCheck:
    """With UNC and with CIC some are invalid on each simulated number of workers."""
    return check_counts(query, *SIMULATED_SOME)


def _counts_told(rows: pd.DataFrame) -> str:
    """What there is of each protocol on each number of workers, and in how many runs if the rows have them together."""
    told = []
    for row in rows.to_dict("records"):
        runs = f" in {counted(int(row['runs']), 'run')}" if "runs" in row else ""
        counts = f"{row['invalid']:.0f} of {row['checkpoints']:.0f} invalid"
        told.append(f"{row['protocol']} on {row['workers']} workers: {counts}{runs}")
    return ", ".join(told)


def plot_counts(table: pd.DataFrame) -> Figure:
    """The share of invalid checkpoints by query, a panel for each number of workers."""
    figure = draw_by_workers(table.assign(percent=100 * table["invalid_share"]), "percent")
    for panel in figure.axes:
        panel.axhline(100 * MOST_INVALID, color="black", ls="--", lw=1)
    figure.axes[0].set(ylabel=f"invalid checkpoints after one kill [%]; dashed: {MOST_INVALID:.0%}")
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside upper right", ncols=len(NAMES))
    return figure


FEW_TOLD = "UNC, CIC: at most 5 % invalid"
SOME_TOLD = "UNC and CIC: some invalid"
ONE_IN_A_HUNDRED = put_in_rows("invalid_share", 0.01, protocol=COOR)
TENTH_INVALID = InRows(
    "of CIC 40 of 400 invalid",
    lambda table: table.assign(
        invalid=table["invalid"].mask(table["protocol"] == CIC, 40),
        checkpoints=table["checkpoints"].mask(table["protocol"] == CIC, 400),
    ),
)
NONE_IN_MANY = InRows(
    f"none invalid in {RUNS_FOR_SOME} runs",
    lambda table: pd.concat([table.assign(invalid=0, replicate=each) for each in range(RUNS_FOR_SOME)]),
)
COUNT_CHECKS = (
    *(_all_valid(query) for query in QUERIES),
    *(few_invalid_of(query) for query in QUERIES),
    *(some_invalid(query) for query in SHUFFLED),
)
SIMULATED_FEW = (
    "few_invalid",
    between("invalid_share", 0, MOST_INVALID),
    FEW_TOLD,
    put_in_rows("invalid_share", 0.1, protocol=CIC),
)
SIMULATED_SOME = ("some_invalid", between("invalid", 1, None), SOME_TOLD, put_in_rows("invalid", 0))
SIMULATED_COUNT_CHECKS = (
    *(_all_valid(query) for query in QUERIES),
    *(check_counts(query, *SIMULATED_FEW) for query in QUERIES),
    *(simulated_some_invalid(query) for query in SHUFFLED),
)


REPRODUCTIONS = (
    measured(
        "checkmate/fig-08",
        f"mean checkpoint time at {load_in_words(LOAD_RATES[1])}; simulated: at 80 % of what the protocol sustains",
        needs=loaded,
        of_cell=times_under_load,
        plot=_plot_times,
        about=facts,
        checks=(_well_above(UNC), _well_above(CIC)),
        simulation=simulated(PROTOCOLS, simulated_times, tuple(_simulated_well_above(query) for query in SHUFFLED)),
    ),
    measured(
        "checkmate/table-3",
        "checkpoints taken, and the share of invalid ones after a kill",
        needs=killed,
        of_cell=checkpoint_counts,
        plot=plot_counts,
        about=facts,
        checks=COUNT_CHECKS,
        simulation=simulated(PROTOCOLS, simulated_counts, SIMULATED_COUNT_CHECKS),
    ),
)
