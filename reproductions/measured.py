"""The runs that measured reproductions are made of: which are there, and which are missing.

Runs of this installation count, and published runs that are of no example: with those a measurement is continued that
was begun in another installation, on a machine of the same class.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pandas as pd

from experiments.spec import Experiment, LoadMode
from results.checks.check import is_to_be_busy
from results.checks.subjects.ledger import SATURATED
from results.damage import Damaged
from results.runs import published, store
from results.runs.machine import experiment_digest, machine_class
from results.runs.store import ReadOnce, Run
from results.summary import index
from results.summary.findings import table_or_empty
from results.tables.schema import SCHEMA_VERSION, FaultOutcome
from results.verdict import Verdict


class Cell(NamedTuple):
    """An experiment, and the newest run of it that can be used, if any."""

    experiment: Experiment
    run: Run | None

    @property
    def origin(self) -> dict[str, Any]:
        """Where its rows come from: `replicate` (the seed) and `run_id` (None without a run); none is `simulated`."""
        run_id = self.run.run_id if self.run else None
        return {"replicate": self.experiment.seed, "run_id": run_id, "simulated": False}

    @property
    def started_at(self) -> str | None:
        """When the run started, in UTC and to the second; None where there is no run."""
        if self.run is None:
            return None
        return datetime.fromtimestamp(self.run.status().started_ns // 10**9, UTC).isoformat()

    def table(self, name: str) -> pd.DataFrame:
        """A table of the run; empty where there is no run, or the run has no such table."""
        return self.run.table(name) if self.run and self.run.has(name) else pd.DataFrame()


def cells(experiments: Iterable[Experiment]) -> list[Cell]:
    """Each experiment with its newest run that is done, under its seed, on a machine such as this one.

    A run whose tables are of another version cannot be used; `aftershock results recompute` makes them again. A run
    cannot be used, either, if something that the experiment asks for did not happen: its search ended before any rate
    had failed, its load should have saturated the query and did not, a fault was not injected, or nothing recovered
    after a fault.
    """
    found = _by_experiment()
    return [Cell(each, _newest_as_asked(each, found.get(_key(each), []))) for each in experiments]


def count_done(experiments: Iterable[Experiment]) -> int:
    """How many of these have a run that is done here with tables of this version, be it one that cannot be used."""
    found = _by_experiment()
    return sum(_key(each) in found for each in experiments)


def _by_experiment() -> dict[tuple[str | None, object], list[index.IndexRow]]:
    """The runs of each experiment and seed (`_key`), newest first."""
    found: dict[tuple[str | None, object], list[index.IndexRow]] = {}
    for row in _usable():
        found.setdefault((row.experiment_digest, row.facts.get("seed")), []).append(row)
    return found


def _key(experiment: Experiment) -> tuple[str | None, object]:
    return experiment_digest(experiment), experiment.seed


def _newest_as_asked(experiment: Experiment, rows: Iterable[index.IndexRow]) -> Run | None:
    """The first of these runs of an experiment in which what it asks for has happened."""
    closed = (row for row in rows if _bracket_is_closed(experiment, row))
    runs = (ReadOnce.of(store.readable(row.run_id)) for row in closed)
    return next((run for run in runs if _was_saturated(experiment, run) and _faults_were_felt(run)), None)


def _bracket_is_closed(experiment: Experiment, row: index.IndexRow) -> bool:
    """Whether a search has found a rate that is sustained and one that is not; true of what is no search."""
    found = (row.facts.get("sustainable_rate"), row.facts.get("unsustainable_rate"))
    return experiment.load.mode is not LoadMode.SUSTAINABLE or None not in found


def _was_saturated(experiment: Experiment, run: Run) -> bool:
    """Whether the query was always busy; true where the load is not to saturate it."""
    if not is_to_be_busy(experiment):
        return True
    verdicts = table_or_empty(run, "verdicts")
    return bool((verdicts.loc[verdicts["check"] == SATURATED, "verdict"] == Verdict.PASS).any())


def _faults_were_felt(run: Run) -> bool:
    """Whether all planned faults were injected, and something recovered from them; true where none was planned."""
    outcomes = table_or_empty(run, "faults")["outcome"]
    if outcomes.empty:
        return True
    recovered = table_or_empty(run, "recoveries")["fault"].notna().any()
    return bool((outcomes == FaultOutcome.INJECTED).all() and recovered)


def repeated(experiments: Iterable[Experiment], size: int) -> list[Experiment]:
    """Each of them `size` times, under seeds from 1; all under one seed before any under the next."""
    once = list(experiments)
    return [each.model_copy(update={"seed": seed}) for seed in range(1, size + 1) for each in once]


def missing(experiments: Iterable[Experiment]) -> list[Experiment]:
    """Those that have no run that can be used."""
    return [cell.experiment for cell in cells(experiments) if cell.run is None]


def _usable() -> list[index.IndexRow]:
    """The runs, newest first, that a measurement on this machine can be taken from."""
    wanted = ("done", machine_class(), SCHEMA_VERSION)
    found = (row for row in index.rows(with_published=True) if (row.state, row.machine, row.schema_version) == wanted)
    return [row for row in found if not row.is_published or _continues_a_measurement(row.run_id)]


def _continues_a_measurement(run_id: str) -> bool:
    """Whether a published run is of no example, and all its files are as they were published."""
    run = store.located(run_id)
    try:
        about = run.publication()
    except (Damaged, FileNotFoundError):
        return False
    return about is not None and about.example is None and not published.spoiled(about, published.contents(run.root))
