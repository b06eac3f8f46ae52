"""Derives results from the raw logs of a run, in this order: tables, predictions, verdicts, report.

At the end of a run and when its results are computed again. Each function writes into the run's directory, and imports
what it needs when it is called: a command must not wait for matplotlib.
"""

from __future__ import annotations

import importlib

from aftershock.run import batch_job
from experiments.spec import Experiment
from infra.cluster import Handle
from results import checks
from results.runs.store import Run
from results.summary.fallback import as_it_recovered
from results.summary.findings import the_run


def tabulate(run: Run, owner: Handle | None) -> None:
    """The tables, by the Spark batch job of the cluster, or by one of its own if that is gone."""
    if owner:
        batch_job.carry_out("build", run, owner=owner)
    else:
        batch_job.build_again(run)


def load() -> None:
    """Import what predictions, verdicts and report need, which takes seconds."""
    for module in ("results.checks.judge", "results.predictions.tables", "results.views.report"):
        importlib.import_module(module)


def predict(run: Run, experiment: Experiment) -> None:
    """Write the tables with the predictions for a run (`results.predictions`)."""
    from results.predictions.tables import write_predictions

    write_predictions(run, as_it_recovered(experiment, the_run(run)))


def validate(run: Run, experiment: Experiment) -> None:
    """Judge the run as what it was and write its verdicts (`results.checks`)."""
    checks.validate(run, as_it_recovered(experiment, the_run(run)))


def report(run: Run, experiment: Experiment) -> None:
    """Write the report and the plots of a run (`results.views`)."""
    from results.views.report import write_report

    write_report(run, experiment)
