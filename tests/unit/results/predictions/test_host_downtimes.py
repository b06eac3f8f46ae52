"""Mode task from end to end: a small cluster simulated host by host, its ledger, and the replay of its faults.

The simulation knows nothing of the model: it moves in steps, each host that is there takes its share of the batch, and
a host that dies takes what it had done of it. The ledger is made by the code that books real runs.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
import pytest

from benchmarks.check_power import START_NS, Simulated
from experiments.spec import Experiment
from models.replay.downtimes import HostDowntimes
from results.predictions import host_downtimes, replays
from results.predictions.process import MeasuredProcess, Unreplayable
from results.predictions.replays import replay_run
from spark_jobs.tables import ledger, rows
from spark_jobs.tables.batches import Batch
from spark_jobs.tables.ledger import NS
from spark_jobs.tables.outages import Outage

HOSTS, STEP_S, TRIGGER_S, WORK_S, COST_S, WINDOW_S, BEFORE_S = 3, 0.02, 8.0, 6.5, 0.5, 600.0, 24.0
AWAY_S, COLD_S = 9.0, 4.0  # a cold host works at half pace
TOLERANCE = 0.01
EXPERIMENT = Experiment(engine={"checkpoint_interval_s": TRIGGER_S, "recovery": "task"}, window_s=WINDOW_S)


@dataclass
class Cluster:
    """Three hosts that share batches; a batch begins with the trigger, or when the one before has ended."""

    kills: list[tuple[float, int]]
    batches: list[tuple[float, float]] = field(default_factory=list)
    struck: list[tuple[float, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._away_until, self._warm_from = np.zeros(HOSTS) - 1e3, np.zeros(HOSTS) - 1e3
        self._done_s, self._began_s, self._due_s = np.zeros(HOSTS), None, -BEFORE_S
        for now_s in np.arange(-BEFORE_S, WINDOW_S + BEFORE_S, STEP_S):
            self._strike(now_s)
            if self._began_s is None and now_s >= self._due_s:
                self._began_s, self._done_s = now_s, np.zeros(HOSTS)
            elif self._began_s is not None:
                self._work(now_s)

    def _strike(self, now_s: float) -> None:
        while self.kills and self.kills[0][0] <= now_s:
            at_s, host = self.kills.pop(0)
            if now_s >= self._away_until[host]:
                self.struck.append((at_s, host))
                self._away_until[host], self._warm_from[host] = at_s + AWAY_S, at_s + AWAY_S + COLD_S
                self._done_s[host] = 0.0

    def _work(self, now_s: float) -> None:
        pace = np.where(now_s < self._away_until, 0.0, np.where(now_s < self._warm_from, 0.5, 1.0))
        self._done_s += pace * STEP_S / HOSTS
        if self._done_s.sum() >= WORK_S:
            self.batches.append((self._began_s, now_s + COST_S))
            self._due_s = max((self._began_s + 1e-6) // TRIGGER_S * TRIGGER_S + TRIGGER_S, now_s + COST_S)
            self._began_s = None


def simulated(seed: int, faults: int = 20) -> Simulated:
    """The tables of one run."""
    rng = np.random.default_rng([3, seed])
    times_s = np.sort(rng.uniform(2.0, WINDOW_S - 20.0, faults))
    cluster = Cluster(list(zip(times_s, rng.integers(0, HOSTS, faults).tolist(), strict=True)))
    made = [_batch(number, *moments) for number, moments in enumerate(cluster.batches)]
    outages = [_outage(number, at_s) for number, (at_s, _) in enumerate(cluster.struck)]
    usual = ledger.UndisturbedPace(1000 / (WORK_S * NS))
    window = (START_NS, START_NS + round(WINDOW_S * NS))
    segments = ledger.ledger(window, made, outages, usual, round(TRIGGER_S * NS))
    booked = pd.DataFrame(rows.ledger(segments))
    kept_s = booked.loc[booked["class"].isin(["useful", "idle"]), "seconds"].sum()
    run = {"window_start_ns": START_NS, "window_s": WINDOW_S, "utilization": kept_s / WINDOW_S}
    steady = ledger.steady(made, outages)
    return Simulated(
        {
            "runs": pd.DataFrame([run | {"load_rate": None, "service_rate": None, "seed": seed}]),
            "ledger": booked,
            "checkpoints": pd.DataFrame(rows.checkpoints(made, window, steady)),
            "faults": pd.DataFrame([_fault(number, *struck) for number, struck in enumerate(cluster.struck)]),
        }
    )


def _at(seconds: float) -> int:
    return START_NS + round(seconds * NS)


def _batch(number: int, began_s: float, ended_s: float) -> Batch:
    times_ns = _at(began_s), _at(ended_s), round(COST_S * NS)
    return Batch(number, *times_ns, 1000, 0.0, 0.0, 0.0, 0, 0, {"0": (0, 0)}, 2, 0.0)


def _outage(number: int, at_s: float) -> Outage:
    """The driver notices at once, and the query goes on."""
    return Outage(number, 1, _at(at_s), _at(at_s + 0.05), _at(at_s + 0.05))


def _fault(number: int, at_s: float, host: int) -> dict[str, object]:
    told = {"fault": number, "kind": "kill", "targets": f"worker-{host + 1}", "outcome": "injected"}
    return told | {"actual_ns": _at(at_s), "healed_ns": _at(at_s + 2), "executors_ns": _at(at_s + AWAY_S)}


def apart(run: Simulated, experiment: Experiment = EXPERIMENT) -> float:
    """How much more the replay has than was measured."""
    return replay_run(MeasuredProcess(run, experiment)).predicted - float(run.tables["runs"]["utilization"].iat[0])


@pytest.mark.parametrize("seed", range(3))
def test_the_replay_of_a_run_by_task_has_what_was_measured(seed):
    assert abs(apart(simulated(seed))) < TOLERANCE


def test_an_away_time_that_is_doubled_is_noticed(monkeypatch):
    def twice(hosts, struck, from_s, until_s) -> HostDowntimes:
        return HostDowntimes(hosts, struck, from_s, 2 * until_s - from_s)

    monkeypatch.setattr(host_downtimes, "HostDowntimes", twice)
    assert apart(simulated(0)) < -TOLERANCE


def test_a_share_that_is_halved_is_noticed():
    cluster = EXPERIMENT.cluster.model_copy(update={"workers": 2 * HOSTS})
    assert apart(simulated(0), EXPERIMENT.model_copy(update={"cluster": cluster})) > TOLERANCE


def test_a_host_that_is_thought_to_be_there_is_noticed(monkeypatch):
    monkeypatch.setattr(replays, "host_downtimes", lambda *given: None)
    assert apart(simulated(0)) > TOLERANCE


def without(run: Simulated, table: str, **columns: object) -> Simulated:
    return replace(run, tables=run.tables | {table: run.tables[table].assign(**columns)})


def test_tables_that_do_not_say_when_executors_were_back_are_not_replayed():
    old = simulated(0)
    for lacking in (without(old, "faults", executors_ns=None), replace(old, tables=_without_the_column(old))):
        with pytest.raises(Unreplayable, match="when a host that was struck had an executor again"):
            apart(lacking)


def _without_the_column(run: Simulated) -> dict[str, pd.DataFrame]:
    return run.tables | {"faults": run.tables["faults"].drop(columns="executors_ns")}


def test_a_host_that_never_had_an_executor_again_is_away_until_the_end():
    run = simulated(0)
    faults = run.tables["faults"]
    never = faults["executors_ns"].where(faults.index < len(faults) - 1)
    longer_s = WINDOW_S - (faults["actual_ns"].iat[-1] - START_NS) / NS - AWAY_S
    assert apart(without(run, "faults", executors_ns=never)) - apart(run) == pytest.approx(
        -longer_s / HOSTS / WINDOW_S * (WORK_S + COST_S) / TRIGGER_S, abs=0.003
    )


def test_warm_ups_must_have_been_seen(monkeypatch):
    monkeypatch.setattr(host_downtimes, "FEWEST_RECOVERIES", 50)
    with pytest.raises(Unreplayable, match="warm-ups of a host's new executor"):
        apart(simulated(0))


def test_the_warm_up_of_a_fault_is_that_of_others(monkeypatch):
    """If one warm-up was long, it is not in the replay of its own fault, but may be in that of another run's."""
    run = MeasuredProcess(simulated(1), EXPERIMENT)
    known = dict.fromkeys(host_downtimes._warm_ups(run), 1.0)
    strike = next(each for each in run.strikes if each.fault in known)
    monkeypatch.setattr(host_downtimes, "_warm_ups", lambda source: known | {strike.fault: 100.0})
    own, other = (host_downtimes._cold([strike], run, np.random.default_rng(1), 50, own=own) for own in (True, False))
    assert (own == 1.0).all()
    assert (other == 100.0).any()
