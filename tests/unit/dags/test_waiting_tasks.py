"""Which DAG runs of `benchmark` are still waited for, as Airflow's states and what tasks have left tell it."""

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
from aftershock.airflow.dag_run_ids import Request
from aftershock.run import abort
from aftershock.run.abort import Abortion
from experiments import spec
from experiments.errors import BadInput
from reproductions import reproduce
from results.runs import store
from tests.e2e.example_run import write_live_run

REPOSITORY = Path(__file__).parents[3]
NIGHT = "manual__2026-11-29T02:00:00+00:00"


def request(index, attempt=1, dag_id="nightly", task_id="run", dag_run=NIGHT):
    return Request(dag_id, dag_run, task_id, index, attempt, "words-9")


FIRST, SECOND = request(0), request(1)
OF_FIGURE, FOLLOW_UP = (request(0, 1, "reproduce", task) for task in ("runs.run", "runs.run_follow_up"))


@pytest.fixture
def airflow(monkeypatch):
    """What Airflow knows: states of tasks of `NIGHT` by their DAG, what they requested, and what of it is over."""
    known = SimpleNamespace(states={}, requested={}, over=set())

    def get_task_states(dag_id, task_ids, run_ids):
        states = known.states.get(dag_id, {}) if run_ids == [NIGHT] else {}
        wanted = {name: state for name, state in states.items() if name.rpartition("_")[0] in task_ids}
        return {NIGHT: wanted} if wanted else {}

    def get_dr_count(dag_id, run_ids, states):
        asked = (dag_id, states) == ("benchmark", ["queued", "running"])
        return len(set(run_ids) - known.over) if asked else 0

    def get_one(key, dag_id, task_id, run_id, map_index):
        return known.requested.get((dag_id, task_id, map_index)) if (key, run_id) == ("requested", NIGHT) else None

    task_instance = SimpleNamespace(get_task_states=get_task_states, get_dr_count=get_dr_count)
    monkeypatch.setattr(waiting_tasks, "get_current_context", lambda: {"ti": task_instance})
    monkeypatch.setattr(XCom, "get_one", get_one)
    return known


@pytest.fixture
def night(airflow):
    """A night of two cells, of which the second one is being run."""
    airflow.states["nightly"] = {"cells": "success", "run_0": "success", "run_1": "deferred", "publish": None}
    airflow.requested |= {("nightly", "run", 0): FIRST.id, ("nightly", "run", 1): SECOND.id}
    return airflow.states["nightly"]


@pytest.mark.parametrize("wanted", [FIRST, OF_FIGURE, FOLLOW_UP, request(12, 3, dag_run="mine__run__0__1__a-1")])
def test_a_requested_dag_run_tells_by_its_id_which_try_of_which_task_it_came_of(wanted):
    assert Request.of(wanted.id) == wanted


@pytest.mark.parametrize("dag_id", ["nightly", "reproduce"])
def test_ids_can_be_told_apart_for_all_tasks_that_request_dag_runs(dag_id):
    dag = DagBag(dag_folder=str(REPOSITORY / "dags" / f"{dag_id}.py")).dags[dag_id]
    kinds = {task.task_id: getattr(task, "operator_class", type(task)) for task in dag.tasks}
    waiting = [request(0, 1, dag_id, name) for name, kind in kinds.items() if kind is nightly.BenchmarkRun]
    assert waiting
    assert [Request.of(each.id) for each in waiting] == waiting


@pytest.fixture
def begin(monkeypatch, home):
    """The first step of a DAG run, which begins no run."""
    steps = SimpleNamespace(begin=lambda document, run_id, dag_run, attempt: "begun")
    monkeypatch.setitem(sys.modules, "aftershock.run.steps", steps)
    monkeypatch.setattr(aftershock.run, "steps", steps, raising=False)
    return lambda dag_run, attempt=1: tasks.begin(trigger_form.flatten(spec.load()), dag_run, attempt)


@pytest.mark.parametrize("state", ["running", "deferred"])
def test_a_dag_run_for_which_a_task_waits_begins(begin, night, state):
    night["run_1"] = state
    assert begin(SECOND.id) == "begun"


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
    told = f"no task waits for this run: DAG run {NIGHT} of nightly was cleared, ended by hand, or deleted; to"
    with pytest.raises(AirflowFailException) as refused:
        begin(SECOND.id)
    assert str(refused.value).startswith(told)


def test_a_dag_run_of_an_earlier_try_is_not_waited_for_by_a_task_of_the_next(begin, night, airflow):
    airflow.requested["nightly", "run", 1] = request(1, attempt=2).id
    with pytest.raises(AirflowFailException, match="no task waits for this run"):
        begin(SECOND.id)
    assert begin(request(1, attempt=2).id) == "begun"


def test_the_dag_run_of_a_task_that_was_cleared_and_then_marked_as_failed_does_not_begin(begin, night, airflow):
    """It is the first try of its DAG run, although it is the second one of the task."""
    airflow.requested["nightly", "run", 1] = request(1, attempt=2).id
    night["run_1"] = "failed"
    with pytest.raises(AirflowFailException, match="no task waits for this run"):
        begin(request(1, attempt=2).id)


def test_a_dag_run_whose_night_was_deleted_does_not_begin(begin, airflow):
    with pytest.raises(AirflowFailException, match="no task waits for this run"):
        begin(SECOND.id)


def test_a_dag_run_begins_whose_task_waits_though_what_listed_its_cell_was_cleared(begin, night, airflow):
    night["cells"] = None
    assert begin(SECOND.id) == "begun"


def test_a_dag_run_that_somebody_clears_later_begins(begin, night):
    night["run_1"] = "failed"
    assert begin(SECOND.id, attempt=2) == "begun"


@pytest.mark.parametrize("dag_run", ["manual__1", "mine", "mine__2", "mine__x__words-3", "mine__1__words-3", NIGHT])
def test_a_dag_run_that_no_task_requested_begins(begin, airflow, dag_run):
    assert begin(dag_run) == "begun"


def test_the_runs_of_a_figure_are_waited_for_by_the_tasks_of_their_places(begin, airflow):
    airflow.states["reproduce"] = states = {"runs.run_0": "deferred", "runs.run_follow_up_0": None}
    airflow.requested["reproduce", "runs.run", 0] = OF_FIGURE.id
    assert begin(OF_FIGURE.id) == "begun"
    with pytest.raises(AirflowFailException, match="of reproduce was cleared"):
        begin(FOLLOW_UP.id)
    states |= {"runs.run_0": "success", "runs.run_follow_up_0": "deferred"}
    airflow.requested["reproduce", "runs.run_follow_up", 0] = FOLLOW_UP.id
    assert begin(FOLLOW_UP.id) == "begun"
    with pytest.raises(AirflowFailException, match="of reproduce was cleared"):
        begin(OF_FIGURE.id)


@pytest.fixture
def live(home):
    """Four live runs: the one of the night that goes on, one that another try requested, and two of people."""
    known = {"of-night": SECOND.id, "of-before": request(3).id, "of-another": "other__1__words-9", "mine": None}
    for run_id, dag_run in known.items():
        note(run_id, dag_run=dag_run, attempt=dag_run and 1)


def note(run_id, **about):
    run = store.live(run_id) if run_id in store.all_live() else write_live_run(run_id)
    store.write_json(run.root / "status.json", run.status().to_json() | about)


@pytest.fixture
def ended(live, monkeypatch):
    """The runs that were ended, in their order; what ends is live a little longer."""
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
    monkeypatch.setattr(TriggerDagRunOperator, "execute", lambda task, context: found.append(f"asks {task.run_label}"))
    return found


def ask():
    """Carry out the second try of a task of a night; what it leaves is in the context when it requests the DAG run."""
    left = {}
    about = {"dag_id": "nightly", "run_id": NIGHT, "task_id": "run", "map_index": 7, "try_number": 2}
    task_instance = SimpleNamespace(**about, left=left, xcom_push=lambda key, value: left.update({key: value}))
    nightly.BenchmarkRun(task_id="run", run_label="words-9", conf={}).execute({"ti": task_instance})


def test_a_task_leaves_the_id_of_its_dag_run_before_it_requests_that(night, home, monkeypatch):
    """The first step of the DAG run asks for it."""
    seen = []

    def requests(task, context):
        seen.append((task.trigger_run_id, dict(context["ti"].left)))

    monkeypatch.setattr(TriggerDagRunOperator, "execute", requests)
    ask()
    assert seen == [(request(7, 2).id, {"requested": request(7, 2).id})]


def test_what_an_earlier_try_requested_is_over_before_the_next_run_is_requested(ended, night):
    ask()
    assert ended == ["of-before", "gone", "asks words-9"]
    assert sorted(store.all_live()) == ["mine", "of-another", "of-night"]


@pytest.mark.parametrize("state", [None, "scheduled", "queued", "restarting", "failed", "success", "skipped"])
def test_the_run_of_a_task_that_was_cleared_or_ended_by_hand_is_over_before_the_next_one(ended, night, airflow, state):
    """The pool has one slot: such a task gives it up, and any other one may get it next."""
    airflow.requested["nightly", "run", 3] = request(3).id
    night["run_3"] = state
    ask()
    assert ended == ["of-before", "gone", "asks words-9"]


@pytest.mark.parametrize("state", [None, "scheduled", "deferred", "failed"])
def test_a_run_goes_on_whose_dag_run_a_person_cleared_whatever_became_of_its_task(ended, night, airflow, state):
    note("of-before", attempt=2)
    night["run_3"] = state
    ask()
    assert ended == ["asks words-9"]


def test_the_run_of_a_task_that_waits_goes_on_though_what_listed_its_cell_was_cleared(ended, night, airflow):
    airflow.requested["nightly", "run", 3] = request(3).id
    night |= {"cells": None, "run_3": "deferred"}
    ask()
    assert ended == ["asks words-9"]


def test_the_run_of_a_night_that_was_deleted_is_ended(ended, night, airflow):
    airflow.states.clear()
    airflow.requested.clear()
    ask()
    assert ended == ["of-before", "gone", "of-night", "gone", "asks words-9"]


def test_what_a_failed_teardown_has_left_stops_no_night(ended, night, airflow):
    """Nobody would tear it down, so that the night would wait for an hour."""
    airflow.over.add(request(3).id)
    ask()
    assert ended == ["asks words-9"]


def test_a_night_does_not_wait_for_a_teardown_that_fails(ended, night, airflow, monkeypatch):
    def fail(run_id):
        airflow.over.add(request(3).id)
        raise BadInput("run_id", run_id, "a live run")

    monkeypatch.setattr(abort, "abort", fail)
    monkeypatch.setattr(waiting_tasks, "END_LIMIT_S", 0.0)
    ask()
    assert ended == ["asks words-9"]


def test_a_run_that_ends_by_itself_meanwhile_is_no_failure(ended, night, monkeypatch):
    def over(run_id):
        ended.append(run_id)
        raise BadInput("run_id", run_id, "a live run")

    monkeypatch.setattr(abort, "abort", over)
    ask()
    assert ended == ["of-before", "gone", "asks words-9"]


def test_a_run_that_does_not_end_fails_the_task_that_would_be_measured_beside_it(ended, night, monkeypatch):
    monkeypatch.setattr(waiting_tasks, "END_LIMIT_S", 0.0)
    with pytest.raises(AirflowFailException, match="of-before was aborted, and is still live after 0 s; look at its"):
        ask()
    assert "asks words-9" not in ended


def test_what_a_figure_measures_by_itself_is_not_measured_beside_such_a_run_either(ended, night, monkeypatch):
    def measure(id, size):
        ended.append(f"{id} measures")
        raise BadInput("size", size, "none")

    monkeypatch.setattr(reproduce, "measure_missing", measure)
    with pytest.raises(AirflowFailException, match="size"):
        reproducing.reproduce("cec/fig-13", None)
    assert ended == ["of-before", "gone", "cec/fig-13 measures"]
