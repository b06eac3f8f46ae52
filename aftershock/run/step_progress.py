"""The progress of a live run by step, with the time that is left and what the current step waits for."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum

from aftershock.run import step_notes
from aftershock.run.live_run import UNREADABLE, LiveRun
from aftershock.run.step_notes import Awaited
from experiments.errors import AftershockError
from experiments.spec import Experiment
from results.runs import step_times

MUCH_LONGER = 1.5  # times the usual time of a step
LAST = "teardown"
DEAF_STEPS = frozenset({"provision", "collect", "tabulate", "predict", "validate", "report"})  # wait, and look, nowhere


class StepState(StrEnum):
    """What has become of a step. The end of a run cuts a step short that goes on, and leaves out what was to come."""

    DONE = "done"
    GOING_ON = "going on"
    TO_COME = "to come"
    CUT_SHORT = "cut short"
    LEFT_OUT = "left out"


@dataclass(frozen=True)
class StepProgress:
    """A step of a run. `took_s` is how long it took, or has been going on [s]; None if it has not begun."""

    name: str
    does: str
    state: StepState
    took_s: float | None
    usual_s: float


@dataclass(frozen=True)
class RunProgress:
    """All steps of a run in their order, what the current one waits for and since when [s], and what is left [s].

    `left_s` is an estimate. A step that takes longer than usual counts as if it ended now.
    `ends_ns` is when an abort or the teardown made an end of it [ns UTC]; None while it goes on.
    """

    steps: tuple[StepProgress, ...]
    awaited: str | None
    awaited_s: float
    left_s: float
    ends_ns: int | None = None

    @property
    def current(self) -> StepProgress:
        """The step that goes on, or else the first one."""
        return next((step for step in self.steps if step.state is StepState.GOING_ON), self.steps[0])

    @property
    def number(self) -> int:
        """The position of the current step, from 1."""
        return self.steps.index(self.current) + 1

    @property
    def is_late(self) -> bool:
        """Whether the current step takes much longer than usual."""
        return (self.current.took_s or 0.0) > MUCH_LONGER * self.current.usual_s

    @property
    def left(self) -> str:
        """What is left of the run, in words; only a lower limit once the current step takes longer than usual."""
        words = step_times.in_words(self.left_s)
        is_over = self.current.took_s is not None and self.current.took_s > self.current.usual_s
        return f"at least {words.removeprefix('about ')}" if is_over else words


def run_progress(live: LiveRun, now_ns: int | None = None) -> RunProgress:
    """Where the run is. Raises what reading its files raises: `FileNotFoundError` if it is torn down meanwhile."""
    now_ns = time.time_ns() if now_ns is None else now_ns
    notes = step_notes.read(live.run_id)
    ends_ns = min(filter(None, [live.aborted_ns, notes.began_ns.get(LAST)]), default=None)
    began_ns = _began(live, notes.began_ns, now_ns if ends_ns is None else ends_ns)
    steps = tuple(_steps(live.experiment, began_ns, now_ns, ends_ns))
    if ends_ns is not None and LAST in began_ns:
        steps = _with_end(steps, notes.last_done, observed=_window_is_over(live, ends_ns))
    awaited = notes.awaited or Awaited("", now_ns, None)
    left_s = sum(_left_s(step, is_ending=ends_ns is not None) for step in steps)
    return RunProgress(steps, awaited.what or None, (now_ns - awaited.since_ns) / 1e9, left_s, ends_ns)


def learn_from(live: LiveRun) -> None:
    """Keep how long the steps of a run took, for later estimates. If that is not possible, the run does not fail."""
    noted_ns = step_notes.read(live.run_id).began_ns
    with suppress(AftershockError, *UNREADABLE):
        step_times.learn(live.experiment, _began(live, noted_ns, time.time_ns()))


def _began(live: LiveRun, noted_ns: dict[str, int], until_ns: int) -> dict[str, int]:
    """When each step began [ns UTC]; the window, which no step of ours waits for, as it was planned, if it opened
    before `until_ns`."""
    plan = live.plan
    opened_ns = {"observe": plan.window_start_ns} if plan and plan.window_start_ns <= until_ns else {}
    found = noted_ns | opened_ns
    return {step: found[step] for step in step_times.STEPS if step in found}


def _steps(
    experiment: Experiment, began_ns: dict[str, int], now_ns: int, ends_ns: int | None
) -> Iterator[StepProgress]:
    order, usual_s = list(step_times.STEPS), step_times.usual_s(experiment)
    reached = max((order.index(step) for step in began_ns), default=-1)
    for index, name in enumerate(order):
        begin_ns = began_ns.get(name)
        later = [began_ns[each] for each in order[index + 1 :] if each in began_ns]
        took_s = None if begin_ns is None else ((later[0] if later else now_ns) - begin_ns) / 1e9
        if begin_ns is None and ends_ns is not None and name != LAST:
            state = StepState.LEFT_OUT
        else:
            state = StepState.DONE if index < reached else StepState.GOING_ON if index == reached else StepState.TO_COME
        yield StepProgress(name, step_times.does(name, experiment), state, took_s, usual_s[name])


def _with_end(steps: tuple[StepProgress, ...], last_done: str | None, *, observed: bool) -> tuple[StepProgress, ...]:
    """The steps of a run that is torn down: the last one before that was cut short, unless it had come to its end."""
    last = next((step for step in reversed(steps) if step.state is StepState.DONE), None)
    if last is None or last.name == last_done or (last.name == "observe" and observed):
        return steps
    return tuple(replace(step, state=StepState.CUT_SHORT) if step is last else step for step in steps)


def _window_is_over(live: LiveRun, at_ns: int) -> bool:
    plan = live.plan
    return plan is not None and plan.window_end_ns <= at_ns


def _left_s(step: StepProgress, *, is_ending: bool) -> float:
    """What is left of a step [s]; one that looks for an abort, or has failed, does not go on to its usual end."""
    if step.state not in (StepState.GOING_ON, StepState.TO_COME):
        return 0.0
    if is_ending and step.name not in DEAF_STEPS | {LAST}:
        return 0.0
    return max(step.usual_s - (step.took_s or 0.0), 0.0)
