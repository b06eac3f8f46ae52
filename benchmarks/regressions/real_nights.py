"""Real nights of a small matrix, and what the regression check makes of them when they are replayed in order.

    .venv/bin/python -m benchmarks.regressions.real_nights [--ledger nights.jsonl] [--plot nights.svg]
        [--matrix small] [--nights 30] [--hours 8] [--no-run]

runs the cells of the matrix one after the other, one night's runs directly after the other's, until there are
`--nights` nights or `--hours` have passed. It counts the finished runs, so it goes on where it stopped. `--no-run` only
replays these. A ledger gets a line for each of them, so the measurement can go on in another checkout, or on another
machine of the same class.

Then it judges night after night as `aftershock results regress` would have done it, by the runs until then: first as
they were, where every verdict is a false alarm, and then with all work 15 % slower from night 20 on. That slowdown is
planted in the figures of the runs, not on the machine. Prints Markdown tables of both, and of the noise of each metric.
The plot shows the metrics of the nights as they were.
Ends with 1 if runs failed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from aftershock.reference import markdown
from benchmarks.arguments import above_zero, at_least_one, new_file
from benchmarks.json_ledger import JsonLedger
from benchmarks.one_line_errors import one_line_errors
from benchmarks.regressions.nights_plot import plot
from experiments import matrix
from experiments.spec import Experiment
from results.regression import history
from results.regression.change import Change
from results.regression.history import Series
from results.regression.regress import below, judge_splits
from results.runs.machine import experiment_digest, machine_class
from results.runs.state import RunState
from results.runs.store import Run
from results.summary import index
from results.summary.index import IndexRow
from results.summary.metrics import METRICS, Scale
from results.tables.schema import SCHEMA_VERSION
from results.views.style import as_svg
from tests.unit.results.regression.simulated_nights import NOISE, SLOWER, WORK

SLOW_FROM = 20  # the first slow night, counted from 1
MOST_FAILURES = 3  # one after the other: then the machine fails them all

Cell = tuple[str | None, object]  # digest and seed
Night = list[IndexRow]


@dataclass(frozen=True)
class Judged:
    """What became of one experiment on one night: the metrics that were found worse, and those found better."""

    night: int
    experiment: str
    worse: tuple[str, ...]
    better: tuple[str, ...]


@dataclass(frozen=True)
class KeptRun:
    """A finished run as a ledger keeps it: what the regression check looks at."""

    run_id: str
    started_ns: int
    experiment: str
    experiment_digest: str
    machine: str
    schema_version: int
    seed: int
    metrics: dict[str, float]
    machine_speed: float | None = None  # lines of 2026-11-29 to 2026-12-01 lack it

    @classmethod
    def of(cls, row: IndexRow) -> KeptRun:
        """The same run; a row of a run that is done has all of this."""
        about = {name: getattr(row, name) for name in cls.__annotations__ if name != "seed"}
        return cls(**about, seed=row.facts["seed"])

    @property
    def row(self) -> IndexRow:
        """The same run, as the index has it."""
        about = {name: getattr(self, name) for name in self.__annotations__ if name != "seed"}
        return IndexRow(state=RunState.DONE, facts={"seed": self.seed}, **about)


def kept_too(ledger: JsonLedger[KeptRun], cells: Sequence[Experiment], rows: Sequence[IndexRow]) -> list[IndexRow]:
    """These rows and those of the ledger, which gets the runs of the cells that it has not yet."""
    kept = {line.run_id for line in ledger.lines}
    new = [row for runs in runs_of(cells, rows).values() for row in runs if row.run_id not in kept]
    for row in sorted(new, key=lambda row: row.started_ns or 0):
        ledger.add(KeptRun.of(row))
    own = {row.run_id for row in rows}
    return [*rows, *(line.row for line in ledger.lines if line.run_id not in own)]


def runs_of(cells: Sequence[Experiment], rows: Sequence[IndexRow]) -> dict[Cell, list[IndexRow]]:
    """The runs of each cell on this class of machine that are done, oldest first."""
    found: dict[Cell, list[IndexRow]] = {(experiment_digest(each), each.seed): [] for each in cells}
    here = (RunState.DONE, machine_class(), SCHEMA_VERSION)
    for row in sorted(rows, key=lambda row: row.started_ns or 0):
        key = (row.experiment_digest, row.facts.get("seed"))
        if key in found and (row.state, row.machine, row.schema_version) == here:
            found[key].append(row)
    return found


def next_cell(cells: Sequence[Experiment], rows: Sequence[IndexRow], nights: int) -> Experiment | None:
    """The cell whose turn it is: the first of those with the fewest runs; None if each has as many as nights."""
    counts = [len(runs) for runs in runs_of(cells, rows).values()]
    fewest = min(counts)
    return cells[counts.index(fewest)] if fewest < nights else None


def nights_of(cells: Sequence[Experiment], rows: Sequence[IndexRow]) -> list[Night]:
    """The nights that are whole: one run of each cell."""
    return [list(night) for night in zip(*runs_of(cells, rows).values(), strict=False)]


def series_of(nights: Sequence[Night]) -> list[Series]:
    """The history of each experiment."""
    return history.series_of(reversed([row for night in nights for row in night]))


def slowed(nights: Sequence[Night], first: int = SLOW_FROM) -> list[Night]:
    """The same nights, with everything that is work taking `SLOWER` times as long from night `first` on."""
    return [[_slower(row) for row in night] if number >= first else night for number, night in enumerate(nights, 1)]


def _slower(row: IndexRow) -> IndexRow:
    changed = {name: value * SLOWER ** WORK.get(name, 0) for name, value in row.metrics.items()}
    return replace(row, metrics=changed)


def replay(nights: Sequence[Night]) -> Iterator[Judged]:
    """Judge each night by the runs until then; runs that were found worse are no baseline later."""
    aside: set[str] = set()
    for number in range(1, len(nights) + 1):
        series = [next(history.by_speed(each)) for each in series_of(nights[:number])]
        splits = [history.split(each, aside | below(each), {}) for each in series]
        for own, split, judgements in zip(series, splits, judge_splits(splits), strict=True):
            found = {
                change: tuple(one.metric.name for one in judgements if one.verdict is change)
                for change in (Change.WORSE, Change.BETTER)
            }
            if found[Change.WORSE]:
                aside |= {run.run_id for run in split.candidates}
            yield Judged(number, own.experiment, found[Change.WORSE], found[Change.BETTER])


def noise(series: Series) -> dict[str, float]:
    """The standard deviation of the logarithm of each metric over the runs, where it is above zero in all of them."""
    found = {}
    for metric in METRICS.values():
        values = [run.metrics[metric.name] for run in series.runs if metric.name in run.metrics]
        if metric.scale is Scale.RATIO and len(values) > 1 and min(values) > 0:
            found[metric.name] = float(np.log(values).std(ddof=1))
    return found


def report(nights: Sequence[Night]) -> str:
    """The tables of what was found."""
    verdicts = [
        [name, str(each.night), each.experiment, ", ".join(each.worse), ", ".join(each.better)]
        for name, own in (("as they were", nights), (f"slower from night {SLOW_FROM} on", slowed(nights)))
        for each in replay(own)
        if each.worse or each.better
    ]
    spread = [
        [series.experiment, name, f"{share:.1%}", f"{NOISE[name][1]:.1%}" if name in NOISE else ""]
        for series in series_of(nights)
        for name, share in noise(series).items()
    ]
    return "\n\n".join(
        [
            f"{len(nights)} nights",
            markdown.table(["nights", "night", "experiment", "worse", "better"], verdicts),
            markdown.table(["experiment", "metric", "noise", "assumed in the simulation"], spread),
        ]
    )


def run_nights(
    cells: Sequence[Experiment],
    nights: int,
    hours: float,
    run: Callable[[Experiment], Run],
    rows: Callable[[], Sequence[IndexRow]],
    clock: Callable[[], float] = time.monotonic,
) -> Counter[str]:
    """Run what is missing, for so long; returns how many runs ended in which state."""
    ended: Counter[str] = Counter()
    in_a_row, end_s = 0, clock() + 3600 * hours
    while clock() < end_s and in_a_row < MOST_FAILURES and (cell := next_cell(cells, rows(), nights)) is not None:
        state = run(cell).status().state
        ended[state] += 1
        in_a_row = 0 if state == RunState.DONE else in_a_row + 1
        print(f"{cell.name}: {state}", file=sys.stderr, flush=True)
    return ended


@one_line_errors()
def main() -> None:
    """Run nights, unless told not to, and print what the check makes of those that are there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ledger", type=Path, help="file that keeps what is judged of each run (none)")
    parser.add_argument("--plot", type=new_file, help="file for the plot, an SVG (none)")
    parser.add_argument("--matrix", default="small", help="name in experiments/matrices/, or a file")
    parser.add_argument("--nights", type=at_least_one, default=30)
    parser.add_argument("--hours", type=above_zero, default=8.0, help="no run begins later")
    parser.add_argument("--no-run", action="store_true", help="only replay the nights that are there")
    given = parser.parse_args()
    cells = matrix.load(given.matrix)
    ledger = JsonLedger(given.ledger, KeptRun) if given.ledger else None

    def rows() -> list[IndexRow]:
        found = index.rows()
        return kept_too(ledger, cells, found) if ledger else found

    ended: Counter[str] = Counter()
    if not given.no_run:
        from aftershock.airflow import orchestrate  # brings Airflow

        ended = run_nights(cells, given.nights, given.hours, orchestrate.run, rows)
    nights = nights_of(cells, rows())
    print(report(nights))
    if given.plot and nights:
        alarms = {(each.experiment, each.night) for each in replay(nights) if each.worse}
        given.plot.write_bytes(as_svg("nights", lambda: plot(series_of(nights), alarms)))
    sys.exit(any(state != RunState.DONE for state in ended))


if __name__ == "__main__":
    main()
