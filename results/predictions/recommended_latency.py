"""How long lost partitions will take to come back, by how they did in a run under the same strategy.

For runs in which partitions come back alone. If all of them roll back, `recommendation` has the latency.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean

import numpy as np
import pandas as pd

from experiments import spec
from experiments.errors import BadInput
from experiments.recovery_modes import PARTIAL, RecoveryMode
from models.interval_estimator import Estimate
from models.next_of_few import draw_next
from models.passive_restore import FEWEST
from results.predictions.recommendation import DRAWS, PERCENTILES, SEED
from results.runs.store import Run
from results.summary.fallback import as_it_recovered
from results.summary.findings import table_or_empty, the_run
from results.summary.lost_partitions import by_fault

MODELS = {
    "recovery_latency": "loading as measured, then the input since the checkpoint at the replay rate that was measured;"
    " the checkpoint is as old as any time up to the interval. The limits know how few restores were measured",
    "promotion_latency": "as measured: the copy is as far as its primary",
}


@dataclass(frozen=True)
class LatencyAdvice:
    """Recovery latency of a fault's partitions: from its notice until the last one is as far as it was [s].

    expected     of partitions that are restored from a checkpoint: the mean, and the range of 95 % of faults; None if
                 fewer than three restores were seen to their end
    restored_s   how long each restore of the run took
    promoted_s   how long it took each time until promoted copies were as far as their primaries
    """

    expected: Estimate | None
    restored_s: tuple[float, ...]
    promoted_s: tuple[float, ...]

    @property
    def models(self) -> dict[str, str]:
        """The model behind each field of the document."""
        known = {"recovery_latency": self.expected is not None, "promotion_latency": len(self.promoted_s) > 0}
        return {name: text for name, text in MODELS.items() if known[name]}

    def to_json(self) -> dict[str, float]:
        """Its part of the document of `aftershock recommend --json`."""
        found = {"promotion_latency": fmean(self.promoted_s)} if self.promoted_s else {}
        if self.expected is None:
            return found
        names = ("recovery_latency", "recovery_latency_low", "recovery_latency_high")
        return found | dict(zip(names, self.expected, strict=True))


def recommend_latency(run: Run) -> LatencyAdvice:
    """What recovery latency to expect. Raises `BadInput` for a run in which no partition was seen to come back alone.

    Also raises it if partitions read the whole input again: the older the run, the longer that takes.
    """
    experiment = as_it_recovered(spec.validate(run.experiment()), the_run(run))
    mode, rows = experiment.engine.recovery_run, table_or_empty(run, "partition_recoveries")
    alone = mode in PARTIAL and mode is not RecoveryMode.SOURCE_REPLAY
    faults = by_fault(rows) if alone and len(rows) else rows.head(0)
    if faults.empty or faults["latency_s"].isna().all():
        allowed = "a run in which partitions were lost and came back while others went on"
        raise BadInput("run_id", run.run_id, allowed)
    restored = faults.dropna(subset=["restored_s", "ready_s", "age_s"])
    return LatencyAdvice(
        _expected(restored, experiment.engine.checkpoint_interval_s) if _tells_pace(restored) else None,
        tuple(restored["restored_s"]),
        tuple(faults["promoted_s"].dropna()),
    )


def _tells_pace(restored: pd.DataFrame) -> bool:
    """Whether enough restores were seen, and any of them had something to replay."""
    return len(restored) >= FEWEST and bool(restored["age_s"].max() > 0)


def _expected(restored: pd.DataFrame, interval_s: float) -> Estimate:
    """Replay takes a share of the checkpoint's age: the one by which it took as long as it did, over all restores.

    The next restore differs from the mean as those that were seen differ from each other, once the ages of their
    checkpoints are made equal by that share: in loading, and in how fast the replay goes.
    """
    ages_s, oldest_s = restored["age_s"], float(restored["age_s"].max())
    share = float((restored["restored_s"] - restored["ready_s"]).sum() / ages_s.sum())
    of_one_age_s = restored["restored_s"] + share * (oldest_s - ages_s)
    rng = np.random.default_rng(SEED)
    drawn_s = draw_next(rng, of_one_age_s.tolist(), DRAWS) - share * (oldest_s - rng.uniform(0, interval_s, DRAWS))
    low, high = np.percentile(np.maximum(drawn_s, 0.0), PERCENTILES)
    return Estimate(float(restored["ready_s"].mean()) + share * interval_s / 2, float(low), float(high))
