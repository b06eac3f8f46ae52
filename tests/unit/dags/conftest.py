"""Airflow reads its configuration when it is first imported: it is told before that what it runs for."""

import os

import pyarrow as pa
import pytest

from results.runs import store
from results.tables.schema import TABLES

os.environ.setdefault("AIRFLOW__CORE__UNIT_TEST_MODE", "True")
os.environ.setdefault("AIRFLOW__CORE__LOAD_EXAMPLES", "False")


@pytest.fixture
def publish(home):
    """Put a run with these verdicts (check, verdict, observed, expected) into the store."""

    def published(state, *verdicts, run_id="run-1", error=None, dag_run=None, started_ns=0):
        run = store.live(run_id)
        status = {"run_id": run_id, "experiment": "mine", "state": state, "error": error, "dag_run": dag_run}
        store.write_json(run.root / "status.json", status | {"started_ns": started_ns})
        columns = TABLES["verdicts"].names
        rows = [dict.fromkeys(columns) | dict(zip(columns, (c, "t", v, o, e), strict=False)) for c, v, o, e in verdicts]
        run.write_table("verdicts", pa.Table.from_pylist(rows, schema=TABLES["verdicts"]))
        return store.publish(run)

    return published
