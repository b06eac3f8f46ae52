"""A task that is marked as ended by hand ends the run that it waits for, by the listeners as Airflow calls them."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from threading import Event, Thread
from types import SimpleNamespace

import pytest
from airflow.listeners.listener import get_listener_manager

from aftershock.airflow.dag_run_ids import Request
from aftershock.watch import live
from plugins import ended_by_hand
from plugins.aftershock_plugin import AftershockPlugin
from results.runs import store
from tests.e2e.example_run import write_live_run

NIGHT = "manual__2026-11-29T02:00:00+00:00"
REQUESTED = Request("nightly", NIGHT, "run", 0, 1, "wordcount-7")
CLEARED = "cleared-by-a-person"


@pytest.fixture
def listeners(airflow_home) -> Iterator[object]:
    """Airflow's hooks, with our listeners and no others, such as those of its examples."""
    manager = get_listener_manager()
    manager.clear()
    for each in AftershockPlugin.listeners:
        manager.add_listener(each)
    yield manager.hook
    manager.clear()


@pytest.fixture
def ended(home, monkeypatch) -> list[str]:
    """The runs that were ended, of some that are live: one of a night, others that the marked task did not request."""
    known = {
        "of-night": REQUESTED,
        "of-figure": replace(REQUESTED, dag_id="reproduce"),
        "of-another-night": replace(REQUESTED, dag_run=f"another-{NIGHT}"),
        "of-another-task": replace(REQUESTED, task_id="run_then"),
        "of-another-cell": replace(REQUESTED, map_index=1),
        "of-nobody": None,
        CLEARED: replace(REQUESTED, label="cleared-1"),
    }
    for run_id, request in known.items():
        run = write_live_run(run_id)
        about = {"dag_run": request and request.id, "attempt": 2 if run_id == CLEARED else 1}
        store.write_json(run.root / "status.json", run.status().to_json() | about)
    found: list[str] = []
    monkeypatch.setattr(live, "end", lambda run_id: found.append(run_id) or f"{run_id} was aborted")
    return found


def task(dag_id: str = "nightly", map_index: int = 0) -> SimpleNamespace:
    return SimpleNamespace(dag_id=dag_id, task_id="run", run_id=NIGHT, map_index=map_index, try_number=2)


@pytest.mark.parametrize(("dag_id", "run_id"), [("nightly", "of-night"), ("reproduce", "of-figure")])
def test_the_run_of_a_task_that_was_marked_as_failed_is_ended(listeners, ended, dag_id, run_id):
    listeners.on_task_instance_failed(previous_state=None, task_instance=task(dag_id), error="set by hand")
    listeners.before_stopping(component=None)
    assert ended == [run_id]


@pytest.mark.parametrize("mark", ["success", "skipped"])
def test_the_run_of_a_task_that_was_marked_as_a_success_or_skipped_is_ended(listeners, ended, mark):
    getattr(listeners, f"on_task_instance_{mark}")(previous_state=None, task_instance=task())
    listeners.before_stopping(component=None)
    assert ended == ["of-night"]


def test_the_transaction_of_airflow_does_not_wait_for_the_abort(listeners, ended, monkeypatch):
    """The end of a task's process waits for that: no thread outlives it."""
    committed = Event()

    def end(run_id):
        assert committed.wait(10), "Airflow's transaction waits for the abort"
        ended.append(run_id)
        return f"{run_id} was aborted"

    monkeypatch.setattr(live, "end", end)
    marked = {"previous_state": None, "task_instance": task(), "error": "set by hand"}
    request = Thread(target=listeners.on_task_instance_failed, kwargs=marked, daemon=True)
    request.start()
    request.join(5)
    assert not request.is_alive()
    committed.set()
    listeners.before_stopping(component=None)
    assert ended == ["of-night"]


def test_a_process_does_not_wait_without_end_before_it_stops(listeners, ended, monkeypatch):
    let_go = Event()
    monkeypatch.setattr(live, "end", lambda run_id: let_go.wait(60) and run_id)
    monkeypatch.setattr(ended_by_hand, "STOPPING_LIMIT_S", 0.1)
    listeners.on_task_instance_success(previous_state=None, task_instance=task())
    (abort,) = (each for each in threading.enumerate() if each.name == ended_by_hand.THREAD)
    listeners.before_stopping(component=None)
    assert abort.is_alive()
    let_go.set()
    abort.join()


@pytest.mark.parametrize(("dag_id", "map_index"), [("benchmark", 0), ("nightly", 2), ("nightly", -1)])
def test_other_tasks_that_end_cost_no_run(listeners, ended, dag_id, map_index):
    marked = {"previous_state": None, "task_instance": task(dag_id, map_index)}
    listeners.on_task_instance_failed(**marked, error=None)
    listeners.on_task_instance_success(**marked)
    listeners.on_task_instance_skipped(**marked)
    listeners.before_stopping(component=None)
    assert ended == []
