"""What the DAG `nightly` makes of a matrix, of the runs that came of it, and of those that did not."""

import logging
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk import DagRunState, timezone
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException, DagRunTriggerException, TaskDeferred
from airflow.sdk.execution_time.xcom import XCom
from airflow.serialization.encoders import coerce_to_core_timetable
from airflow.timetables import trigger
from airflow.timetables.base import DataInterval, TimeRestriction
from airflow.utils.types import DagRunType

from aftershock.airflow import nightly, trigger_form
from aftershock.airflow.assets import RESULT_TABLES
from aftershock.airflow.dag_run_ids import Request
from aftershock.airflow.pool import RUNS_POOL
from experiments import matrix, spec

last_opened, last_refusal, last_requested = nightly.opened, nightly.refusal, nightly.requested  # tests replace them
REPOSITORY = Path(__file__).parents[3]
GOOD, BAD = ("ledger", "pass", "240", "240"), ("utilization", "fail", "0.61", "0.70 to 0.76")
DAG_STATE_TRIGGER = "airflow.providers.standard.triggers.external_task.DagStateTrigger"
CELLS = [{"run_label": f"words-{seed}", "conf": {}} for seed in (3, 9)]
FIRST, SECOND = (Request("nightly", "night", "run", index, 1, f"words-{seed}").id for index, seed in ((0, 3), (1, 9)))


@pytest.fixture(scope="module")
def dag():
    return DagBag(dag_folder=str(REPOSITORY / "dags" / "nightly.py")).dags["nightly"]


@pytest.fixture(autouse=True)
def opened(monkeypatch):
    """The run that each DAG run opened in its last try, as Airflow keeps it."""
    known = {}
    monkeypatch.setattr(nightly, "opened", known.get)
    return known


@pytest.fixture(autouse=True)
def asked(monkeypatch):
    """What the tasks of a night have requested, by the index of the cell."""
    known = {0: FIRST, 1: SECOND}
    monkeypatch.setattr(nightly, "requested", lambda count: [known.get(index) for index in range(count)])
    return known


@pytest.fixture
def publish(publish, opened):
    def published(*words, run_id, dag_run, **about):
        opened[dag_run] = run_id
        return publish(*words, run_id=run_id, dag_run=dag_run, **about)

    return published


@pytest.fixture
def events():
    return defaultdict(SimpleNamespace)


def test_a_night_is_scheduled_alone_and_off_until_wanted(dag):
    assert (dag.catchup, dag.max_active_runs, dag.is_paused_upon_creation) == (False, 1, True)


def test_a_night_that_was_missed_by_an_hour_is_not_made_up_for(dag, monkeypatch):
    monkeypatch.setattr(trigger, "utcnow", lambda: timezone.datetime(2026, 11, 22, 3, 0))
    never = TimeRestriction(earliest=None, latest=None, catchup=False)
    timetable = coerce_to_core_timetable(dag.timetable)
    first = timetable.next_dagrun_info(last_automated_data_interval=None, restriction=never)
    assert first.run_after == timezone.datetime(2026, 11, 23, 2, 0)


def test_airflow_makes_up_for_a_later_night_that_was_missed_and_its_first_task_skips_all_of_it(dag, monkeypatch):
    yesterday = timezone.datetime(2026, 11, 21, 2, 0)
    monkeypatch.setattr(trigger, "utcnow", lambda: timezone.datetime(2026, 11, 22, 10, 0))
    never = TimeRestriction(earliest=None, latest=None, catchup=False)
    timetable, last = coerce_to_core_timetable(dag.timetable), DataInterval(yesterday, yesterday)
    made_up_for = timetable.next_dagrun_info(last_automated_data_interval=last, restriction=never)
    assert made_up_for.run_after == timezone.datetime(2026, 11, 22, 2, 0)
    assert dag.get_task("cells").ignore_downstream_trigger_rules, "also the tasks that run whatever failed"
    assert {task.task_id for task in dag.get_task("cells").get_flat_relatives()} == {"run", "publish", "judge"}


@pytest.mark.parametrize(
    ("late_min", "run_type", "attempt", "missed"),
    [
        (29, DagRunType.SCHEDULED, 1, False),
        (31, DagRunType.SCHEDULED, 1, True),
        (31, DagRunType.SCHEDULED, 2, False),  # a person has cleared it
        (31, DagRunType.MANUAL, 1, False),
    ],
)
def test_a_night_that_begins_late_by_itself_was_missed(late_min, run_type, attempt, missed):
    due = datetime.now(UTC) - timedelta(minutes=late_min)
    assert nightly.is_missed(SimpleNamespace(run_after=due, run_type=run_type), attempt) is missed


def test_runs_wait_for_each_other_without_a_worker_and_without_stopping_the_rest(dag):
    run = dag.get_task("run")
    assert run.partial_kwargs["pool"] == RUNS_POOL
    made = nightly.BenchmarkRun(task_id="run", run_label="x", conf={})
    assert (made.trigger_dag_id, made.deferrable, made.wait_for_completion) == ("benchmark", True, True)
    assert all(dag.get_task(name).trigger_rule == "all_done" for name in ("publish", "judge"))
    assert {asset.name for asset in dag.get_task("publish").outlets} == {a.name for a in RESULT_TABLES.values()}


def test_a_task_clears_no_dag_run_that_is_there_already(home):
    """Such a one is of the same request, whose answer was lost. Once cleared, its run would count as a person's."""
    about = {"dag_id": "nightly", "run_id": "night", "task_id": "run", "map_index": 0, "try_number": 1}
    task_instance = SimpleNamespace(
        **about,
        xcom_push=lambda key, value: None,
        get_dag=lambda dag_id: SimpleNamespace(is_paused=False),
    )
    with pytest.raises(DagRunTriggerException) as request:
        nightly.BenchmarkRun(task_id="run", run_label="words-3", conf={}).execute({"ti": task_instance})
    assert (request.value.dag_run_id, request.value.reset_dag_run) == (FIRST, False)


def test_the_cells_of_a_matrix_are_runs_of_the_benchmark_with_names_of_their_own():
    asked = nightly.cells("nightly")
    wanted = matrix.load("nightly")
    assert [spec.validate(trigger_form.fold(cell["conf"])) for cell in asked] == wanted
    assert [cell["run_label"] for cell in asked] == [f"{each.name}-{each.seed}" for each in wanted]


def test_a_night_asks_each_of_its_tasks_what_it_has_requested(monkeypatch, dag):
    known = {("run", "requested", 0): FIRST, ("run", "requested", 2): SECOND}

    def xcom_pull(task_ids, key, map_indexes):
        return [known.get((task_ids, key, index)) for index in map_indexes]

    monkeypatch.setattr(nightly, "get_current_context", lambda: {"ti": SimpleNamespace(xcom_pull=xcom_pull)})
    assert last_requested(3) == [FIRST, None, SECOND]
    assert last_requested(0) == []
    assert dag.get_task(nightly.RUN).operator_class is nightly.BenchmarkRun


@pytest.mark.parametrize(("attempt", "forgotten"), [(1, []), (2, [0, 2])])
def test_what_a_night_requested_before_it_was_cleared_counts_no_more(monkeypatch, dag, asked, attempt, forgotten):
    """A task that is marked by hand before it begins again would be judged by its earlier run."""
    asked |= {0: FIRST, 1: None, 2: SECOND}
    task_instance = SimpleNamespace(dag_id="nightly", run_id="night", try_number=attempt)
    night = SimpleNamespace(run_after=datetime.now(UTC), run_type=DagRunType.MANUAL)
    context = {"ti": task_instance, "dag_run": night, "params": {"matrix": "nightly"}}
    begin, deleted = dag.get_task("cells").python_callable, []
    monkeypatch.setitem(begin.__globals__, "get_current_context", lambda: context)
    monkeypatch.setattr(nightly, "get_current_context", lambda: context)
    monkeypatch.setattr(XCom, "delete", lambda **what: deleted.append(what))
    assert begin() == nightly.cells("nightly")
    about = {"key": "requested", "task_id": "run", "dag_id": "nightly", "run_id": "night"}
    assert deleted == [about | {"map_index": index} for index in forgotten]


def test_a_matrix_that_is_wrong_fails_with_its_one_line():
    line = r"^matrix: 'no-such' is not usable; allowed: .*nightly, output-log, protections, small$"
    with pytest.raises(AirflowFailException, match=line):
        nightly.cells("no-such")


def ended(dag_run, state):
    event = (DAG_STATE_TRIGGER, {"run_ids": [dag_run], dag_run: state})
    return nightly.BenchmarkRun(task_id="run", run_label="words-3", conf={}).execute_complete({}, event)


def test_a_task_ends_as_its_run_did(publish):
    publish("done", GOOD, run_id="good", dag_run=FIRST)
    publish("done", GOOD, BAD, run_id="bad", dag_run=SECOND)
    assert ended(FIRST, "success") == "good"
    with pytest.raises(AirflowFailException, match=r"utilization: observed 0\.61, expected .*/runs/bad$"):
        ended(SECOND, "failed")


def test_a_good_run_of_a_dag_run_that_failed_is_no_success(publish):
    publish("done", GOOD, run_id="good", dag_run=FIRST)
    with pytest.raises(AirflowFailException, match="the DAG run ended as failed; http"):
        ended(FIRST, "failed")


def resumed(dag_run_state):
    """What a task makes of a failure of the trigger that waits for its DAG run, which is in this state."""
    states = {("benchmark", FIRST): DagRunState(dag_run_state)}
    about = {"dag_id": "nightly", "run_id": "night", "task_id": "run", "map_index": 0, "try_number": 1}
    task_instance = SimpleNamespace(**about, get_dagrun_state=lambda *asked: states[asked])
    task = nightly.BenchmarkRun(task_id="run", run_label="words-3", conf={})
    return task.resume_execution("__fail__", {"error": "Trigger failure"}, {"ti": task_instance})


@pytest.mark.parametrize("state", ["queued", "running"])
def test_a_dag_run_that_goes_on_is_waited_for_anew_if_the_trigger_fails(state):
    with pytest.raises(TaskDeferred) as deferred:
        resumed(state)
    assert deferred.value.method_name == "execute_complete"
    kind, wanted = deferred.value.trigger.serialize()
    assert kind == DAG_STATE_TRIGGER
    assert (wanted["dag_id"], wanted["run_ids"]) == ("benchmark", [FIRST])
    assert set(wanted["states"]) == {"failed", "success"}


def test_a_dag_run_that_has_ended_when_the_trigger_fails_decides_the_task(publish):
    publish("done", GOOD, run_id="good", dag_run=FIRST)
    assert resumed("success") == "good"
    with pytest.raises(AirflowFailException, match="the DAG run ended as failed; http"):
        resumed("failed")


@pytest.mark.parametrize(
    ("said", "told"), [("seed: -1 is not usable", "seed: -1 is not usable"), (None, "it did not begin")]
)
def test_a_task_whose_dag_run_opened_no_run_says_why_and_where_to_look(home, monkeypatch, said, told):
    monkeypatch.setattr(nightly, "refusal", {FIRST: said}.get)
    wanted = rf"^no run came of it \({told}\); http.*/dags/benchmark/runs/{FIRST}$"
    with pytest.raises(AirflowFailException, match=wanted):
        ended(FIRST, "failed")


def test_of_a_dag_run_that_was_cleared_the_run_of_the_last_try_counts(publish):
    publish("failed", run_id="second", error="no disk", dag_run=FIRST, started_ns=2)
    publish("done", GOOD, run_id="first", dag_run=FIRST, started_ns=3)
    publish("done", GOOD, run_id="third", dag_run=FIRST, started_ns=1)  # after the clock was put back
    assert ended(FIRST, "success") == "third"


def test_a_last_try_that_opened_no_run_is_not_answered_by_an_older_one(publish, opened, monkeypatch, events):
    publish("done", GOOD, run_id="older", dag_run=FIRST)
    del opened[FIRST]
    monkeypatch.setattr(nightly, "refusal", {FIRST: "seed: -1 is not usable"}.get)
    with pytest.raises(AirflowFailException, match="no run came of it"):
        ended(FIRST, "failed")
    with pytest.raises(AirflowSkipException):
        nightly.publish(CELLS[:1], events)
    with pytest.raises(AirflowFailException, match="1 of 1 runs are not good: no run came of it"):
        nightly.judge(CELLS[:1])


def test_a_last_try_whose_run_is_not_in_the_store_is_not_answered_by_an_older_one(publish, opened, monkeypatch):
    publish("done", GOOD, run_id="older", dag_run=FIRST)
    opened[FIRST] = "gone"
    monkeypatch.setattr(nightly, "refusal", {}.get)
    with pytest.raises(AirflowFailException, match="no run came of it"):
        ended(FIRST, "failed")


@pytest.mark.parametrize(
    ("state", "run_id", "reason"),
    [
        ("success", "older", None),
        ("failed", None, "seed: -1 is not usable"),
        *((state, None, None) for state in (None, "queued", "running", "skipped", "removed")),
    ],
)
def test_what_begin_left_before_its_dag_run_was_cleared_is_of_an_earlier_try(monkeypatch, state, run_id, reason):
    """What a try has left stays until the next one begins; its state goes with the clearing."""
    left = {"return_value": "older", "error": "seed: -1 is not usable"}

    def get_task_states(dag_id, task_ids, run_ids):
        return {FIRST: {"begin": state}} if (dag_id, task_ids, run_ids) == ("benchmark", ["begin"], [FIRST]) else {}

    monkeypatch.setattr(
        nightly, "get_current_context", lambda: {"ti": SimpleNamespace(get_task_states=get_task_states)}
    )
    monkeypatch.setattr(XCom, "get_one", lambda key, **about: left[key])
    assert (last_opened(FIRST), last_refusal(FIRST)) == (run_id, reason)
    assert (last_opened(SECOND), last_refusal(SECOND)) == (None, None)


def test_one_damaged_run_stops_no_night(publish):
    damaged = publish("done", GOOD, run_id="another", dag_run="another night")
    (damaged.root / "status.json").write_text("{")
    publish("done", GOOD, run_id="good", dag_run=FIRST)
    nightly.judge(CELLS[:1])


@pytest.mark.parametrize("damaged", ["status.json", "tables/verdicts.parquet"])
def test_a_damaged_run_of_a_night_is_told_and_the_others_count(publish, events, damaged):
    run = publish("done", GOOD, run_id="torn", dag_run=FIRST)
    publish("done", GOOD, run_id="good", dag_run=SECOND)
    (run.root / damaged).write_text("{")
    assert "good" in nightly.publish(CELLS, events)
    with pytest.raises(AirflowFailException, match="1 of 2 runs are not good: torn: run torn cannot be read: "):
        nightly.judge(CELLS)


def test_tables_are_published_with_the_runs_that_have_them(publish, events):
    publish("done", GOOD, run_id="one", dag_run=FIRST)
    publish("failed", run_id="two", error="no disk", dag_run=SECOND)
    publish("done", GOOD, run_id="other", dag_run="manual__1")
    assert nightly.publish(CELLS, events) == ["one"]
    assert set(events) == set(RESULT_TABLES.values())
    assert events[RESULT_TABLES["verdicts"]].extra == {"runs": ["one"]}
    assert events[RESULT_TABLES["ledger"]].extra == {"runs": []}


@pytest.mark.parametrize("cells", [CELLS, [], None])
def test_without_a_run_nothing_is_published(home, events, cells):
    with pytest.raises(AirflowSkipException):
        nightly.publish(cells, events)
    assert not events


def test_a_night_of_good_runs_is_good(publish, caplog):
    for number, dag_run in enumerate((FIRST, SECOND)):
        publish("done", GOOD, run_id=f"run-{number}", dag_run=dag_run)
    with caplog.at_level(logging.INFO, logger="aftershock.airflow.nightly"):
        nightly.judge(CELLS)
    assert caplog.messages == ["2 of 2 runs are good"]


def test_a_night_says_what_each_bad_run_has_against_it(publish, monkeypatch):
    monkeypatch.setattr(nightly, "refusal", {SECOND: "seed: -1 is not usable"}.get)
    publish("failed", run_id="one", error="deploy: no broker", dag_run=FIRST)
    with pytest.raises(AirflowFailException) as failed:
        nightly.judge(CELLS)
    assert str(failed.value).startswith("2 of 2 runs are not good: one: run one failed: deploy: no broker; http")
    assert f"seed: -1 is not usable); http://127.0.0.1:8080/dags/benchmark/runs/{SECOND}" in str(failed.value)


def test_a_night_without_a_matrix_is_no_good_one(home):
    with pytest.raises(AirflowFailException, match="the matrix could not be read"):
        nightly.judge(None)


def test_a_night_says_of_which_cell_no_run_was_requested(publish, asked):
    publish("done", GOOD, run_id="good", dag_run=FIRST)
    del asked[1]
    with pytest.raises(AirflowFailException, match="1 of 2 runs are not good: words-9: its task ended before it req"):
        nightly.judge(CELLS)
