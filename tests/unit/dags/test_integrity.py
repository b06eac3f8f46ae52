"""What holds for every DAG file: it parses fast and touches nothing, and its DAG is documented, owned and tagged."""

import ast
import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.serialization.serialized_objects import DagSerialization

from aftershock.airflow import tasks
from reproductions.catalogue import CATALOGUE
from results.tables.schema import TABLES

REPOSITORY = Path(__file__).parents[3]
FILES = sorted((REPOSITORY / "dags").glob("*.py"))

# The DAG processor forks a process that has Airflow imported for each file, so that much is not the file's.
MEASURE_PARSING = """
import json, runpy, sys, time
import airflow.dag_processing.processor, airflow.dag_processing.dagbag
import airflow.providers.standard.decorators.python, airflow.triggers.base
touched = []
WATCHED = {"sqlite3.connect", "socket.connect", "subprocess.Popen", "os.fork", "os.mkdir", "os.remove", "os.rename"}
sys.addaudithook(lambda event, details: event in WATCHED and touched.append(f"{event} {details}"))
before, started = set(sys.modules), time.process_time()
runpy.run_path(sys.argv[1])
cpu_s = time.process_time() - started
print(json.dumps({"cpu_s": cpu_s, "modules": sorted(set(sys.modules) - before), "touched": touched}))
"""


@pytest.fixture(scope="module")
def bag():
    return DagBag(dag_folder=str(REPOSITORY / "dags"))


def test_every_file_imports_and_holds_the_dag_of_its_name(bag):
    assert bag.import_errors == {}
    assert sorted(bag.dags) == [file.stem for file in FILES]


def parsed(file):
    command = [sys.executable, "-c", MEASURE_PARSING, str(file)]
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY)}
    ran = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True, env=environment)
    return json.loads(ran.stdout.splitlines()[-1])


@pytest.mark.extended
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_parsing_is_fast_and_touches_nothing(file):
    found = parsed(file)
    heavy = {"pyspark", "pandas", "great_expectations", "pyarrow", "matplotlib", "scipy", "numpy", "kafka"}
    assert heavy.isdisjoint(name.partition(".")[0] for name in found["modules"])
    assert found["touched"] == []  # no database above all
    assert found["cpu_s"] < 1  # of this process alone: a busy machine does not count


@pytest.mark.extended
def test_a_file_that_asks_a_database_or_a_server_would_be_seen(tmp_path):
    file = tmp_path / "careless.py"
    file.write_text(
        "import socket, sqlite3\nsqlite3.connect(':memory:')\nsocket.socket().connect_ex(('127.0.0.1', 9))\n"
    )
    assert [touched.split()[0] for touched in parsed(file)["touched"]] == ["sqlite3.connect", "socket.connect"]


@pytest.mark.parametrize("name", [file.stem for file in FILES])
def test_a_dag_is_documented_owned_and_tagged(bag, name):
    dag = bag.dags[name]
    file = REPOSITORY / "dags" / f"{name}.py"
    assert dag.doc_md == ast.get_docstring(ast.parse(file.read_text()), clean=False)
    assert all(task.task_id in dag.doc_md for task in dag.tasks)
    assert dag.description
    assert dag.owner == "aftershock"
    assert len(dag.tags) > 1
    assert "aftershock" in dag.tags
    assert not dag.catchup
    assert all(param.schema.get("title") for param in (dag.params.get_param(key) for key in dag.params))


@pytest.mark.parametrize("name", [file.stem for file in FILES])
def test_a_dag_survives_the_way_to_the_scheduler(bag, name):
    again = DagSerialization.from_dict(DagSerialization.to_dict(bag.dags[name]))
    assert again.task_ids == bag.dags[name].task_ids


@pytest.mark.parametrize("name", [file.stem for file in FILES])
def test_a_task_that_fails_says_why_and_only_waiting_is_retried(bag, name):
    for task in bag.dags[name].tasks:
        callbacks = getattr(task, "partial_kwargs", {}).get("on_failure_callback") or task.on_failure_callback
        assert tasks.note_error in (callbacks if isinstance(callbacks, list | tuple) else [callbacks])
        assert not task.retries or task.task_id == "observe"


def test_the_notifier_of_the_docs_can_be_added_to_any_task():
    """On a bag of its own, since the policy changes the DAGs."""
    policy = runpy.run_path(str(REPOSITORY / "docs" / "examples" / "airflow_local_settings.py"))
    told = set()
    for dag in DagBag(dag_folder=str(REPOSITORY / "dags")).dags.values():
        for task in dag.tasks:
            policy["task_policy"](task)
            if policy["MAIL"] in task.on_failure_callback:
                assert tasks.note_error in task.on_failure_callback
                told.add((dag.dag_id, task.task_id))
    assert told == policy["NOTIFIED"]


def test_what_dags_name_without_importing_it_is_still_so(bag):
    from aftershock.airflow.assets import RESULT_TABLES
    from reproductions.ids import IDS

    assert list(RESULT_TABLES) == list(TABLES)
    assert sorted(IDS) == sorted(CATALOGUE)
    assert bag.dags["reproduce"].params.get_param("id").schema["enum"] == list(IDS)
