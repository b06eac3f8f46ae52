"""Where a run is: which steps are done, how long they took, what is awaited, and what is probably left."""

import json
import os
from contextlib import suppress

import pytest

from aftershock.run import step_notes
from aftershock.run.step_progress import RunProgress, StepProgress, StepState, learn_from, run_progress
from chaos.events import ABORT_FILE
from experiments import spec
from experiments.errors import EnvironmentFailure
from experiments.workloads.catalogue import OwnJobSpec
from results.runs import step_times, store
from tests.e2e.example_run import LIVE

S = 10**9


@pytest.fixture
def clock(monkeypatch):
    """The time that notes are written at [s], as a list of one that a test changes."""
    now = [1000]
    monkeypatch.setattr(step_notes.time, "time_ns", lambda: now[0] * S)
    return now


@pytest.mark.parametrize(
    "damaged",
    [
        {"began_ns": {"provision": "soon"}, "awaited": None},
        {"began_ns": {"provision": None}, "awaited": None},
        {"began_ns": {"provision": 1}, "awaited": {"what": "x", "since_ns": "soon", "usual_s": None}},
        {"began_ns": {"provision": 1}, "awaited": {"what": "x", "since_ns": 1, "usual_s": []}},
        {"began_ns": {"provision": 1}, "awaited": "soon"},
        {"awaited": None},
        [],
    ],
)
def test_notes_of_other_types_count_as_none(setting_up, damaged):
    step_notes.begin(LIVE, "provision")
    store.write_json(store.live_directory(LIVE) / "steps.json", damaged)
    assert step_notes.read(LIVE) == step_notes.StepNotes({})
    assert {step.state for step in run_progress(setting_up).steps} == {StepState.TO_COME}


def test_before_the_first_step_everything_is_to_come(setting_up):
    progress = run_progress(setting_up)
    assert {step.state for step in progress.steps} == {StepState.TO_COME}
    assert [step.name for step in progress.steps] == list(step_times.STEPS)
    assert progress.left_s == sum(step.usual_s for step in progress.steps)


def test_a_step_ends_when_the_next_begins_and_the_current_one_counts_down(setting_up, clock):
    step_notes.begin(LIVE, "provision")
    clock[0] += 14
    step_notes.begin(LIVE, "deploy")
    progress = run_progress(setting_up, (clock[0] + 30) * S)
    assert [(step.state, step.took_s) for step in progress.steps[:3]] == [
        (StepState.DONE, 14.0),
        (StepState.GOING_ON, 30.0),
        (StepState.TO_COME, None),
    ]
    assert (progress.current.name, progress.number) == ("deploy", 2)
    to_come_s = sum(step.usual_s for step in progress.steps[2:])
    assert progress.left_s == pytest.approx(progress.current.usual_s - 30 + to_come_s)


def test_a_step_that_takes_longer_than_usual_leaves_what_is_to_come(setting_up, clock):
    step_notes.begin(LIVE, "provision")
    progress = run_progress(setting_up, (clock[0] + 10_000) * S)
    assert progress.left_s == pytest.approx(sum(step.usual_s for step in progress.steps[1:]))


def test_a_step_is_late_when_it_takes_much_longer_than_usual(setting_up, clock):
    step_notes.begin(LIVE, "provision")
    usual_s = step_times.usual_s(setting_up.experiment)["provision"]
    looks_s = (usual_s, 1.4 * usual_s, 1.6 * usual_s)
    found = [run_progress(setting_up, round((clock[0] + seconds) * S)).is_late for seconds in looks_s]
    assert found == [False, False, True]


@pytest.mark.parametrize(("seconds", "words"), [(4, "a few seconds"), (42, "about 40 s"), (100, "about 2 min")])
def test_an_estimate_is_told_no_finer_than_it_is(seconds, words):
    assert step_times.in_words(seconds) == words
    assert RunProgress((_collecting(20.0),), None, 0.0, seconds).left == words


def _collecting(took_s):
    return StepProgress("collect", "save input and output", StepState.GOING_ON, took_s, usual_s=30.0)


@pytest.mark.parametrize(("seconds", "words"), [(4, "at least a few seconds"), (42, "at least 40 s")])
def test_what_is_left_is_a_lower_limit_once_a_step_takes_longer_than_usual(seconds, words):
    """It stands still until the step ends."""
    assert RunProgress((_collecting(31.0),), None, 0.0, seconds).left == words


@pytest.mark.parametrize(
    ("oracle", "does"),
    [("oracle.py", "save input and output, compute the exact output"), (None, "save input and output")],
)
def test_the_exact_output_is_promised_only_if_there_is_an_oracle(oracle, does, setting_up, monkeypatch):
    own = spec.Experiment().model_copy(update={"workload": OwnJobSpec.model_construct(oracle=oracle)})
    monkeypatch.setitem(vars(setting_up), "experiment", own)
    (collect,) = (step for step in run_progress(setting_up).steps if step.name == "collect")
    assert collect.does == does


def test_the_window_is_a_step_of_its_own(live_run, clock):
    opened_ns = live_run.armed_plan.window_start_ns
    clock[0] = opened_ns // S - 10
    step_notes.begin(LIVE, "arm_faults")
    progress = run_progress(live_run, opened_ns + 40 * S)
    assert (progress.current.name, progress.current.took_s) == ("observe", 40.0)
    assert progress.current.usual_s == live_run.experiment.window_s
    assert run_progress(live_run, opened_ns - S).current.name == "arm_faults"


def test_what_a_step_waits_for_is_told_while_it_waits(live_run, clock):
    told = []

    def met():
        told.append(run_progress(live_run, (clock[0] + 3) * S))
        return True

    live_run.wait("the query to start", met, set(), 60.0, 20.0)
    assert (told[0].awaited, told[0].awaited_s) == ("the query to start", 3.0)
    assert run_progress(live_run).awaited is None


def test_a_wait_that_fails_is_no_longer_told(live_run):
    def met():
        raise EnvironmentFailure("gone", "again")

    with pytest.raises(EnvironmentFailure):
        live_run.wait("the broker", met, set(), 60.0)
    assert run_progress(live_run).awaited is None


def test_the_next_run_of_the_same_kind_is_estimated_by_the_last(setting_up, clock):
    for step, seconds in (("provision", 33), ("deploy", 71), ("start_load", 5)):
        step_notes.begin(LIVE, step)
        clock[0] += seconds
    learn_from(setting_up)
    usual_s = step_times.usual_s(setting_up.experiment)
    assert (usual_s["provision"], usual_s["deploy"]) == (33.0, 71.0)
    other = spec.load("dataflow-q12")
    assert step_times.usual_s(other)["provision"] != 33.0
    assert step_times.usual_s(setting_up.experiment)["start_load"] != 5.0, "it has not ended"


def test_the_estimate_of_a_calibration_knows_the_interval():
    """Each of two rounds of Spark's calibration measures two batches of an interval; the testbed's parts have 10 s."""
    usual, slow = (spec.load(overrides=[f"engine.checkpoint_interval_s={each}"]) for each in (8, 60))
    assert (step_times.calibration_s(usual), step_times.calibration_s(slow)) == (60.0, 268.0)
    assert step_times.usual_s(slow)["deploy"] - step_times.usual_s(usual)["deploy"] == 208.0
    assert step_times.calibration_s(spec.load("dataflow-q12", ["load.mode=saturating"])) == 60.0
    assert step_times.calibration_s(spec.load(overrides=["load.mode=rate"])) == 0.0


def test_runs_with_another_interval_are_estimated_by_what_waits_for_no_checkpoint(home):
    short, long = (spec.load(overrides=[f"engine.checkpoint_interval_s={each}"]) for each in (8, 60))
    unknown = step_times.usual_s(long)
    step_times.learn(short, {"provision": 0, "deploy": 33 * S, "start_load": 104 * S})
    assert step_times.usual_s(short)["deploy"] == 71.0
    assert step_times.usual_s(long) == unknown | {"provision": 33.0}
    step_times.learn(long, {"provision": 0, "deploy": 44 * S})  # it did not get further
    assert step_times.usual_s(long) == unknown | {"provision": 44.0}
    assert step_times.usual_s(short)["provision"] == 44.0
    kinds = json.loads((store.home() / "step-times.json").read_text())
    assert len(kinds) == 1, "the file grows with every interval"


def test_runs_with_many_more_records_are_estimated_by_what_reads_none(home):
    few, some, many = (spec.load("dataflow-q12", [f"load.rate={rate}"]) for rate in (5_000, 8_000, 100_000))
    unknown = step_times.usual_s(many)
    assert unknown["collect"] > step_times.usual_s(few)["collect"] + 30
    step_times.learn(few, {"provision": 0, "deploy": 33 * S, "collect": 40 * S, "tabulate": 51 * S, "predict": 99 * S})
    assert step_times.usual_s(many) == unknown | {"provision": 33.0, "deploy": 7.0}
    assert [step_times.usual_s(some)[step] for step in ("collect", "tabulate")] == [11.0, 48.0]


def test_if_only_the_run_finds_its_load_a_longer_window_has_more_records_to_read(home):
    short, long = (spec.load(overrides=[f"window_s={window_s}"]) for window_s in (100, 400))
    step_times.learn(short, {"collect": 0, "tabulate": 130 * S, "predict": 150 * S})
    of_short, of_long = ([step_times.usual_s(each)[step] for step in ("collect", "tabulate")] for each in (short, long))
    assert (of_short, of_long) == ([130.0, 20.0], [30.0 + 4 * 100.0, 20.0])
    step_times.learn(long, {"provision": 0, "deploy": 44 * S})  # it did not get further
    assert step_times.usual_s(short)["collect"] == 130.0


def test_several_runs_take_as_long_as_all_their_steps(home):
    """A run with few records is not estimated by one of another kind that had many."""
    words, q12 = spec.load("wordcount"), spec.load("dataflow-q12")
    before = step_times.whole_s(q12)
    step_times.learn(words, {"collect": 0, "tabulate": 900 * S})
    assert step_times.whole_s(words) > 900 + words.window_s
    assert step_times.whole_s(q12) == before
    assert step_times.whole_s(words, q12) == step_times.whole_s(words) + before
    assert step_times.whole_s() == 0


@pytest.mark.parametrize("damage", ["[1]", "{", '{"KIND": {"deploy": "x"}}'])
def test_damaged_notes_make_estimates_worse_and_nothing_else(setting_up, damage):
    damage = damage.replace("KIND", step_times._kind(setting_up.experiment))
    (store.home() / "step-times.json").write_text(damage)
    (store.live_directory(LIVE) / "steps.json").write_text(damage)
    progress = run_progress(setting_up)
    assert progress.left_s > setting_up.experiment.window_s
    learn_from(setting_up)


def test_nothing_is_noted_of_a_run_that_is_gone(home):
    step_notes.begin("gone", "teardown")
    assert not store.live_directory("gone").exists()


def carry_out(clock, *steps):
    """Steps that end without an error, each after 10 s."""
    for step in steps:
        with step_notes.going_on(LIVE, step):
            clock[0] += 10


def fail(clock, step):
    """A step that ends with an error, after 10 s."""
    with suppress(EnvironmentFailure), step_notes.going_on(LIVE, step):
        clock[0] += 10
        raise EnvironmentFailure("gone", "again")


def mark_aborted(at_s):
    path = store.live(LIVE).raw / ABORT_FILE
    path.touch()
    os.utime(path, ns=(at_s * S, at_s * S))


def states_of(progress):
    """The steps that are not to come, by their states."""
    by_state = {}
    for step in progress.steps:
        by_state.setdefault(step.state, []).append(step.name)
    return by_state


def test_in_the_teardown_of_a_failed_run_what_never_began_is_not_done(setting_up, clock):
    carry_out(clock, "provision")
    fail(clock, "deploy")
    step_notes.begin(LIVE, "teardown")
    progress = run_progress(setting_up, (clock[0] + 1) * S)
    names = list(step_times.STEPS)
    assert states_of(progress) == {
        StepState.DONE: ["provision"],
        StepState.CUT_SHORT: ["deploy"],
        StepState.LEFT_OUT: names[2:-1],
        StepState.GOING_ON: ["teardown"],
    }
    assert progress.steps[1].took_s == 10.0
    assert progress.left_s == progress.current.usual_s - 1


def test_in_the_teardown_of_a_good_run_everything_is_done(live_run, clock):
    clock[0] = live_run.armed_plan.window_start_ns // S - 40
    carry_out(clock, "provision", "deploy", "start_load", "arm_faults")
    clock[0] = live_run.armed_plan.window_end_ns // S + 1
    carry_out(clock, "stop", "collect", "tabulate", "predict", "validate", "report")
    step_notes.begin(LIVE, "teardown")
    found = states_of(run_progress(live_run, (clock[0] + 1) * S))
    assert found == {StepState.DONE: list(step_times.STEPS)[:-1], StepState.GOING_ON: ["teardown"]}


def test_a_run_that_was_aborted_in_its_window_measures_no_longer(live_run, clock):
    opened_s = live_run.armed_plan.window_start_ns // S
    clock[0] = opened_s - 10
    carry_out(clock, "arm_faults")
    mark_aborted(opened_s + 20)
    progress = run_progress(live_run, (opened_s + 23) * S)
    assert (progress.current.name, progress.steps[-1].state) == ("observe", StepState.TO_COME)
    assert states_of(progress)[StepState.LEFT_OUT][-1] == "report"
    assert progress.left_s == progress.steps[-1].usual_s
    clock[0] = opened_s + 25
    step_notes.begin(LIVE, "teardown")
    progress = run_progress(live_run, (opened_s + 26) * S)
    assert states_of(progress)[StepState.CUT_SHORT] == ["observe"]
    assert progress.ends_ns == (opened_s + 20) * S


def test_a_window_that_would_have_opened_after_the_abort_is_left_out(live_run, clock):
    opened_s = live_run.armed_plan.window_start_ns // S
    clock[0] = opened_s - 12
    fail(clock, "arm_faults")
    mark_aborted(opened_s - 3)
    assert "observe" in states_of(run_progress(live_run, (opened_s + 5) * S))[StepState.LEFT_OUT]


def test_a_window_that_was_over_before_the_abort_is_done(live_run, clock):
    closed_s = live_run.armed_plan.window_end_ns // S + 1
    mark_aborted(closed_s + 5)
    clock[0] = closed_s + 6
    step_notes.begin(LIVE, "teardown")
    found = states_of(run_progress(live_run, (closed_s + 7) * S))
    assert (found[StepState.DONE], StepState.CUT_SHORT in found) == (["observe"], False)


def test_a_step_that_an_abort_cannot_interrupt_comes_to_its_end(setting_up, clock):
    began_s = clock[0]
    step_notes.begin(LIVE, "provision")
    mark_aborted(began_s + 1)
    progress = run_progress(setting_up, (began_s + 2) * S)
    assert progress.left_s == progress.current.usual_s - 2 + progress.steps[-1].usual_s
    carry_out(clock, "provision")
    step_notes.begin(LIVE, "teardown")
    assert states_of(run_progress(setting_up, clock[0] * S))[StepState.DONE] == ["provision"]
