"""What follows from the raw logs of a run, in this order: tables, predictions, verdicts, report.

At the end of a run and when its results are computed again. Each function writes into the run's directory.
"""

from __future__ import annotations

from aftershock.jobs import run_tables_job
from experiments.spec import Experiment
from infra.cluster import Handle
from results import checks
from results import report as reports
from results.store import Run


def tabulate(run: Run, owner: Handle | None) -> None:
    """The tables, by a Spark batch job, which carries the mark of the cluster if that still exists."""
    run_tables_job("build", run, owner=owner)


def predict(run: Run, experiment: Experiment) -> None:
    from results.predictions import write_predictions  # here, since it takes a while to import

    write_predictions(run, experiment)


def validate(run: Run, experiment: Experiment) -> None:
    checks.validate(run, experiment)


def report(run: Run, experiment: Experiment) -> None:
    reports.write_report(run, experiment)
