"""All that a run advises for the next one: its checkpoint interval, which partitions to copy, and what to expect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from experiments.errors import BadInput
from results.predictions.described import why_not_predicted
from results.predictions.recommendation import Recommendation, recommend
from results.predictions.recommended_copies import CopiesAdvice, recommend_copies
from results.predictions.recommended_latency import LatencyAdvice, recommend_latency
from results.runs.store import Run

OF_THE_INTERVAL = (
    *("interval", "interval_low", "interval_high", "failure_rate", "redone_share"),
    *("utilization_measured", "utilization_now", "utilization_then", "utilization_low", "utilization_high"),
    *("recovery_latency_measured", "recovery_latency", "recovery_latency_low", "recovery_latency_high"),
)


@dataclass(frozen=True)
class Advised:
    """`interval` is None of a run that says nothing of it, `copies` of one whose partitions cannot be copied.

    `latency` is the recovery latency to expect. It is None if `interval`, which has it, is given, or if no partition
    came back alone. `why_no_interval` is what the run's summary says in place of a prediction. It is None if `interval`
    is given, or if the summary says nothing.
    """

    run_id: str
    interval: Recommendation | None
    copies: CopiesAdvice | None
    latency: LatencyAdvice | None
    why_no_interval: str | None = None

    @property
    def models(self) -> dict[str, str]:
        """The model behind each part."""
        parts = (self.interval, self.latency, self.copies)
        return {name: text for part in parts if part is not None for name, text in part.models.items()}

    def to_json(self) -> dict[str, Any]:
        """The document of `aftershock recommend --json`; null stands for what is not bounded or not known."""
        found: dict[str, Any] = dict.fromkeys((*OF_THE_INTERVAL, "promotion_latency"))
        found |= {} if self.latency is None else self.latency.to_json()
        found |= {} if self.interval is None else self.interval.to_json()
        copies = self.copies
        return found | {
            "copies": [] if copies is None else list(copies.partitions),
            "copies_budget": None if copies is None else copies.budget,
            "tentative_fidelity": None if copies is None else copies.fidelity,
            "tentative_fidelity_now": None if copies is None else copies.fidelity_now,
            "tentative_accuracy": copies.fidelity if copies is not None and copies.is_accuracy else None,
            "models": self.models,
        }


def advise(run: Run, budget: int | None = None, failure_rate: float | None = None) -> Advised:
    """What a finished run advises, with `budget` copies (`recommend_copies`), at a failure rate [1/s] (`recommend`).

    Raises `BadInput` if nothing can be advised from the run; if `budget` is given and no copies can be advised; and if
    `failure_rate` is given and no interval can be.
    """
    try:
        copies = recommend_copies(run, budget)
    except BadInput:
        if budget is not None:
            raise
        copies = None
    try:
        return Advised(run.run_id, recommend(run, failure_rate), copies, None)
    except BadInput:
        latency = _latency(run)
        if failure_rate is not None or (copies is None and latency is None):
            raise
        return Advised(run.run_id, None, copies, latency, why_not_predicted(run))


def _latency(run: Run) -> LatencyAdvice | None:
    try:
        return recommend_latency(run)
    except BadInput:
        return None
