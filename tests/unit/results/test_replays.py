"""Replays of whole runs: sound ones pass, planted errors fail, and what a replay lacks is said."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.check_power import FORMULAS, INTERVAL_S, TABLES_WITH, Machine, fails
from experiments.spec import Experiment
from results.findings import OTHER_COSTS_MODEL, REPLAY_MODEL
from results.machine import experiment_digest
from results.predictions import write_predictions
from results.process import Process
from results.replays import Unreplayable, replayed
from results.store import Run, write_json
from tests.unit.results import synthetic

EXPERIMENT = Experiment(engine={"checkpoint_interval_s": INTERVAL_S})
SEEDS = range(4)


def simulated(seed: int, faults: int = 20):
    return Machine(np.random.default_rng([7, seed]), faults).run()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_sound_run_passes(seed):
    assert fails(simulated(seed), EXPERIMENT) is False


@pytest.mark.parametrize("error", FORMULAS)
def test_an_error_in_a_formula_fails(error):
    with FORMULAS[error]():
        assert fails(simulated(1), EXPERIMENT) is True


@pytest.mark.parametrize("error", TABLES_WITH)
def test_an_error_in_the_ledger_fails(error):
    assert fails(TABLES_WITH[error](simulated(1)), EXPERIMENT) is True


def lacking(run, table, change):
    return type(run)(run.tables | {table: change(run.tables[table])})


@pytest.mark.parametrize(
    ("table", "change", "why"),
    [
        ("faults", lambda frame: frame[:2], "2 faults took effect; at least 3"),
        ("faults", lambda frame: frame.assign(outcome="absorbed"), "0 faults took effect"),
        ("checkpoints", lambda frame: frame.assign(in_window=False), "0 checkpoints were measured"),
        ("ledger", lambda frame: frame[frame["class"] != "useful"], "0 recoveries were seen to their end"),
    ],
)
def test_what_a_replay_lacks_is_said(table, change, why):
    with pytest.raises(Unreplayable, match=why):
        replayed(Process(lacking(simulated(1), table, change), EXPERIMENT))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AFTERSHOCK_HOME", str(tmp_path))
    return tmp_path


def finished_under_another_seed(home: Path, started_ns: int, longer: float = 1.0) -> Run:
    """A run of the same experiment, whose restarts took so many times as long."""

    def stretched(ledger: pd.DataFrame) -> pd.DataFrame:
        return ledger.assign(seconds=ledger["seconds"].mask(ledger["class"] == "restart", longer * ledger["seconds"]))

    changes = {"runs": lambda frame: frame.assign(seed=8), "ledger": stretched}
    run = synthetic.make_run(home / "runs", run_id=f"other-{started_ns}", changes=changes)
    status = run.status() | {"experiment_digest": experiment_digest(synthetic.experiment()), "started_ns": started_ns}
    write_json(run.root / "status.json", status)
    return run


def models_of(run: Run) -> dict[str, dict[str, object]]:
    return {row["model"]: row for row in write_predictions(run, synthetic.experiment()).to_dict("records")}


def test_the_costs_of_the_last_run_under_another_seed_are_tried_as_well(home):
    finished_under_another_seed(home, 1)
    last = finished_under_another_seed(home, 2, longer=2.0)
    finished_under_another_seed(home, synthetic.START_NS + 1, longer=9.0)  # it came later
    found = models_of(synthetic.make_run(home / "live"))
    own, other = found[REPLAY_MODEL], found[OTHER_COSTS_MODEL.format(last.run_id)]
    longer_s = len(synthetic.KILLS_S) * synthetic.RESTART_S
    assert own["predicted"] - other["predicted"] == pytest.approx(longer_s / 240, rel=0.1)
    assert own["measured"] == other["measured"]


def test_without_a_run_under_another_seed_there_is_no_such_row(home):
    assert not [model for model in models_of(synthetic.make_run(home / "live")) if "c and R of" in model]


@pytest.mark.parametrize("table", ["runs", "ledger"])
def test_a_damaged_run_is_passed_over(home, table):
    other = finished_under_another_seed(home, 1)
    (other.tables / f"{table}.parquet").write_bytes(b"nothing")
    assert not [model for model in models_of(synthetic.make_run(home / "live")) if "c and R of" in model]
