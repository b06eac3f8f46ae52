"""What follows from the raw logs of a run, in this order: tables, predictions, verdicts, report.

At the end of a run and when its results are computed again. Each function writes into the run's directory.
"""

from __future__ import annotations

from aftershock import jobs
from experiments.spec import Experiment
from infra.cluster import Handle
from results import checks
from results import report as reports
from results.store import Run


def tabulate(run: Run, owner: Handle | None) -> None:
    """The tables, by the Spark batch job of the cluster, or by one of its own if that is gone."""
    if owner:
        jobs.carry_out("build", run, owner=owner)
    else:
        jobs.build_again(run)


def predict(run: Run, experiment: Experiment) -> None:
    from results.predictions import write_predictions  # here, since it takes a while to import

    write_predictions(run, experiment)


def validate(run: Run, experiment: Experiment) -> None:
    checks.validate(run, experiment)


def report(run: Run, experiment: Experiment) -> None:
    reports.write_report(run, experiment)
