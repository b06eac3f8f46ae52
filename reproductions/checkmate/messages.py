"""`checkmate`, table II: bytes of messages relative to the same messages without the data of the protocol.

They are those that partitions send to each other. What goes to the coordinator, which is all that UNC adds, is not
counted: UNC has exactly 1 unless its code is wrong. How much CIC adds depends on the number of partitions, so what the
paper printed of ten workers and of fifty judges simulated rows only.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pandas as pd
from matplotlib.figure import Figure

from experiments.spec import Experiment
from experiments.wording import counted
from reproductions.checkmate.by_protocol import CIC, COOR, NAMES, UNC, complete, draw_by_query, facts, workers_told
from reproductions.checkmate.experiments import PROTOCOLS, SHORT, WORKERS, killed, one_record
from reproductions.checkmate.simulated import ON_WORKERS, SimulatedCell, simulated
from reproductions.measured import Cell
from reproductions.measured_rows import Row, measured
from reproductions.plants import InRows, scaled_rows
from reproductions.reproduction import ReproductionCheck, holds
from results.checks.rules import NotEnough, between
from results.views.style import WIDTH_IN

NEARLY_NOTHING = 1.015  # rounds to 1.01 at most, as all that is printed of COOR and UNC
MORE = 0.005  # half a unit of the last digit that is printed
TWICE = (1.5, 2.5)  # rounds to 2
MORE_THAN_TWICE = (2.25, 2.75)  # in halves, rounds to 2.5, as all that is printed of CIC on 50 workers
PRINTED = {  # on 10 and on 50 workers
    COOR: {"q1": (1.00, 1.00), "q3": (1.00, 1.00), "q8": (1.00, 1.00), "q12": (1.00, 1.00)},
    UNC: {"q1": (1.00, 1.00), "q3": (1.00, 1.01), "q8": (1.00, 1.01), "q12": (1.00, 1.00)},
    CIC: {"q1": (2.10, 2.53), "q3": (1.82, 2.58), "q8": (1.74, 2.49), "q12": (1.79, 2.58)},
}
PRINTED_OF_CIC = "printed: 1.74 to 2.10 on 10, 2.49 to 2.58 on 50"


def needed(size: int) -> list[Experiment]:
    """At 1,024 records per message the runs with a kill, whose overhead counts until then; others at one record."""
    return [*killed(size), *one_record(size)]


def overhead(cell: Cell) -> Iterator[Row]:
    """The overhead of one run, at its bound on records per message."""
    for found in cell.table("runs")["message_overhead"].dropna():
        about = facts(cell)
        bound = {"records_per_message": cell.experiment.engine.records_per_message_run}
        yield bound | {"message_overhead": float(found)} | _printed(about["query"], about["protocol"])


def simulated_overhead(cell: SimulatedCell) -> Iterator[Row]:
    """The overhead at one record per message, as the paper has it, simulated."""
    found = {"records_per_message": 1, "message_overhead": cell.saturated().message_overhead}
    yield found | _printed(cell.query, SHORT[cell.protocol])


def _printed(query: str, protocol: str) -> Row:
    on_10, on_50 = PRINTED[protocol][query]
    return {"printed_on_10_workers": on_10, "printed_on_50_workers": on_50}


def _rows_of(table: pd.DataFrame, protocols: tuple[str, ...], records: int | None = None) -> pd.DataFrame:
    """The rows of these protocols, at a bound on records per message if one is named; all must be known."""
    rows = complete(table[table["protocol"].isin(protocols)], "message_overhead")
    return rows if records is None else rows[rows["records_per_message"] == records]


def _range_told(rows: pd.DataFrame) -> str:
    return f"{rows['message_overhead'].min():.3f} to {rows['message_overhead'].max():.3f} in {len(rows)} rows"


def _growth(table: pd.DataFrame) -> pd.DataFrame:
    """How much more CIC adds on more workers than on fewer, by query and replicate.

    Raises `NotEnough` if one of them is known on one number of workers only.
    """
    runs = _rows_of(table, (CIC,), 1).sort_values("workers").groupby(["query", "replicate"], sort=False)
    lacking = runs["workers"].nunique() < 2
    if lacking.any():
        names = ", ".join(f"{query} #{replicate}" for query, replicate in lacking.index[lacking])
        raise NotEnough(f"there is only one number of workers with {names}")
    found = runs["message_overhead"]
    return pd.DataFrame({"growth": found.last() - found.first()}).reset_index()


def _almost_nothing(protocol: str) -> ReproductionCheck:
    return holds(
        f"{protocol.lower()}.about_1",
        lambda table: _rows_of(table, (protocol,)),
        [between("message_overhead", 1.0, NEARLY_NOTHING)],
        _range_told,
        f"{protocol}: 1.00 to 1.01 (printed), of what partitions send to each other",
        scaled_rows("message_overhead", 1.02, protocol=protocol),
    )


def _grows(fewer: int, more: int) -> ReproductionCheck:
    return holds(
        "cic.grows_with_workers",
        _growth,
        [between("growth", MORE, None)],
        lambda rows: (
            f"by {rows['growth'].min():.3f} to {rows['growth'].max():.3f} in {rows['query'].nunique()} queries"
        ),
        f"CIC adds more on {more} workers than on {fewer}, each query, at one record per message",
        InRows("as much on each number of workers", lambda table: table.assign(message_overhead=1.9)),
    )


def _about(name: str, workers: int, bounds: tuple[float, float]) -> ReproductionCheck:
    return holds(
        f"cic.{name}_at_one_record",
        lambda table: _rows_of(table, (CIC,), 1).query(f"workers == {workers}"),
        [between("message_overhead", *bounds)],
        _range_told,
        f"CIC: {bounds[0]} to {bounds[1]} times at one record per message on {workers} workers; {PRINTED_OF_CIC}",
        scaled_rows("message_overhead", 0.7, protocol=CIC),
    )


def _plot(table: pd.DataFrame) -> Figure:
    figure = Figure(figsize=(WIDTH_IN, 4.4), layout="constrained")
    kinds = [(1024, WORKERS), *product((1,), (1, WORKERS, *ON_WORKERS))]
    for axes, (records, workers) in zip(figure.subplots(1, len(kinds), sharey=True), kinds, strict=True):
        draw_by_query(axes, table[(table["records_per_message"] == records) & (table["workers"] == workers)],
                      "message_overhead")  # fmt: skip
        of = workers_told(workers, workers in ON_WORKERS)
        axes.set_title(f"{counted(records, 'record')} a message,\n{of}", fontsize=8)
    figure.axes[0].set_ylabel("bytes / bytes without checkpoints")
    figure.legend(*figure.axes[-1].get_legend_handles_labels(), loc="outside upper right", ncols=len(NAMES))
    return figure


REPRODUCTIONS = (
    measured(
        "checkmate/table-2",
        "bytes of messages over those without checkpoints",
        needs=needed,
        of_cell=overhead,
        plot=_plot,
        about=facts,
        checks=(_almost_nothing(COOR), _almost_nothing(UNC), _grows(1, WORKERS)),
        simulation=simulated(
            PROTOCOLS,
            simulated_overhead,
            (
                _almost_nothing(COOR),
                _almost_nothing(UNC),
                _grows(*ON_WORKERS),
                _about("about_2", ON_WORKERS[0], TWICE),
                _about("about_2_5_on_50", ON_WORKERS[1], MORE_THAN_TWICE),
            ),
        ),
    ),
)
