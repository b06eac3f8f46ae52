"""Made-up runs of table 1 of `utilization`, which measure what the model says."""

from __future__ import annotations

from chaos.plan import plan
from experiments.spec import Experiment
from models.utilization import utilization
from reproductions.utilization.experiments import row_of
from results.summary.findings import REPLAY_MODEL
from tests.unit.reproductions.runs import Tables, facts

COST_S, RECOVERY_S, HOP_S = 0.8, 6.0, 0.05


def inputs(experiment: Experiment) -> dict[str, float]:
    """What a run measures: checkpoints cost more with depth, and recoveries are the same everywhere."""
    depth = row_of(experiment).depth
    return {
        "failure_rate": len(plan(experiment.fault_spec, experiment.seed)) / experiment.window_s,
        "checkpoint_cost_s": COST_S * depth,
        "recovery_time_s": RECOVERY_S,
        "interval_s": experiment.engine.checkpoint_interval_s,
        "hop_delay_s": HOP_S,
        "depth": depth + 1,
    }


def as_modelled(experiment: Experiment) -> Tables:
    """A run that measures what eq. 10 says, and a replay that is off by .004."""
    given = inputs(experiment)
    measured = float(utilization(*given.values()))
    struck = {"kind": "kill", "targets": "worker-1", "outcome": "injected", "actual_ns": 1}
    faults = [struck | {"fault": i} for i in range(len(plan(experiment.fault_spec, experiment.seed)))]
    prediction = {"quantity": "utilization", "model": REPLAY_MODEL, "measured": measured, "predicted": measured + 0.004}
    return {
        "runs": facts(experiment, utilization=measured),
        "faults": faults,
        "recoveries": [{"fault": 0}],
        "predictions": [prediction | given],
    }
