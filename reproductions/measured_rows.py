"""From the runs of a measured table or figure to its tidy table, and to a verdict on that."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import pandas as pd
from matplotlib.figure import Figure

from experiments.spec import Experiment
from reproductions.measured import Cell, cells, count_done
from reproductions.reproduction import Computed, Progress, Reproduction, ReproductionCheck, Size
from results.checks.rules import NotEnough
from results.runs.step_times import whole_s

Row = dict[str, Any]
REPLICATES = Size("runs of each cell", default=1, paper=1)


class SimulatedRows(NamedTuple):
    """What is simulated beside what is measured: rows of the same table, and the checks that judge them alone."""

    rows: Callable[[Progress], list[Row]]
    checks: tuple[ReproductionCheck, ...]


def measured(
    id: str,
    what: str,
    needs: Callable[[int], Sequence[Experiment]],
    of_cell: Callable[[Cell], Iterable[Row]],
    plot: Callable[[pd.DataFrame], Figure],
    checks: tuple[ReproductionCheck, ...],
    about: Callable[[Cell], Row],
    finish: Callable[[pd.DataFrame], pd.DataFrame] = lambda table: table,
    simulation: SimulatedRows | None = None,
) -> Reproduction:
    """A reproduction whose table has the rows that `of_cell` takes from the run of each experiment it needs.

    An experiment without a run has one row, of which nothing but the cell is known: what `about` tells, among it its
    `origin`. The rows of `simulation` need no runs, so that with it there is a table in any case. `finish` has the last
    word on the table.
    """

    def compute(size: int, tell: Progress) -> pd.DataFrame:
        found = cells(needs(size))
        taken = [list(of_cell(cell)) if cell.run else [] for cell in found]
        if not simulation and not any(cell.run for cell in found):
            raise NotEnough(_none_of([cell.experiment for cell in found]))
        if not simulation and not any(taken):
            raise NotEnough("nothing of it was measured in any of its runs")
        rows = [about(cell) | row for cell, rows in zip(found, taken, strict=True) for row in rows or [{}]]
        return finish(pd.DataFrame([*rows, *(simulation.rows(tell) if simulation else ())]))

    if simulation:
        checks = (*(_of_measured(check, needs) for check in checks), *map(_of_simulated, simulation.checks))
    return Reproduction(id, what, compute=compute, plot=plot, checks=checks, size=REPLICATES, needs=needs)


def _none_of(experiments: Sequence[Experiment]) -> str:
    """Why there is nothing to judge, and how long all runs take as far as it is known before them; none can be used."""
    done = count_done(experiments)
    none = f"none of its {len(experiments)} runs has been done on this machine with tables of this version"
    if done:
        none = (
            f"none of its {len(experiments)} runs can be used: in {done} of them, done on this machine, something did "
            "not happen that the experiment asks for"
        )
    return f"{none}; they take about {whole_s(*experiments) / 60:.0f} min"


def _of_measured(check: ReproductionCheck, needs: Callable[[int], Sequence[Experiment]]) -> ReproductionCheck:
    """The check, of the measured rows alone."""

    def part(table: pd.DataFrame) -> pd.DataFrame:
        rows = table[~table["simulated"]]
        if rows["run_id"].isna().all():
            raise NotEnough(_none_of(needs(rows["replicate"].nunique())))
        return rows

    return _of_part(check, part)


def _of_simulated(check: ReproductionCheck) -> ReproductionCheck:
    """The check, of the simulated rows alone, and called so."""
    of_part = _of_part(check, lambda table: table[table["simulated"]])
    return replace(of_part, name=f"simulated.{check.name}", expected=lambda e: f"simulated: {check.expected(e)}")


def _of_part(check: ReproductionCheck, part: Callable[[pd.DataFrame], pd.DataFrame]) -> ReproductionCheck:
    def subject(evidence: Computed) -> pd.DataFrame:
        return check.subject(replace(evidence, table=part(evidence.rows())))

    return replace(check, subject=subject)
