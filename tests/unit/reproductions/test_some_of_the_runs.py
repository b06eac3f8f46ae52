"""Tables that have only some of their runs, as where the others are those of the published table.

No check may fail on such a table for what it lacks, and none may raise.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest

from reproductions.catalogue import CATALOGUE
from reproductions.incremental.experiments import FEW, Place, Waits
from reproductions.judging import judge
from reproductions.ppa.experiments import COST_INTERVALS_S, COST_RATES
from reproductions.ppa.tentative_plans import BY_METRIC, BY_PLANNER, Planned, PlannedBy
from reproductions.reproduction import Computed
from reproductions.utilization.experiments import FEWEST_FAULTS, MEANS_S, ROWS, Interval
from tests.unit.reproductions.verdicts import verdicts

TABLE_1 = "utilization/table-1"
WITHOUT_THE_JOIN = {9: 6, 13: 12}  # copies by completeness, of which the last ones feed a join with half of its input


def latencies() -> pd.DataFrame:
    """Figure 13 of `incremental`: queries are late at first, more so under Blocking, and on time in the end."""
    runs = product((Place.UPSTREAM, Place.DOWNSTREAM), ((Waits.ROOM, 2.0), (Waits.ALL, 9.0)))
    rows = []
    for number, (place, (waits, late)) in enumerate(runs):
        about = {"run": number, "hosts_lost": FEW, "place": place.value, "waits": waits.value, "replicate": 1}
        for due_s, relative in ((0.0, late), (180.0, 1.0)):
            rows.append(about | {"query": "q0", "lost": True, "due_s": due_s, "relative_latency": relative})
    return pd.DataFrame(rows)


def shares() -> pd.DataFrame:
    """Figure 9 of `ppa`: half of the checkpoints take half of the CPU time."""
    rows = []
    for number, (rate, interval_s, replicate) in enumerate(product(COST_RATES, COST_INTERVALS_S, (1, 2))):
        share = (1 + replicate / 9) / interval_s
        about = {"run": number, "rate": rate, "interval_s": interval_s, "replicate": replicate}
        rows.append(about | {"share": share})
    return pd.DataFrame(rows)


def tentative(cells: tuple[Planned, ...]) -> pd.DataFrame:
    """Figures 12 and 13 of `ppa`: accuracy is as fidelity has it; half of the input of a join adds to completeness."""
    rows = []
    for number, (query, planner, copies) in enumerate(cells):
        half_fed = planner is PlannedBy.COMPLETENESS and copies in WITHOUT_THE_JOIN
        useful = WITHOUT_THE_JOIN[copies] if half_fed else copies
        fidelity = useful / 20 * (0.4 if planner is PlannedBy.GREEDY else 1.0)
        about = {"run": number, "query": query.value, "planner": planner.value, "copies": copies, "replicate": 1}
        about |= {"copied": planner.value, "half_fed_joins": int(half_fed)}
        metrics = {"output_fidelity": fidelity, "internal_completeness": fidelity + 0.3 * half_fed}
        rows.append(about | metrics | {"accuracy": fidelity, "fidelity_in_run": fidelity})
    return pd.DataFrame(rows)


def utilizations() -> pd.DataFrame:
    """Table 1 of `utilization` under two seeds of each rate, as eq. 10 has it."""
    rows = []
    for number, (row, second, interval) in enumerate(product(ROWS, (False, True), Interval)):
        seed = 1 + MEANS_S.index(row.mean_s) + len(MEANS_S) * second
        found = 0.5 if interval is Interval.DEFAULT else 0.6
        about = {"run": number, "mean_s": row.mean_s, "depth": row.depth, "interval": interval.value, "replicate": seed}
        about |= {"started_at": "2026-01-01T00:00:00+00:00", "faults": FEWEST_FAULTS, "window_s": 20 * row.mean_s}
        rows.append(about | {"measured": found, "replayed": found, "eq_10": found, "added": 0.0, "luck": 0.02})
    return pd.DataFrame(rows)


def overheads() -> pd.DataFrame:
    """Table 2 of `checkmate`: CIC adds more on two workers than on one, the others nothing."""
    rows = []
    for number, (query, protocol, workers) in enumerate(product(("q1", "q3"), ("COOR", "UNC", "CIC"), (1, 2))):
        about = {"run": number, "run_id": str(number), "query": query, "protocol": protocol, "workers": workers}
        added = 0.1 * workers * (protocol == "CIC")
        found = {"records_per_message": 1, "message_overhead": 1.0 + added}
        rows.append(about | found | {"replicate": 1, "simulated": False})
    return pd.DataFrame(rows)


TABLES = {
    "checkmate/table-2": overheads(),
    "incremental/fig-13": latencies(),
    "ppa/fig-09": shares(),
    "ppa/fig-12": tentative(BY_METRIC),
    "ppa/fig-13": tentative(BY_PLANNER),
    TABLE_1: utilizations(),
}


@pytest.mark.parametrize("id", TABLES)
def test_a_run_that_lacks_makes_no_sound_check_fail(id: str) -> None:
    """Each run lacks once, and each is once the only one that is there."""
    table = TABLES[id]
    sound = {name for name, verdict in verdicts(id, table).items() if verdict == "pass"}
    assert len(sound) > 1
    runs = table["run"].to_numpy()
    for part in [part for run in np.unique(runs) for part in (runs != run, runs == run)]:
        found = verdicts(id, table[part])
        assert [name for name in sound if found[name] == "fail"] == [], table[~part]


@pytest.mark.parametrize("lacks", [(9, 12), (12,)])
def test_what_copies_add_is_not_told_across_a_cell_that_lacks(lacks: tuple[int, ...]) -> None:
    table, name = TABLES["ppa/fig-12"], "completeness.more_is_not_more_accurate"
    gone = (table["planner"] == PlannedBy.COMPLETENESS) & table["copies"].isin(lacks)
    assert verdicts("ppa/fig-12", table)[name] == "pass"
    assert verdicts("ppa/fig-12", table[~gone])[name] == "unknown"


@pytest.mark.parametrize("pairs", ["none", "of different seeds"])
def test_what_is_not_paired_in_table_1_decides_nothing(pairs: str) -> None:
    """Of the first row, both runs at the default interval lack, or the two that are there have different seeds."""
    table = TABLES[TABLE_1]
    of_row = (table["mean_s"] == ROWS[0].mean_s) & (table["depth"] == ROWS[0].depth)
    at_default, is_first = table["interval"] == Interval.DEFAULT, table["replicate"] == 1
    gone = of_row & (at_default if pairs == "none" else at_default == is_first)
    assert gone.sum() == 2
    assert set(verdicts(TABLE_1, table).values()) == {"pass"}
    assert set(verdicts(TABLE_1, table[~gone]).values()) == {"unknown"}


def test_a_run_whose_latencies_are_not_known_is_named() -> None:
    table = TABLES["incremental/fig-13"]
    unknown = table.assign(relative_latency=table["relative_latency"].mask(table["run"] == 1), run_id="any")
    for check in CATALOGUE["incremental/fig-13"].checks:
        told = judge(check, Computed("incremental/fig-13", unknown))["detail"]
        assert told == f"relative latency is not known of {Waits.ALL.value} {FEW} hosts {Place.UPSTREAM.value} #1"


def test_skew_is_drawn_if_no_run_so_far_has_taken_a_checkpoint() -> None:
    about = {"query": "q3", "workers": 2, "replicate": 1, "simulated": False, "hot_share": 0.1}
    known = {"protocol": "COOR", "quantity": "p50 of latency", "samples": 5, "mean": 1.0, "std": 0.1}
    figure = CATALOGUE["checkmate/fig-12b"].plot(pd.DataFrame([about | known, about | {"protocol": "UNC"}]))
    assert [len(panel.containers) for panel in figure.axes] == [1, 0, 0, 0, 0, 0]
