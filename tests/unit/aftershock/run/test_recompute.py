"""What a run computed again is held to have been: the experiment as its own version of the code ran it."""

import pytest

from aftershock.run.recompute import as_it_ran
from experiments import spec
from results.runs import store
from results.runs.machine import experiment_digest


@pytest.mark.parametrize(
    ("engine", "version", "chaining"),
    [("dataflow", 3, False), ("dataflow", None, False), ("dataflow", 4, None), ("structured-streaming", 3, None)],
)
def test_a_run_from_before_operators_were_chained_is_one_without(tmp_path, engine, version, chaining):
    run = store.Run("run-1", tmp_path)
    experiment = spec.load("nexmark-q1", [f"engine.name={engine}"])
    store.write_json(run.root / "experiment.json", experiment.model_dump(mode="json"))
    status = {"state": "done", "started_ns": 1, "schema_version": version, "experiment": "nexmark-q1"}
    store.write_json(run.root / "status.json", status)
    found = spec.validate(as_it_ran(run))
    assert found.engine.chaining is chaining
    assert (experiment_digest(found) == experiment_digest(experiment)) == (chaining is None)
