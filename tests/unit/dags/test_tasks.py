"""What tasks make of a step's outcome, of another task's failure, and of verdicts."""

import re
import sys
from types import SimpleNamespace

import pytest
from airflow.sdk.exceptions import AirflowFailException

import aftershock.run
from aftershock.airflow import orchestrate, tasks, trigger_form
from aftershock.run import lease
from experiments import spec
from experiments.errors import EnvironmentFailure
from results.runs import step_times, store
from results.summary.judged_checks import JudgedCheck


@pytest.fixture
def steps(monkeypatch):
    module = SimpleNamespace()
    monkeypatch.setitem(sys.modules, "aftershock.run.steps", module)
    monkeypatch.setattr(aftershock.run, "steps", module, raising=False)
    return module


class TaskInstance:
    """The part of Airflow's task instance that the tasks use, over plain dicts."""

    dag_id, run_id = "benchmark", "manual"

    def __init__(self, states, task_id="teardown"):
        self.states, self.task_id, self.pushed = states, task_id, {}

    def get_task_states(self, dag_id, run_ids):
        return {self.run_id: self.states}

    def xcom_push(self, key, value):
        self.pushed[self.task_id, key] = value

    def xcom_pull(self, task_ids, key):
        return self.pushed.get((task_ids, key))


def test_begin_hands_on_the_folded_experiment_the_run_id_and_the_dag_run_with_its_try(steps, home):
    steps.begin = lambda document, *rest: (spec.validate(document), *rest)
    params = trigger_form.flatten(spec.load())
    assert tasks.begin(params | {"run_id": "mine"}, "manual") == (spec.load(), "mine", "manual", 1)
    assert tasks.begin(params | {"run_id": None}, "scheduled", 2) == (spec.load(), None, "scheduled", 2)


def test_a_run_on_the_command_line_has_the_commands_experiment_and_its_dag_run_is_not_noted(steps, home, monkeypatch):
    monkeypatch.setattr(orchestrate, "experiment_of", lambda run_id: {"name": f"experiment-of-{run_id}"})
    steps.begin = lambda document, run_id, dag_run=None, attempt=None: (document["name"], run_id, dag_run)
    params = trigger_form.flatten(spec.load()) | {"run_id": "mine"}
    with lease.lease(store.live_directory("mine")):
        assert tasks.begin(params, "manual") == ("experiment-of-mine", "mine", None)
    assert tasks.begin(params, "manual") == ("wordcount", "mine", "manual")


def test_a_dag_run_that_is_cleared_amid_its_run_ends_that_run_before_it_begins_another(steps, home):
    """Its teardown knows the new run only."""
    happened = []
    steps.begin = lambda document, *rest: happened.append("begun") or "new"
    steps.teardown = lambda run_id, error: happened.append((run_id, error))
    for run_id, dag_run in (("cleared", "manual"), ("of-another", "scheduled"), ("of-nobody", None)):
        about = {"run_id": run_id, "state": "running", "started_ns": 1, "dag_run": dag_run}
        store.write_json(store.live(run_id).root / "status.json", about)
    assert tasks.begin(trigger_form.flatten(spec.load()), "manual") == "new"
    assert happened == [("cleared", "its DAG run was cleared"), "begun"]


def test_begin_tells_how_long_a_run_of_the_experiment_as_filled_in_takes(steps, home, caplog):
    steps.begin = lambda document, *rest: "words-7"
    params = trigger_form.flatten(spec.load()) | {"window_s": 1200}
    with caplog.at_level("INFO", logger="aftershock.airflow.tasks"):
        tasks.begin(params, "manual")
    whole_s = step_times.whole_s(spec.load(overrides=["window_s=1200"]))
    assert caplog.messages == [f"run words-7 takes about {whole_s / 60:.0f} min, 1200 s of them measured"]


@pytest.fixture
def begun(steps, home):
    """The steps of run-1, which has begun."""
    store.write_json(store.live("run-1").root / "status.json", {"run_id": "run-1", "state": "running", "started_ns": 1})
    return steps


def test_a_known_error_fails_the_task_with_its_one_line(begun):
    def deploy(run_id):
        raise EnvironmentFailure(f"broker of {run_id} gone", "start again")

    begun.deploy = deploy
    with pytest.raises(AirflowFailException, match=r"^broker of run-1 gone; start again$"):
        tasks.run_step("deploy", "run-1")


def test_what_a_step_returns_is_not_given_to_airflow_which_would_show_it(begun):
    begun.provision = lambda run_id: {"run_id": run_id, "token": "s1-0123456789abcdef"}
    assert tasks.run_step("provision", "run-1") is None


def test_a_step_that_is_cleared_after_the_end_of_its_run_says_that_the_run_is_over(steps, home):
    steps.deploy = lambda run_id: pytest.fail("there is no cluster")
    with pytest.raises(AirflowFailException, match=r"^run run-1 is over; clear the whole DAG run, or trigger the DAG"):
        tasks.run_step("deploy", "run-1")


def test_teardown_hears_which_task_failed_and_why(steps):
    steps.teardown = lambda run_id, error: (run_id, error)
    states = {"begin": "success", "tabulate": "failed", "predict": "upstream_failed"}
    ti = TaskInstance(states, task_id="tabulate")
    tasks.note_error({"ti": ti, "exception": EnvironmentFailure("disk full", "free some\nspace")})
    assert tasks.tear_down("run-1", ti) == ("run-1", "tabulate: disk full; free some space")


def test_teardown_names_a_task_that_died_without_a_word(steps):
    steps.teardown = lambda run_id, error: error
    assert tasks.tear_down("run-1", TaskInstance({"collect": "failed"})).startswith("collect: ended without")


def test_teardown_of_a_good_run_has_no_error(steps):
    steps.teardown = lambda run_id, error: error
    states = {"begin": "success", **dict.fromkeys(step_times.STEPS, "success"), "teardown": "running", "judge": None}
    assert tasks.tear_down("run-1", TaskInstance(states)) is None


@pytest.mark.parametrize("observed", ["success", "skipped"])
def test_a_run_whose_dag_run_was_ended_by_hand_between_two_tasks_is_not_good(steps, observed):
    """Airflow then skips what was to come, but for teardowns; no task has failed."""
    steps.teardown = lambda run_id, error: error
    states = {"arm_faults": "success", "observe": observed, "stop": "skipped", "teardown": "running", "judge": None}
    first = "stop" if observed == "success" else "observe"
    told = tasks.tear_down("run-1", TaskInstance(states))
    assert told == f"{first}: did not happen (skipped): the DAG run was ended by hand"


def test_a_teardown_that_is_repeated_publishes_a_good_run_as_done(steps):
    """While it had failed, `judge` found no finished run. Who clears the teardown alone leaves that state."""
    steps.teardown = lambda run_id, error: error
    states = {**dict.fromkeys(step_times.STEPS, "success"), "teardown": "running", "judge": "failed"}
    assert tasks.tear_down("run-1", TaskInstance(states)) is None


def test_judge_accepts_pass_and_unknown(publish, caplog):
    publish("done", ("ledger", "pass", "240", "240"), ("utilization", "unknown", None, "0.8"))
    with caplog.at_level("INFO", logger="aftershock.airflow.tasks"):
        tasks.judge("run-1")
    unknown, passed = caplog.messages
    assert unknown.startswith("unknown utilization")
    assert passed == "1 of 2 checks passed"


def test_of_a_check_that_could_not_be_evaluated_the_reason_is_told():
    verdict = {"check": "utilization", "verdict": "unknown", "observed": None, "expected": None, "detail": "3 faults"}
    assert JudgedCheck.of(verdict).sentence == "utilization: 3 faults"
    assert JudgedCheck.of(verdict | {"verdict": "fail"}).sentence == "utilization: observed None, expected None"


def test_judge_names_check_observed_and_expected_of_what_failed(publish):
    publish("done", ("ledger", "pass", "240", "240"), ("utilization", "fail", "0.61", "0.70 to 0.76"))
    with pytest.raises(
        AirflowFailException, match=r"1 of 2 checks failed: utilization: observed 0\.61, expected 0\.70 to"
    ):
        tasks.judge("run-1")


def test_judge_shows_the_way_to_the_page_of_a_run_that_airflow_serves(publish, monkeypatch):
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://airflow.example.org/af/")
    publish("done", ("ledger", "fail", "239", "240"), dag_run="manual__1")
    address = "https://airflow.example.org/af/plugin/aftershock/aftershock/runs/run-1"
    with pytest.raises(AirflowFailException, match=rf"observed 239, expected 240; {re.escape(address)}$"):
        tasks.judge("run-1")


def test_judge_fails_a_failed_run_though_no_verdict_failed(publish):
    publish("failed", ("ledger", "pass", "240", "240"), error="report: disk full")
    with pytest.raises(AirflowFailException, match="run run-1 failed: report: disk full"):
        tasks.judge("run-1")
