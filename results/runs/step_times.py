"""The usual duration of each step of a run: as it was here last time, or else on two quiet cores.

A step counts until the next one begins, so that what Airflow takes between two tasks is in it. The file of past times
only helps to estimate: without it, or with a damaged one, the estimates are worse.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

from experiments.engines import EngineName
from experiments.errors import AftershockError
from experiments.loads import FULL_BATCHES, GETTING_FASTER_S
from experiments.locks import locked
from experiments.spec import Experiment, LoadMode
from models.sustainable.duration import search_s
from results.runs.home import home
from results.runs.json_files import read_json, write_json

# Every step of a run, and what it does.
STEPS = {
    "provision": "create the hosts, start broker and Spark",
    "deploy": "start the query",
    "start_load": "start the load, until the query runs steadily",
    "arm_faults": "prepare the faults",
    "observe": "measure while hosts fail",
    "stop": "end the query after its last batch",
    "collect": "save input and output",
    "tabulate": "write the result tables",
    "predict": "compute what the models predict",
    "validate": "evaluate the checks",
    "report": "draw the plots, write the report",
    "teardown": "destroy the cluster, publish the run",
}
EXACT = {"collect": "compute the exact output"}  # what a step does besides, if there is an oracle
STEADY_COMMITS = 2  # after which the query runs steadily
LEAD_S = 4.0  # from the plan to the opening of the window: the injector, which stands by, must be armed by then
CALIBRATION_S = 60.0  # on the testbed
WARM_UP_S, USUAL_ROUNDS = 28.0, 2  # of a calibration of Structured Streaming; a round is the batches of one topic
WAIT_FOR_CHECKPOINTS = frozenset({"deploy", "start_load", "stop"})
READ_ALL_RECORDS = {"collect": 30.0, "tabulate": 25.0}  # and what they take without any [s]
COLLECT_US, TABULATE_US = 9.0, 2.0  # for a record
AS_MANY = 2.0  # times as many records: then a run is no estimate of such steps
INTERVAL, RECORDS, WINDOW = "checkpoint_interval_s", "records", "window_s"  # those of the last run, among its times


def usual_s(experiment: Experiment) -> dict[str, float]:
    """How long each step of `STEPS` will probably take [s]."""
    past = _past(experiment)
    return {step: past.get(step, seconds) for step, seconds in _on_quiet_cores(experiment).items()} | {
        "observe": experiment.window_s
    }


def does(step: str, experiment: Experiment) -> str:
    """What a step does in a run of this experiment, in words."""
    besides = EXACT.get(step) if experiment.workload.has_oracle else None
    return f"{STEPS[step]}, {besides}" if besides else STEPS[step]


def whole_s(*experiments: Experiment) -> float:
    """How long a run will probably take from its first step to its last; of several, one after the other [s]."""
    return sum(sum(usual_s(each).values()) for each in experiments)


def calibration_s(experiment: Experiment) -> float:
    """How long the calibration before a saturating load takes [s]: Spark's measures batches as long as the interval."""
    if experiment.load.mode is not LoadMode.SATURATING:
        return 0.0
    if not experiment.engine.works_in_batches:
        return CALIBRATION_S
    return WARM_UP_S + USUAL_ROUNDS * max(GETTING_FASTER_S, FULL_BATCHES * experiment.engine.checkpoint_interval_s)


def in_words(seconds: float) -> str:
    """An estimate in words, such as `about 6 min`."""
    if seconds < 10:
        return "a few seconds"
    return f"about {10 * round(seconds / 10)} s" if seconds < 90 else f"about {round(seconds / 60)} min"


def learn(experiment: Experiment, began_ns: Mapping[str, int]) -> None:
    """Keep how long the steps of a run took that has come to its end, by when each of them began [ns UTC]."""
    interval_s, window_s = experiment.engine.checkpoint_interval_s, experiment.window_s
    about = {INTERVAL: interval_s, RECORDS: _records(experiment), WINDOW: window_s}
    known = [(step, began_ns[step]) for step in STEPS if step in began_ns]
    took = {step: (end - begin) / 1e9 for (step, begin), (_, end) in pairwise(known) if end > begin}
    with locked(_path().with_suffix(".lock"), "the times of steps"):
        write_json(_path(), _read() | {_kind(experiment): _past(experiment) | took | about})


def _on_quiet_cores(experiment: Experiment) -> dict[str, float]:
    interval_s = experiment.engine.checkpoint_interval_s
    load = experiment.load
    searching_s = search_s(load.probes, experiment.probe_s, interval_s) if load.mode is LoadMode.SUSTAINABLE else 0.0
    return {
        "provision": 12.0,
        "deploy": 20.0 + calibration_s(experiment),
        "start_load": 5.0 + STEADY_COMMITS * interval_s + searching_s,
        "arm_faults": 5.0 + LEAD_S,
        "observe": experiment.window_s,
        "stop": 10.0 + interval_s,
        "collect": READ_ALL_RECORDS["collect"] + COLLECT_US * _records(experiment) / 1e6,
        "tabulate": READ_ALL_RECORDS["tabulate"] + TABULATE_US * _records(experiment) / 1e6,
        "predict": 5.0,
        "validate": 8.0,
        "report": 8.0,
        "teardown": 5.0,
    }


def _records(experiment: Experiment) -> float:
    """How many records are due in the window, if the load tells; 0 if that is found in the run."""
    return experiment.load.rate * experiment.window_s if experiment.load.mode is LoadMode.RATE else 0.0


def _past(experiment: Experiment) -> dict[str, float]:
    """What the last run of this kind took.

    With another interval, without steps that wait for checkpoints; with many more records or fewer, without those that
    read all of them. If only the run finds out how many these are, there are as many more as the window is longer.
    """
    past = _read().get(_kind(experiment), {})
    if experiment.load.mode is not LoadMode.RATE and past.get(WINDOW):
        past |= _in_window(past, experiment.window_s / past[WINDOW])
    other: set[str] = set()
    if past.get(INTERVAL) != experiment.engine.checkpoint_interval_s:
        other |= WAIT_FOR_CHECKPOINTS
    fewer, more = sorted((past.get(RECORDS, 0.0), _records(experiment)))
    if more > AS_MANY * fewer:
        other |= READ_ALL_RECORDS.keys()
    return {step: seconds for step, seconds in past.items() if step not in other}


def _in_window(past: Mapping[str, float], longer: float) -> dict[str, float]:
    """What the steps that read all records took, in a window that is so many times as long."""
    return {
        step: min(past[step], least_s) + max(past[step] - least_s, 0.0) * longer
        for step, least_s in READ_ALL_RECORDS.items()
        if step in past
    }


def _kind(experiment: Experiment) -> str:
    """What has similar times, except for steps that wait for checkpoints or read all records."""
    engine: EngineName = experiment.engine.name
    return f"{experiment.cluster.driver.value} {engine.value} {experiment.load.mode.value}"


def _read() -> dict[str, dict[str, float]]:
    try:
        found = read_json(_path())
    except (OSError, AftershockError):
        return {}
    kinds = found.items() if isinstance(found, dict) else ()
    return {kind: _numbers(times) for kind, times in kinds if isinstance(times, dict)}


def _numbers(times: dict[str, object]) -> dict[str, float]:
    return {step: float(value) for step, value in times.items() if isinstance(value, int | float) and value >= 0}


def _path() -> Path:
    return home() / "step-times.json"
