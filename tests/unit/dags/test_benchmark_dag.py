"""The DAG `benchmark` as Airflow sees it."""

import json
from itertools import pairwise
from pathlib import Path

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk.definitions.param import process_params
from airflow.sdk.exceptions import ParamValidationError
from airflow.serialization.serialized_objects import DagSerialization

from aftershock.airflow import trigger_form
from aftershock.airflow.observe import Observe
from experiments import spec

REPOSITORY = Path(__file__).parents[3]
ORDER = (
    *("begin", "provision", "deploy", "start_load", "arm_faults", "observe", "stop", "collect"),
    *("tabulate", "predict", "validate", "report", "teardown", "judge"),
)


@pytest.fixture(scope="module")
def dag():
    return DagBag(dag_folder=str(REPOSITORY / "dags" / "benchmark.py")).dags["benchmark"]


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


def test_dag_runs_only_when_asked(dag):
    assert dag.schedule is None


def test_judge_shows_the_way_to_the_page_of_the_run(dag):
    assert [link.name for link in dag.get_task("judge").operator_extra_links] == ["Results of the run"]


def test_params_default_to_the_example_experiment(dag):
    params = {name: dag.params[name] for name in dag.params}
    assert spec.validate(trigger_form.fold(params)) == spec.load()


def test_the_form_is_stored_once_and_every_task_has_the_params_of_its_run(dag):
    stored = json.dumps(DagSerialization.to_dict(dag))
    assert stored.count('"engine.checkpoint_interval_s"') == 1
    for task in dag.tasks:
        params = process_params(dag, task, {"engine.checkpoint_interval_s": 5}, suppress_exception=False)
        assert params == {**dag.params, "engine.checkpoint_interval_s": 5}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("engine.checkpoint_interval_s", 0),
        ("cluster.workers", 2.5),
        ("engine.recovery", "hope"),
        ("faults.duration", -1),
        ("faults", {"processes": [{"kind": "kill", "rate": -1}]}),
        ("faults", {"processes": [{"rate": 1, "colour": "red"}]}),
        ("experiment", "no-example"),
        ("host_fault_rate", -1),
        ("workload.corpus", 3),
        ("run_id", "../etc"),
    ],
)
def test_the_form_refuses_what_the_models_refuse(dag, name, value):
    with pytest.raises(ParamValidationError):
        dag.params.get_param(name).resolve(value)
