"""The checks of a run, made with Great Expectations: suites on tables, a verdict for each check, and Data Docs.

Great Expectations is imported only when a run is validated.
"""

from __future__ import annotations

import pandas as pd

from experiments.spec import Experiment
from results.checks.catalogue import checks_for
from results.checks.evidence import Evidence
from results.runs.store import Run
from results.tables.schema import RUN_TABLES


def validate(run: Run, experiment: Experiment) -> pd.DataFrame:
    """Judge a run against its experiment.

    Writes tables/verdicts.parquet, checks/results.json and checks/data_docs/, and returns the verdicts. A check that
    cannot be evaluated (a table or rows are missing, too few samples, an error inside Great Expectations) is unknown.
    """
    from results.checks.judge import judge_all

    rows = judge_all(run.checks, checks_for(experiment), Evidence(run, experiment))
    run.write_table("verdicts", RUN_TABLES["verdicts"].of(rows))
    return run.table("verdicts")
