"""Checks of a run with Great Expectations: suites on its tables, a verdict for each, and Data Docs.

May import the rest of `results` and `experiments`. Great Expectations is imported only when a run is validated.
"""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from experiments.spec import Experiment
from results.checks.catalogue import checks_for
from results.checks.evidence import Evidence
from results.schema import TABLES
from results.store import Run, discard, write_json


def validate(run: Run, experiment: Experiment) -> pd.DataFrame:
    """Judge a run against its experiment.

    Writes tables/verdicts.parquet, checks/results.json and checks/data_docs/, and returns the verdicts. A check that
    cannot be evaluated (a table or rows are missing, too few samples, an error inside Great Expectations) is unknown.
    """
    from results.checks.judge import judge, open_context

    discard(run.checks)
    context = open_context(run.checks / "data_docs")
    evidence = Evidence(run, experiment)
    judged = [judge(context, check, evidence) for check in checks_for(experiment)]
    write_json(run.checks / "results.json", [result for _, result in judged])
    context.build_data_docs()
    discard(run.checks / "data_docs" / "static")  # 5 MB of fonts and pictures that our pages do not use
    table = pa.Table.from_pylist([row for row, _ in judged], schema=TABLES["verdicts"])
    run.tables.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, run.tables / "verdicts.parquet")
    return run.table("verdicts")
