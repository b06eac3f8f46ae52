"""Replays of whole runs: sound ones pass, planted errors fail, and what a replay lacks is said."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from experiments import spec
from experiments.loads import LoadMode, LoadSpec
from experiments.spec import Experiment
from results.predictions.process import MeasuredProcess, Unreplayable
from results.predictions.replays import _lost_shares, replay_run
from results.predictions.tables import write_predictions
from results.runs.machine import experiment_digest
from results.runs.store import Run, write_json
from results.summary.findings import OTHER_COSTS_MODEL, REPLAY_MODEL
from results.tables.schema import SCHEMA_VERSION
from tests.unit.results import synthetic
from tests.unit.results.judging import verdict_of
from tests.unit.results.simulated_runs import EXPERIMENT, FORMULAS, START_NS, TABLES_WITH, Machine, fails

pytestmark = pytest.mark.usefixtures("home")

LONGER = "R + 10 % in the ledger"  # which makes measured and replayed utilization wrong nearly alike
SEEDS = range(4)


def simulated(seed: int, faults: int = 20):
    return Machine(np.random.default_rng([7, seed]), faults).run()


@pytest.mark.extended
@pytest.mark.parametrize("seed", SEEDS)
def test_a_sound_run_passes(seed):
    assert fails(simulated(seed), EXPERIMENT) is False


@pytest.mark.extended
@pytest.mark.parametrize("error", FORMULAS)
def test_an_error_in_a_formula_fails(error):
    with FORMULAS[error]():
        assert fails(simulated(1), EXPERIMENT) is True


@pytest.mark.parametrize("error", [error for error in TABLES_WITH if error != LONGER])
def test_an_error_in_the_ledger_fails(error):
    assert fails(TABLES_WITH[error](simulated(1)), EXPERIMENT) is True


def test_recoveries_that_are_too_long_in_the_ledger_take_the_time_of_what_follows():
    sound = simulated(1)
    planted = TABLES_WITH[LONGER](sound)
    before, ledger = sound.tables["ledger"], planted.tables["ledger"]
    assert ledger["seconds"].sum() == pytest.approx(before["seconds"].sum())
    assert (ledger["start_ns"].to_numpy()[1:] == ledger["end_ns"].to_numpy()[:-1]).all()
    classes = ["detect", "restart", "warm-up"]
    recovering_s = [frame.loc[frame["class"].isin(classes), "seconds"].sum() for frame in (before, ledger)]
    assert 1.09 < recovering_s[1] / recovering_s[0] < 1.1001, "a recovery that the next fault follows has less room"
    assert planted.tables["runs"]["utilization"][0] < sound.tables["runs"]["utilization"][0]


@pytest.mark.extended
@pytest.mark.parametrize("seed", SEEDS)
def test_the_tables_of_runs_with_faults_amid_recoveries_pass_their_checks(seed, tmp_path):
    run = simulated(seed)
    write_predictions(run, EXPERIMENT)
    for name in ("replayed_recoveries.values", "useful_time.values"):
        row = verdict_of(name, run, tmp_path, EXPERIMENT)
        assert row["verdict"] == "pass", row
    assert len(run.tables["replayed_recoveries"]) < len(run.tables["faults"])


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
        replay_run(MeasuredProcess(lacking(simulated(1), table, change), EXPERIMENT))


def test_a_query_that_failed_by_itself_is_not_replayed():
    def without_a_fault(ledger):
        first = ledger.index[ledger["class"] == "restart"][0]
        ledger = ledger.copy()
        ledger.loc[first, "fault"] = np.nan
        return ledger

    with pytest.raises(Unreplayable, match="down once without a fault"):
        replay_run(MeasuredProcess(lacking(simulated(1), "ledger", without_a_fault), EXPERIMENT))


def dataflow(**engine):
    """The example of the testbed, at its set rate."""
    fields = spec.load("dataflow-q12").model_dump(mode="json")
    return Experiment.model_validate(fields | {"engine": fields["engine"] | engine, "window_s": 660})


def test_at_a_set_rate_the_service_rate_must_be_known():
    run = lacking(simulated(1), "runs", lambda frame: frame.assign(load_rate=5.0, service_rate=pd.NA))
    with pytest.raises(Unreplayable, match="service rate is not known"):
        replay_run(MeasuredProcess(run, dataflow()))


def test_a_load_that_was_to_saturate_the_testbed_must_have_done_so():
    run = lacking(simulated(1), "partition_checkpoints", lambda frame: rounds())
    experiment = dataflow()
    experiment = experiment.model_copy(update={"load": LoadSpec(mode=LoadMode.SATURATING)})
    busy = lacking(run, "ledger", lambda frame: frame[frame["class"] != "idle"])
    replay_run(MeasuredProcess(busy, experiment))
    half = lacking(run, "ledger", lambda frame: frame.assign(**{"class": frame["class"].replace("useful", "idle")}))
    with pytest.raises(Unreplayable, match="was to saturate the query, which was idle for"):
        replay_run(MeasuredProcess(half, experiment))


def rounds() -> pd.DataFrame:
    """Rounds of the coordinator's clock, every 2 s over 660 s, each complete .25 s after it was taken."""
    complete = [round((start + 0.25) * 1e9) for start in np.arange(-6.0, 660.0, 2.0)]
    return pd.DataFrame({"partition": "round", "completed_ns": START_NS + np.array(complete), "seconds": 0.25})


@pytest.mark.parametrize(("protocol", "low", "high"), [("coordinated", 0.0, 2.25), ("none", 0.0, 660.0)])
def test_on_the_testbed_a_fault_takes_what_came_after_the_last_round(protocol, low, high):
    run = lacking(simulated(1), "partition_checkpoints", lambda frame: rounds())
    run = lacking(run, "runs", lambda frame: frame.assign(load_rate=5.0, service_rate=5.0))
    found = replay_run(MeasuredProcess(run, dataflow(protocol=protocol)))
    lost_s = found.timed.lost_s.mean(axis=0)
    assert low <= lost_s.min() < lost_s.max() <= high
    assert (lost_s.max() > 10.0) == (protocol == "none")


def test_hosts_on_their_own_time_keep_their_part_if_they_took_a_checkpoint_before_the_recovery():
    """Two workers; recoveries take more than 9 s, and in none of them is there time for a checkpoint each 60 s."""
    run = lacking(simulated(1), "partition_checkpoints", lambda frame: rounds())
    run = lacking(run, "runs", lambda frame: frame.assign(load_rate=5.0, service_rate=5.0))
    run = lacking(run, "checkpoints", lambda frame: frame.assign(undisturbed=False))  # T is that of the experiment
    lost_s = []
    for interval_s in (2.0, 60.0):
        process = MeasuredProcess(run, dataflow(protocol="uncoordinated", checkpoint_interval_s=interval_s))
        lost_s.append(replay_run(process).timed.lost_s.mean(axis=0))
    assert lost_s[0].max() < 0.5 * (2.0 + 0.25)
    spells_s = [
        (after.fault, after.start_s - before.end_s) for before, after in itertools.pairwise(process.ledger.outages)
    ]
    faults = [strike.fault for strike in process.strikes]
    short = [(fault, seconds) for fault, seconds in spells_s if seconds < 60.0]
    assert len(short) > 5
    assert [lost_s[1][faults.index(fault)] for fault, _ in short] == pytest.approx([each for _, each in short])


def test_what_a_fault_undoes_of_slots_that_are_out_of_step_is_not_predicted():
    run = lacking(simulated(1), "partition_checkpoints", lambda frame: rounds())
    run = lacking(run, "runs", lambda frame: frame.assign(load_rate=5.0, service_rate=5.0))
    with pytest.raises(Unreplayable, match="no model says which of them are undone"):
        replay_run(MeasuredProcess(run, dataflow(protocol="uncoordinated", staggered=True)))


def test_a_kill_of_the_driver_takes_all_of_the_work_of_hosts_on_their_own_time():
    """No slot outlives the driver, so that none takes a checkpoint before the recovery."""
    run = lacking(simulated(1), "partition_checkpoints", lambda frame: rounds())

    def shares(of):
        process = MeasuredProcess(of, dataflow(protocol="uncoordinated"))
        return dict(zip((each.fault for each in process.strikes), _lost_shares(process, process), strict=True))

    of_hosts = shares(run)
    assert set(of_hosts.values()) == {0.5, 1.0}
    of_driver = shares(lacking(run, "faults", lambda frame: frame.assign(kind="driver-kill", targets="gateway")))
    assert of_driver == dict.fromkeys(of_hosts, 1.0)


def borders_each(seconds: float, lag_s: float) -> pd.DataFrame:
    """Two partitions' checkpoints at multiples of a time since the epoch; the second has stored its own `lag_s` later.

    The last was stored by one partition only, and those before it are of no line.
    """
    first = START_NS // round(seconds * 1e9) - 3
    numbers = np.arange(first, first + round(660.0 / seconds))
    rows = [
        pd.DataFrame({"number": numbers, "partition": f"bids.{each}", "seconds": 0.25, "late_s": 0.25 + each * lag_s})
        for each in range(2)
    ]
    rows[1] = rows[1][:-1]
    found = pd.concat(rows, ignore_index=True)
    stored_ns = found["number"] * round(seconds * 1e9) + (found["late_s"] * 1e9).astype("int64")
    as_read = stored_ns.astype(pd.ArrowDtype(pa.int64()))  # a float cannot hold it, and Arrow refuses to try
    return found.assign(completed_ns=as_read, in_window=True, invalid=False)


def test_with_batches_a_fault_takes_what_was_due_after_the_last_border_that_is_complete():
    """Half of the time is work, checkpoints included, so that a second of backlog is gone after a second.

    `caught_up_s` is when no backlog is left at the latest. Beyond its last complete border the system may have read the
    records of 3 s, and of 1.5 s while that was stored.
    """
    run = lacking(simulated(1), "partition_checkpoints", lambda frame: borders_each(3.0, 0.5))
    run = lacking(run, "runs", lambda frame: frame.assign(load_rate=4.0, service_rate=10.0))
    run = lacking(run, "checkpoints", lambda frame: frame.assign(checkpoint_s=0.3))
    process = MeasuredProcess(run, dataflow(protocol="batch-aligned", checkpoint_interval_s=3.0))
    assert process.partition_checkpoints.border_lag_s == pytest.approx(0.75)
    found = replay_run(process)
    ends_s = {fault: outage.end_s for fault, outage in process.ledger.outage_of.items()}
    caught_up_s, lost_s, expected_s = 0.0, [], []
    for strike, lost in zip(found.strikes, found.timed.lost_s.mean(axis=0), strict=True):
        if strike.struck_s > caught_up_s:
            lost_s.append(lost)
            expected_s.append(0.5 * ((START_NS / 1e9 + strike.struck_s - 0.75) % 3.0 + 0.75))
        behind_s = max(caught_up_s - strike.struck_s, 0.0)
        caught_up_s = 2.0 * ends_s[strike.fault] - strike.struck_s + behind_s + 4.5
    assert lost_s == pytest.approx(expected_s, abs=1e-3)
    assert len(lost_s) == 3


@pytest.mark.parametrize(
    ("protocol", "why"),
    [("batch-aligned", "no border in the window has a checkpoint"), ("uncoordinated", "no partition has stored")],
)
def test_how_long_checkpoints_take_until_they_are_stored_must_be_known(protocol, why):
    """Zero would be the best that can be."""
    run = lacking(simulated(1), "runs", lambda frame: frame.assign(load_rate=5.0, service_rate=10.0))
    with pytest.raises(Unreplayable, match=why):
        replay_run(MeasuredProcess(run, dataflow(protocol=protocol)))


def finished_under_another_seed(home: Path, started_ns: int, longer: float = 1.0) -> Run:
    """A run of the same experiment, whose restarts took longer by this factor."""

    def stretched(ledger: pd.DataFrame) -> pd.DataFrame:
        return ledger.assign(seconds=ledger["seconds"].mask(ledger["class"] == "restart", longer * ledger["seconds"]))

    changes = {"runs": lambda frame: frame.assign(seed=8), "ledger": stretched}
    run = synthetic.make_run(home / "runs", run_id=f"other-{started_ns}", changes=changes)
    status = run.status().to_json() | {
        "experiment_digest": experiment_digest(synthetic.experiment()),
        "started_ns": started_ns,
    }
    status |= {"schema_version": SCHEMA_VERSION}
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


@pytest.mark.extended
@pytest.mark.parametrize(
    "spoil", [lambda path: path.write_bytes(b"nothing"), lambda path: path.unlink()], ids=["damaged", "missing"]
)
@pytest.mark.parametrize("table", ["runs", "ledger", "checkpoints", "faults"])
def test_a_run_that_is_damaged_or_not_whole_is_passed_over(home, table, spoil):
    other = finished_under_another_seed(home, 1)
    spoil(other.tables / f"{table}.parquet")
    assert not [model for model in models_of(synthetic.make_run(home / "live")) if "c and R of" in model]
