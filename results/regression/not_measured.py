"""Why a run has no value of a metric, as far as its tables and its experiment say it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from experiments.spec import LoadMode
from results.damage import Damaged
from results.predictions.described import why_not_predicted
from results.runs.store import Run
from results.summary.findings import the_run, took_effect
from results.summary.metrics import METRICS, load_mode

UNKNOWN = "not measured"
NO_TABLES = "the run ended before its tables were made"
NO_FAULT = "no fault took effect"
NO_RECOVERY = "no fault made the query recover"
NOT_REACHED = "most recoveries were not seen to reach the end of this phase"
NEVER_ALONE = "every recovery had a further fault in it"
NO_BEGIN = "no recovery shows when this phase began"
NOT_NOTICED = "no recovery shows when its fault was noticed"
NOT_NOTICED_ALONE = "no recovery from a single fault shows when this phase began"
NO_CHECKPOINT = "no undisturbed batch in the window has a measured checkpoint"
SATURATED = "under a saturating load, latency grows with the length of the run"
NO_LATENCY = "no latency is known"
NOT_COMPARED = "the experiment names nothing exact to compare its output with"
NO_CLOSED_WINDOW = "no window of the output was compared"
NOT_SEARCHED = "the load does not search for it"
NOT_FOUND = "the search found none"
NOT_TENTATIVE = "no tentative output was compared"


@dataclass(frozen=True)
class Lack:
    """Metrics that the runs at these places, from 0, did not measure, and why."""

    metrics: tuple[str, ...]
    places: tuple[int, ...]
    why: str


def reasons(run: Run, names: Iterable[str]) -> dict[str, str]:
    """Why a run did not measure these metrics, by their names."""
    return {name: _reason(run, name) for name in names}


def missing_values(runs: Sequence[Run], metrics: Sequence[Mapping[str, float]]) -> list[dict[str, str]]:
    """For each run, why it did not measure what another one did, by metric; `metrics` is what each run measured."""
    measured = [name for name in METRICS if any(name in each for each in metrics)]
    return [
        reasons(run, [name for name in measured if name not in own]) for run, own in zip(runs, metrics, strict=True)
    ]


def lacks(by_run: Sequence[Mapping[str, str]]) -> list[Lack]:
    """The reasons of several runs, each told once for all metrics and runs that share it."""
    places: dict[tuple[str, str], list[int]] = defaultdict(list)
    for place, found in enumerate(by_run):
        for name, why in found.items():
            places[name, why].append(place)
    metrics: dict[tuple[tuple[int, ...], str], list[str]] = defaultdict(list)
    for (name, why), where in places.items():
        metrics[tuple(where), why].append(name)
    return [Lack(tuple(names), where, why) for (where, why), names in metrics.items()]


def _reason(run: Run, name: str) -> str:
    """`UNKNOWN` also where a table is damaged, or of an older version of the code."""
    try:
        return NO_TABLES if the_run(run) is None else WHY.get(name, _unknown)(run)
    except Damaged:
        return UNKNOWN


def _unknown(_: Run) -> str:
    return UNKNOWN


def _phase(name: str, *, of_one_fault: bool = False, no_begin: str = NO_BEGIN) -> Callable[[Run], str]:
    def why(run: Run) -> str:
        if not run.has("recoveries") or not run.has("faults"):
            return UNKNOWN
        recoveries = run.table("recoveries")
        if recoveries.empty:
            return NO_FAULT if took_effect(run.table("faults")).empty else NO_RECOVERY
        if METRICS[name].measure(run) is not None:  # infinite
            return NOT_REACHED
        if of_one_fault:
            return NEVER_ALONE if (recoveries["faults"] > 1).all() else NOT_NOTICED_ALONE
        return no_begin

    return why


def _checkpoint(run: Run) -> str:
    return NO_CHECKPOINT if run.has("checkpoints") else UNKNOWN


def _latency(run: Run) -> str:
    return SATURATED if load_mode(run) == LoadMode.SATURATING else NO_LATENCY


def _output(run: Run) -> str:
    return NO_CLOSED_WINDOW if run.has("quality") else NOT_COMPARED


def _search(run: Run) -> str:
    mode = load_mode(run)
    if mode is None:
        return UNKNOWN
    return NOT_FOUND if mode == LoadMode.SUSTAINABLE else NOT_SEARCHED


def _tentative(_: Run) -> str:
    return NOT_TENTATIVE


def _model(run: Run) -> str:
    """The reason without the word that the table of predictions begins it with: "none: eq. 10 knows only ..."."""
    told = why_not_predicted(run)
    return UNKNOWN if told is None else told.partition(": ")[2]


WHY: dict[str, Callable[[Run], str]] = {
    "detect_s": _phase("detect_s", no_begin=NOT_NOTICED),
    "restart_s": _phase("restart_s", of_one_fault=True),
    "restore_s": _phase("restore_s"),
    "catch_up_s": _phase("catch_up_s"),
    "sustainable_rate": _search,
    "checkpoint_s": _checkpoint,
    "p99_latency_s": _latency,
    **dict.fromkeys(("lost", "wrong", "duplicated"), _output),
    "tentative_accuracy": _tentative,
    "model_error": _model,
}
