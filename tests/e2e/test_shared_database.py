"""Two DAG runs at once on one Airflow with its real SQLite: none fails for a locked database, and no row is lost.

Their tasks need no cluster, and so write to the database more often than those of a benchmark.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from aftershock.airflow import environment
from tests.e2e.airflow_server import ENDED, Server, served_airflow, wait

pytestmark = pytest.mark.extended

TASKS = 6
HELD_S = 10.0  # another writer's turn; SQLite's own limit for waiting is 5 s
DAG = f"""
from airflow.sdk import DAG, chain, get_current_context, task

@task
def number(own):
    return f"{{get_current_context()['dag_run'].run_id}} {{own}}"

with DAG("small", schedule=None, max_active_runs=2, default_args={{"retries": 0}}):
    steps = [number.override(task_id=f"step-{{own}}")(own) for own in range({TASKS})]
    last = number.override(task_id="teardown")("teardown").as_teardown(setups=steps[0].as_setup())
    chain(*steps, last)
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home: Path = tmp_path_factory.mktemp("shared")
    (home / "dags").mkdir()
    (home / "dags" / "small.py").write_text(DAG, encoding="utf-8")
    with served_airflow(home, AIRFLOW__CORE__DAGS_FOLDER=str(home / "dags")) as server:
        yield server


def database() -> Path:
    found = environment.sqlite_file(environment.environment())
    assert found is not None
    return found


def hold_the_database() -> None:
    """As a writer with a long transaction does: all others have to wait."""
    with closing(sqlite3.connect(database(), timeout=60, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        time.sleep(HELD_S)
        writer.execute("ROLLBACK")


def rows(question: str) -> list[tuple[str, ...]]:
    with closing(sqlite3.connect(database(), timeout=60)) as reader:
        return sorted(reader.execute(question).fetchall())


def two_dag_runs(served: Server) -> list[str]:
    """Both begin at once, when the DAG is no longer paused; returns their ids."""
    served.switch_on("small")
    served.call("/api/v2/dags/small", {"is_paused": True}, "PATCH")
    triggered = [served.call("/api/v2/dags/small/dagRuns", {"logical_date": None, "conf": {}}) for _ in range(2)]
    served.switch_on("small")
    return [each["dag_run_id"] for each in triggered]


def test_two_dag_runs_at_once_lose_no_row_while_another_writer_holds_the_database(served: Server) -> None:
    dag_runs = two_dag_runs(served)

    def states() -> list[str]:
        return [state for (state,) in rows("SELECT state FROM dag_run")]

    wait("both DAG runs", lambda: states() == ["running", "running"])
    while not all(state in ENDED for state in states()):
        hold_the_database()
        time.sleep(HELD_S / 2)

    assert states() == ["success", "success"]
    names = ["teardown", *(f"step-{number}" for number in range(TASKS))]
    expected = sorted((dag_run, name, "success", 1) for dag_run in dag_runs for name in names)
    assert rows("SELECT run_id, task_id, state, try_number FROM task_instance") == expected
    returned = rows("SELECT run_id, task_id, value FROM xcom WHERE key = 'return_value'")
    assert [found[:2] for found in returned] == [wanted[:2] for wanted in expected]
    assert all(f"{run} {name.removeprefix('step-')}" in value for run, name, value in returned)
    assert rows("PRAGMA integrity_check") == [("ok",)]
    logs = [path for path in (environment.airflow_home() / "logs").rglob("*.log") if path.is_file()]
    assert logs != []
    for problem in ("database is locked", "Starting call to"):  # the second: a task sent a request again
        assert [path for path in logs if problem in path.read_text(errors="replace")] == []
