"""A run from its beginning to its published end: the steps of the DAG in their order, without Airflow."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from aftershock.run import steps
from aftershock.run.progress import progress
from experiments.spec import Experiment
from infra.processes import members
from results.runs import store

AFTER_THE_WINDOW = (steps.stop, steps.collect, steps.tabulate, steps.predict, steps.validate, steps.report)


def carry_out(
    experiment: Experiment, once_loaded: Callable[[dict[str, Any]], None] = lambda _cluster: None
) -> store.Run:
    """The published run, of which no process is left. `once_loaded` gets the handle when the query has its load."""
    run_id, error = steps.begin(experiment.model_dump(mode="json")), "a step failed"
    try:
        cluster = steps.provision(run_id)
        steps.deploy(run_id)
        steps.start_load(run_id)
        once_loaded(cluster)
        steps.arm_faults(run_id)
        while not (now := progress(run_id)).ended:
            assert now.error is None, now.error
            time.sleep(1)
        for step in AFTER_THE_WINDOW:
            step(run_id)
        error = None
    finally:
        steps.teardown(run_id, error)
    assert members(cluster["token"]) == []
    return store.finished(run_id)
