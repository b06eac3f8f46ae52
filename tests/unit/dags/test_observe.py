"""The deferrable wait: what it hands to Airflow, and what it does with what a run says of itself."""

import asyncio
import errno
import logging
import os
import re
import sys
from types import SimpleNamespace

import pytest
from airflow.sdk.exceptions import AirflowFailException, TaskDeferred
from airflow.sdk.module_loading import import_string

import aftershock.run
from aftershock.airflow.observe import MOST_FAILURES, Observe, RunEnds
from aftershock.run.progress import Progress
from experiments.errors import EnvironmentFailure
from results.damage import Damaged
from tests.e2e.example_run import write_live_run

ENDED = Progress("done", 0, None)


@pytest.fixture
def run_says(monkeypatch):
    """Let the run's progress be the given answers, one after the other."""

    def answers(*given):
        left = iter(given)

        def progress(run_id):
            answer = next(left)
            if isinstance(answer, Exception):
                raise answer
            return answer

        module = SimpleNamespace(progress=progress)
        monkeypatch.setitem(sys.modules, "aftershock.run.progress", module)
        monkeypatch.setattr(aftershock.run, "progress", module, raising=False)

    return answers


def fire(trigger):
    async def first():
        return await anext(trigger.run())

    return asyncio.run(first()).payload


def test_trigger_can_be_rebuilt_from_what_airflow_stores():
    path, fields = RunEnds("run-1", 2.5).serialize()
    again = import_string(path)(**fields)
    assert isinstance(again, RunEnds)
    assert again.serialize() == (path, {"run_id": "run-1", "poll_interval_s": 2.5})


def test_operator_defers_to_the_trigger():
    with pytest.raises(TaskDeferred) as deferred:
        Observe(task_id="observe", experiment_run_id="run-1", poll_interval_s=2).execute({})
    assert deferred.value.trigger.serialize()[1] == {"run_id": "run-1", "poll_interval_s": 2}
    assert deferred.value.method_name == "resume"


def test_trigger_waits_for_the_end_and_logs_each_new_line_once(run_says, caplog):
    run_says(Progress("2 s left", 2, None), Progress("2 s left", 2, None), Progress("1 s left", 1, None), ENDED)
    with caplog.at_level(logging.INFO, logger="aftershock.airflow.observe"):
        assert fire(RunEnds("run-1", 0)) == {"error": None}
    assert caplog.messages == ["2 s left", "1 s left", "done"]


def test_the_last_look_is_at_the_end_of_the_window(run_says, monkeypatch):
    slept = []

    async def sleep(seconds):
        slept.append(seconds)

    run_says(Progress("early", 12.0, None), Progress("late", 1.5, None), ENDED)
    monkeypatch.setattr(asyncio, "sleep", sleep)
    assert fire(RunEnds("run-1", 5.0)) == {"error": None}
    assert slept == [5.0, 1.5]


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (Progress("gone", 9, "the query driver is gone"), "the query driver is gone"),
        (EnvironmentFailure("no live directory", "start again"), "no live directory; start again"),
        (
            FileNotFoundError("/home/live/run-1/result/raw/plan.json"),
            "run run-1 is gone, or damaged (FileNotFoundError: /home/live/run-1/result/raw/plan.json);"
            " look whether it was ended by hand, and run again",
        ),
        (
            KeyError("window_start_ns"),
            "run run-1 is gone, or damaged (KeyError: 'window_start_ns');"
            " look whether it was ended by hand, and run again",
        ),
    ],
)
def test_an_error_of_the_run_ends_the_wait_and_fails_the_task(home, run_says, answer, error):
    run_says(Progress("fine", 9, None), answer)
    event = fire(RunEnds("run-1", 0))
    assert event == {"error": error}
    with pytest.raises(AirflowFailException, match=re.escape(error)):
        Observe(task_id="observe", experiment_run_id="run-1").resume({}, event)


TOO_MANY = OSError(errno.EMFILE, os.strerror(errno.EMFILE))
UNREAD = Damaged("", "plan.json", "it cannot be read (Too many open files)")


@pytest.mark.parametrize("failure", [TOO_MANY, UNREAD, EnvironmentFailure("no answer from gateway", "look at it")])
def test_what_may_pass_ends_no_run_that_is_still_there(home, run_says, caplog, failure):
    """Once more than in a row are allowed, but never in a row."""
    write_live_run("run-1")
    most = MOST_FAILURES - 1
    run_says(*[failure] * most, Progress("fine", 9, None), *[failure] * most, ENDED)
    with caplog.at_level(logging.WARNING, logger="aftershock.airflow.observe"):
        assert fire(RunEnds("run-1", 0)) == {"error": None}
    assert len(caplog.messages) == 2 * most


def test_what_does_not_pass_ends_the_wait(home, run_says):
    write_live_run("run-1")
    run_says(*[TOO_MANY] * MOST_FAILURES)
    assert "OSError: [Errno 24] Too many open files" in fire(RunEnds("run-1", 0))["error"]


def test_a_run_that_holds_what_cannot_be_used_is_not_looked_at_again(home, run_says):
    write_live_run("run-1")
    run_says(KeyError("window_start_ns"))
    assert "KeyError" in fire(RunEnds("run-1", 0))["error"]
