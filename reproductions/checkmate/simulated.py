"""What a machine can't hold, simulated: the protocols on the paper's numbers of workers.

The simulation is that of `testbed/scaling`. What things cost a worker is measured on this machine when the
first row of a query is made: the rows are as good as these costs, and have no scatter that limits of confidence could
come from. They need no runs.

Only its throughput was compared with that of measured workers, and not all of it agrees. So the simulation is not
calibrated: rows, checks and plots say so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from itertools import product
from typing import NamedTuple

import pandas as pd

from experiments.engines import ProtocolName
from experiments.workloads.catalogue import NexmarkQuery, NexmarkSpec
from reproductions.checkmate.experiments import QUERIES, SHORT, on_testbed, workload_of
from reproductions.measured_rows import Row, SimulatedRows
from reproductions.plants import Plant
from reproductions.reproduction import Progress, ReproductionCheck, holds
from results.checks.rules import between
from testbed.protocols import by_name
from testbed.scaling.costs import Costs
from testbed.scaling.measure import costs
from testbed.scaling.study import LOAD_SHARE, Deployment, LoadedCluster, SaturatedCluster

ON_WORKERS = (10, 50)  # those of the paper's tables
RECORDS_PER_MESSAGE = 1
CALIBRATION = (  # docs/lab/testbed-throughput.md, "Simulated against measured"
    "no: on two workers, in one run each, shares of the throughput without checkpoints are 0.85 to 1.34 times the"
    " measured ones, 10 of 12 of them within 15 %; times of checkpoints and restarts were not compared"
)
READ_SHARE = {  # of the events: of 50, one is a person, three are auctions, 46 are bids
    NexmarkQuery.Q1: 46 / 50,
    NexmarkQuery.Q3: 4 / 50,
    NexmarkQuery.Q8: 4 / 50,
    NexmarkQuery.Q12: 46 / 50,
}


class SimulatedCell(NamedTuple):
    """One cell: a query with a protocol on a number of simulated workers, with checkpoints staggered or not."""

    query: NexmarkQuery
    protocol: ProtocolName
    workers: int
    staggered: bool = False

    def saturated(self) -> SaturatedCluster:
        """With as much as the cluster takes, at one record per message."""
        return _saturated(self)

    def sustainable_rate(self) -> float:
        """The rate that this comes to [events/s]."""
        return self.saturated().throughput / READ_SHARE[self.query]

    def loaded(self) -> LoadedCluster:
        """At 80 % of the highest rate of this protocol, as in the paper, and one record per message."""
        return _loaded(self)


def simulated(
    protocols: Iterable[ProtocolName],
    of_cell: Callable[[SimulatedCell], Iterable[Row]],
    checks: Iterable[ReproductionCheck],
) -> SimulatedRows:
    """The rows that `of_cell` takes from each query with each of these protocols, and the checks that judge them.

    `simulated` is true in every row, and `calibration` tells how far the simulation agrees with measured workers.
    """
    found = [SimulatedCell(*cell) for cell in product(QUERIES, protocols, ON_WORKERS)]

    def rows(tell: Progress) -> list[Row]:
        made: list[Row] = []
        for done, cell in enumerate(found, 1):
            made += [_facts(cell) | row for row in of_cell(cell)]
            tell(done, len(found))
        return made

    return SimulatedRows(rows, tuple(map(_uncalibrated, checks)))


def _uncalibrated(check: ReproductionCheck) -> ReproductionCheck:
    """The check; what it expects ends with how far its rows can be trusted."""
    return replace(
        check, expected=lambda evidence: f"{check.expected(evidence)}; not calibrated against measured workers"
    )


def simulated_at_least(
    name: str, ratios: Callable[[pd.DataFrame], Iterable[tuple[str, float]]], limit: float, expected: str, plant: Plant
) -> ReproductionCheck:
    """Every ratio, each with what it is, is `limit` or more on each number of workers, as simulated."""

    def found(table: pd.DataFrame) -> pd.DataFrame:
        by_workers = table.groupby("workers")
        told = [(f"{what} on {count}", ratio) for count, rows in by_workers for what, ratio in ratios(rows)]
        return pd.DataFrame(told, columns=["what", "ratio"])

    return holds(
        name,
        found,
        [between("ratio", limit, None)],
        lambda frame: "; ".join(f"{row.what} {row.ratio:.2f}" for row in frame.itertuples()),
        f"{expected}, on {' and on '.join(map(str, ON_WORKERS))} workers",
        plant,
    )


def _facts(cell: SimulatedCell) -> Row:
    about = {"query": cell.query.value, "protocol": SHORT[cell.protocol], "workers": cell.workers}
    return about | {"replicate": 0, "run_id": None, "simulated": True, "calibration": CALIBRATION}


@cache
def _costs(query: NexmarkQuery) -> Costs:
    return costs(_workload(query))


@cache
def _saturated(cell: SimulatedCell) -> SaturatedCluster:
    return _deployment(cell).saturated()


@cache
def _loaded(cell: SimulatedCell) -> LoadedCluster:
    return _deployment(cell).under(LOAD_SHARE * _saturated(cell).throughput)


@cache
def _deployment(cell: SimulatedCell) -> Deployment:
    protocol = by_name(cell.protocol.value)
    return Deployment(
        _workload(cell.query), protocol, _costs(cell.query), cell.workers, RECORDS_PER_MESSAGE, cell.staggered
    )


def _workload(query: NexmarkQuery) -> NexmarkSpec:
    """As the measured cells have it."""
    return workload_of(on_testbed("simulated", query, ProtocolName.NONE))
