"""The DAG file as Airflow sees it: what it declares, and what parsing it costs."""

import json
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk.exceptions import ParamValidationError

from aftershock import trigger_form
from aftershock.observe import Observe
from experiments import spec

REPOSITORY = Path(__file__).parents[3]
ORDER = (
    *("begin", "provision", "deploy", "start_load", "arm_faults", "observe", "stop", "collect"),
    *("tabulate", "predict", "validate", "report", "teardown", "judge"),
)

MEASURE_PARSING = """
import json, runpy, sys, time
import airflow.sdk, airflow.providers.standard.decorators.python, airflow.triggers.base
before, started = set(sys.modules), time.process_time()
runpy.run_path("dags/benchmark.py")
print(json.dumps({"cpu_s": time.process_time() - started, "modules": sorted(set(sys.modules) - before)}))
"""


@pytest.fixture(scope="module")
def bag():
    return DagBag(dag_folder=str(REPOSITORY / "dags"))


@pytest.fixture(scope="module")
def dag(bag):
    return bag.dags["benchmark"]


def test_every_file_imports_and_declares_one_dag_in_all(bag):
    assert bag.import_errors == {}
    assert list(bag.dags) == ["benchmark"]


def test_steps_come_in_the_order_of_the_design(dag):
    assert [task.task_id for task in dag.topological_sort()] == list(ORDER)
    for before, after in pairwise(ORDER):
        assert after in dag.get_task(before).downstream_task_ids


def test_teardown_follows_begin_and_provision_whatever_fails(dag):
    assert [task.task_id for task in dag.tasks if task.is_setup] == ["begin", "provision"]
    teardown = dag.get_task("teardown")
    assert teardown.is_teardown
    assert {"begin", "provision", "report"} <= teardown.upstream_task_ids


def test_judge_alone_decides_the_state_of_the_dag_run(dag):
    assert [task.task_id for task in dag.leaves] == ["judge"]
    judge = dag.get_task("judge")
    assert judge.is_teardown
    assert judge.on_failure_fail_dagrun


def test_only_observe_waits_and_only_observe_is_retried(dag):
    assert [task.task_id for task in dag.tasks if isinstance(task, Observe)] == ["observe"]
    assert [task.task_id for task in dag.tasks if task.retries] == ["observe"]


def test_dag_is_documented_and_runs_only_when_asked(dag):
    assert dag.schedule is None
    assert dag.owner == "aftershock"
    assert "aftershock" in dag.tags
    assert all(name in dag.doc_md for name in ORDER)


def test_params_default_to_the_example_experiment(dag):
    params = {name: dag.params[name] for name in dag.params}
    assert spec.validate(trigger_form.fold(params)) == spec.load()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("engine.checkpoint_interval_s", 0),
        ("cluster.workers", 2.5),
        ("engine.recovery", "hope"),
        ("faults.duration", -1),
        ("faults.processes", [{"kind": "kill", "rate": -1}]),
        ("faults.processes", [{"rate": 1, "colour": "red"}]),
        ("workload.corpus", 3),
        ("run_id", "../etc"),
    ],
)
def test_the_form_refuses_what_the_models_refuse(dag, name, value):
    with pytest.raises(ParamValidationError):
        dag.params.get_param(name).resolve(value)


def test_parsing_is_fast_and_imports_nothing_heavy():
    ran = subprocess.run(
        [sys.executable, "-c", MEASURE_PARSING],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    )
    parsed = json.loads(ran.stdout.splitlines()[-1])
    heavy = {"pyspark", "pandas", "great_expectations", "pyarrow", "matplotlib", "scipy", "numpy", "kafka"}
    assert heavy.isdisjoint(name.partition(".")[0] for name in parsed["modules"])
    assert parsed["cpu_s"] < 1  # of this process alone: a busy machine does not count
