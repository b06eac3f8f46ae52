"""Which DAG runs of `benchmark` are still waited for, as Airflow's states and what tasks have returned tell it."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk.exceptions import AirflowFailException
from airflow.sdk.execution_time.xcom import XCom

import aftershock.run
from aftershock.airflow import nightly, reproducing, tasks, trigger_form, waiting_tasks
from aftershock.run import abort
from aftershock.run.abort import Abortion
from experiments import spec
from experiments.errors import BadInput
from reproductions import reproduce
from results.runs import store
from tests.e2e.example_run import write_live_run

REPOSITORY = Path(__file__).parents[3]
NIGHT = "manual__2026-11-29T02:00:00+00:00"
FIRST, SECOND = f"{NIGHT}__1__words-3", f"{NIGHT}__1__words-9"
OF_FIGURE, FOLLOW_UP = f"{NIGHT}__missing__1__words-3", f"{NIGHT}__follow_up__2__words-4"


@pytest.fixture
def airflow(monkeypatch):
    """What Airflow knows: the states of tasks by their DAG, all of DAG run `NIGHT`, and what they returned."""
    known = SimpleNamespace(states={}, returned={})

    def get_task_states(dag_id, run_ids):
        return {NIGHT: known.states[dag_id]} if run_ids == [NIGHT] and dag_id in known.states else {}

    def get_one(key, dag_id, task_id, run_id, map_index):
        return known.returned.get((task_id, map_index)) if (key, run_id) == ("return_value", NIGHT) else None

    task_instance = SimpleNamespace(get_task_states=get_task_states)
    monkeypatch.setattr(waiting_tasks, "get_current_context", lambda: {"ti": task_instance})
    monkeypatch.setattr(XCom, "get_one", get_one)
    return known


@pytest.fixture
def night(airflow):
    """A night of two cells, of which the second one is being run."""
    airflow.states["nightly"] = {"cells": "success", "run_0": "success", "run_1": "deferred", "publish": None}
    airflow.returned["cells", -1] = [{"trigger_run_id": FIRST}, {"trigger_run_id": SECOND}]
    return airflow.states["nightly"]


@pytest.mark.parametrize("dag_id", waiting_tasks.WAITING)
def test_the_tasks_that_list_and_wait_are_those_of_the_dags(dag_id):
    dag = DagBag(dag_folder=str(REPOSITORY / "dags" / f"{dag_id}.py")).dags[dag_id]
    waiting = waiting_tasks.WAITING[dag_id]
    assert all(name in dag.get_task(after).upstream_task_ids for name, after in waiting.items() if name != "missing")
    mapped = {task.task_id: getattr(task, "operator_class", type(task)) for task in dag.tasks}
    assert {name for name, kind in mapped.items() if kind is nightly.BenchmarkRun} == set(waiting.values())


@pytest.fixture
def begin(monkeypatch, home):
    """The first step of a DAG run, which begins no run."""
    steps = SimpleNamespace(begin=lambda document, run_id, dag_run: "begun")
    monkeypatch.setitem(sys.modules, "aftershock.run.steps", steps)
    monkeypatch.setattr(aftershock.run, "steps", steps, raising=False)
    return lambda dag_run, attempt=1: tasks.begin(trigger_form.flatten(spec.load()), dag_run, attempt)


@pytest.mark.parametrize("state", ["running", "deferred"])
def test_a_dag_run_for_which_a_task_waits_begins(begin, night, state):
    night["run_1"] = state
    assert begin(SECOND) == "begun"


@pytest.mark.parametrize(
    "change",
    [
        {"run_1": "failed", "publish": "skipped"},  # the night, or the task, was marked as failed
        {"run_1": "success"},
        {"cells": None, "run_1": None},  # the night was cleared
        {"cells": "running", "run_1": "restarting"},
    ],
)
def test_a_dag_run_for_which_no_task_waits_any_more_does_not_begin(begin, night, change):
    night.update(change)
    told = f"no task waits for this run: DAG run {NIGHT} of nightly was cleared, or ended by hand; to measure it"
    with pytest.raises(AirflowFailException) as refused:
        begin(SECOND)
    assert str(refused.value).startswith(told)


def test_a_dag_run_of_an_earlier_try_is_not_waited_for_by_a_task_of_the_next(begin, night, airflow):
    airflow.returned["cells", -1] = [{"trigger_run_id": f"{NIGHT}__2__words-{seed}"} for seed in (3, 9)]
    with pytest.raises(AirflowFailException, match="no task waits for this run"):
        begin(SECOND)
    assert begin(f"{NIGHT}__2__words-9") == "begun"


def test_a_dag_run_that_somebody_clears_later_begins(begin, night):
    night["run_1"] = "failed"
    assert begin(SECOND, attempt=2) == "begun"


@pytest.mark.parametrize("dag_run", ["manual__1", "mine", "mine__2", "mine__x__words-3", "mine__1__words-3", NIGHT])
def test_a_dag_run_that_no_task_requested_begins(begin, airflow, dag_run):
    assert begin(dag_run) == "begun"


def test_the_runs_of_a_figure_are_waited_for_by_the_tasks_of_their_places(begin, airflow):
    states = {"missing": "success", "runs.run_0": "deferred", "runs.follow_up_0": None, "runs.run_follow_up_0": None}
    airflow.states["reproduce"] = states
    airflow.returned |= {("missing", -1): [{"trigger_run_id": OF_FIGURE}]}
    assert begin(OF_FIGURE) == "begun"
    with pytest.raises(AirflowFailException, match="of reproduce was cleared"):
        begin(FOLLOW_UP)
    states |= {"runs.run_0": "success", "runs.follow_up_0": "success", "runs.run_follow_up_0": "deferred"}
    airflow.returned["runs.follow_up", 0] = {"trigger_run_id": FOLLOW_UP}
    assert begin(FOLLOW_UP) == "begun"
    with pytest.raises(AirflowFailException, match="of reproduce was cleared"):
        begin(OF_FIGURE)


@pytest.fixture
def ended(home, monkeypatch):
    """The runs that were ended, of four that are live; what ends is live a little longer."""
    earlier = f"{NIGHT}__7__words-9"
    known = {"of-night": SECOND, "of-before": earlier, "of-another": f"other__{SECOND}", "mine": None}
    for run_id, dag_run in known.items():
        run = write_live_run(run_id)
        store.write_json(run.root / "status.json", run.status().to_json() | {"dag_run": dag_run})
    found, listed = [], store.all_live

    def all_live():
        """The teardown goes on at the first look after the abort, and is over at the next."""
        live_runs = listed()
        if found and found[-1] in live_runs:
            store.discard(store.live_directory(found[-1]))
            found.append("gone")
        return live_runs

    def aborted(run_id):
        found.append(run_id)
        return Abortion(run_id, [], [], 0.0, "deploy")

    monkeypatch.setattr(store, "all_live", all_live)
    monkeypatch.setattr(abort, "abort", aborted)
    monkeypatch.setattr(waiting_tasks, "END_POLL_S", 0.0)
    monkeypatch.setattr(TriggerDagRunOperator, "execute", lambda task, context: found.append(f"{task.task_id} asks"))
    return found


def request():
    nightly.BenchmarkRun(task_id="run", trigger_run_id="any", conf={}).execute({})


def test_what_an_earlier_try_requested_is_over_before_the_next_run_is_requested(ended, night):
    request()
    assert ended == ["of-before", "gone", "run asks"]
    assert sorted(store.all_live()) == ["mine", "of-another", "of-night"]


@pytest.mark.parametrize("state", [None, "scheduled", "queued", "restarting"])
def test_the_run_of_a_task_that_was_cleared_and_waits_for_this_one_is_ended(ended, night, airflow, state):
    """The pool has one slot: a task that is cleared gives it up, and any other one may get it next."""
    airflow.returned["cells", -1].append({"trigger_run_id": f"{NIGHT}__7__words-9"})
    night["run_2"] = state
    request()
    assert ended == ["of-before", "gone", "run asks"]


def test_a_run_that_somebody_cleared_when_its_task_was_over_goes_on(ended, night, airflow):
    airflow.returned["cells", -1].append({"trigger_run_id": f"{NIGHT}__7__words-9"})
    night["run_2"] = "failed"
    request()
    assert ended == ["run asks"]


def test_the_runs_of_dag_runs_that_are_gone_go_on(ended, airflow):
    request()
    assert ended == ["run asks"]


def test_a_run_that_ends_by_itself_meanwhile_is_no_failure(ended, night, monkeypatch):
    def over(run_id):
        ended.append(run_id)
        raise BadInput("run_id", run_id, "a live run")

    monkeypatch.setattr(abort, "abort", over)
    request()
    assert ended == ["of-before", "gone", "run asks"]


def test_a_run_that_does_not_end_fails_the_task_that_would_be_measured_beside_it(ended, night, monkeypatch):
    monkeypatch.setattr(waiting_tasks, "END_LIMIT_S", 0.0)
    with pytest.raises(AirflowFailException, match="of-before was aborted, and is still live after 0 s; look at its"):
        request()
    assert "run asks" not in ended


def test_what_a_figure_measures_by_itself_is_not_measured_beside_such_a_run_either(ended, night, monkeypatch):
    def measure(id, size):
        ended.append(f"{id} measures")
        raise BadInput("size", size, "none")

    monkeypatch.setattr(reproduce, "measure_missing", measure)
    with pytest.raises(AirflowFailException, match="size"):
        reproducing.reproduce("cec/fig-13", None)
    assert ended == ["of-before", "gone", "cec/fig-13 measures"]
