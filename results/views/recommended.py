"""A recommendation as people read it: rows of what was run, what is advised, and how sure that is."""

from __future__ import annotations

import math
import textwrap
from typing import NamedTuple

from experiments.errors import BadInput
from results.damage import Damaged
from results.predictions.recommendation import MODELS, Recommendation, recommend
from results.runs.store import Run

WIDTH = 92
UNDECIDED = "The interval as it was may be the best one already: this run can't tell the two apart."


class Row(NamedTuple):
    """One quantity: as it was in the run, as advised, and the limits that hold it with 95 %."""

    what: str
    was: str
    advised: str
    likely: str


def rows(found: Recommendation) -> list[Row]:
    """The quantities of a recommendation, with their units."""
    best, latency, (low_s, high_s) = found.advice, found.latency, found.interval_s
    reach = f"{low_s:.1f} s or more" if math.isinf(high_s) else f"{low_s:.1f} to {high_s:.1f} s"
    singles = f"{latency.low:.1f} to {latency.high:.1f} s of single recoveries"
    return [
        Row("checkpoint interval", f"{best.interval_s:.1f} s", f"{best.optimal_interval_s:.1f} s", reach),
        Row("utilization", f"{best.predicted:.3f}", f"{best.optimal_predicted:.3f}", _one_run(found)),
        Row("recovery latency", f"{found.latency_now_s:.1f} s", f"{latency.value:.1f} s", singles),
    ]


def option(found: Recommendation) -> str | None:
    """The option with which the next run follows the advice; None if the run can't tell the two intervals apart."""
    low_s, high_s = found.interval_s
    if low_s <= found.advice.interval_s <= high_s:
        return None
    return f"--set engine.checkpoint_interval_s={found.advice.optimal_interval_s:.1f}"


def models() -> list[str]:
    """The model behind each row."""
    return [f"{name.replace('_', ' ')}: {text}" for name, text in MODELS.items()]


def recommended(found: Recommendation) -> str:
    """For a terminal, of at most 92 columns."""
    lines = [f"Recommended by run {found.run_id}", f"{'':24}{'as it was':>11}{'advised':>11}   95 % between"]
    lines += [f"  {row.what:22}{row.was:>11}{row.advised:>11}   {row.likely}" for row in rows(found)]
    said = (line for each in models() for line in textwrap.wrap(each, WIDTH, subsequent_indent="  "))
    return "\n".join([*lines, option(found) or UNDECIDED, "", *said])


def recommendation_of(run: Run) -> Recommendation | None:
    """What a run advises; None of a run that advises nothing, or of which too little is there to say."""
    try:
        return recommend(run)
    except (BadInput, Damaged, FileNotFoundError):
        return None


def _one_run(found: Recommendation) -> str:
    if found.utilization is None:
        return "not known: fewer than three checkpoints or recoveries"
    low, high = found.utilization
    return f"{low:.3f} to {high:.3f} in one run of {found.window_s:g} s"
