"""Which experiments the utilization model does not describe, so that neither eq. 10 nor a replay judges their runs."""

from __future__ import annotations

from experiments.spec import Experiment
from results.runs.store import Run
from results.summary.findings import table_or_empty, utilizations

WORK_IS_KEPT = "none: eq. 10 knows only faults that lose work"
OTHERS_GO_ON = "none: eq. 10 knows only outages of the whole, and here the partitions that were not lost go on"
SOME_TAKE_NOTHING = "none: eq. 10 takes each fault for an outage, and here some hit only slots that stand by"
REASONS = (WORK_IS_KEPT, OTHERS_GO_ON, SOME_TAKE_NOTHING)


def not_described(experiment: Experiment) -> str | None:
    """Why the model is not of this experiment, which then stands in the place of a prediction; None if it is."""
    if not all(kind.loses_work for kind in experiment.faults.kinds):
        return WORK_IS_KEPT
    if not experiment.faults.can_fail:
        return None
    if experiment.engine.recovers_in_parts:
        return OTHERS_GO_ON
    return SOME_TAKE_NOTHING if experiment.engine.standby_run else None


def why_not_predicted(run: Run) -> str | None:
    """Why no utilization is predicted of a run, such as `unknown: ...`; None if one is, or if no table says why."""
    found = utilizations(run)
    if found.predicted is not None:
        return None
    reasons = [model for model in table_or_empty(run, "predictions")["model"] if model in REASONS]
    if reasons:
        return str(reasons[0])
    return None if found.why is None else f"unknown: {found.why}"
