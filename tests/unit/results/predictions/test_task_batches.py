"""Mode task from end to end: a small cluster simulated task by task, its ledger, and the replay of its faults.

The simulation knows nothing of the model: it moves in steps, and gives tasks to hosts as Spark's scheduler does. The
ledger is made by the code that books real runs.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import cast

import numpy as np
import pandas as pd
import pytest

from experiments.spec import Experiment
from models.replay.task_batches import Strike
from results.predictions import task_batches
from results.predictions.outages import StruckFault
from results.predictions.process import MeasuredProcess, Unreplayable
from results.predictions.replays import replay_run
from spark_jobs.tables import ledger, rows
from spark_jobs.tables.ledger import NS
from spark_jobs.tables.outages import Outage
from spark_jobs.tables.streaming.batches import Batch
from tests.unit.models.replay.keeping_hosts import KeepingHosts
from tests.unit.results.simulated_runs import START_NS, Simulated

HOSTS, STEP_S, TRIGGER_S, COST_S, WINDOW_S, BEFORE_S = 3, 0.02, 8.0, 0.5, 600.0, 24.0
TASKS_S = (*((0, 2.4),) * 6, *((1, 0.8),) * 6)  # the stage and the length of each task of a batch
USUAL_S = 2 * 2.4 + 2 * 0.8
AWAY_S, COLD_S = 9.0, (4.0, 2.0)
TOLERANCE = 0.01
DRIVER_KILL = {"kind": "driver-kill", "targets": "gateway"}
EXPERIMENT = Experiment(engine={"checkpoint_interval_s": TRIGGER_S, "recovery": "task"}, window_s=WINDOW_S)


@dataclass
class Host:
    """Where tasks run, one at a time."""

    back_s: float = -1e3
    executor: int = 0
    warm: set[int] = field(default_factory=lambda: {0, 1})  # in which stages
    task: int | None = None
    until_s: float = 0.0
    since_s: float = 0.0


@dataclass
class Cluster:
    """Three hosts that share the tasks of batches; one begins with the trigger, or when the one before has ended."""

    kills: list[tuple[float, int]]
    batches: list[tuple[float, float]] = field(default_factory=list)
    struck: list[tuple[float, int]] = field(default_factory=list)
    tasks: list[dict[str, object]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._hosts, self._due_s, self._began_s = [Host() for _ in range(HOSTS)], -BEFORE_S, None
        self._held: dict[int, int | None] = {}  # by task: which host has its output; None if it is out
        for now_s in np.arange(-BEFORE_S, WINDOW_S + BEFORE_S, STEP_S):
            self._strike(now_s)
            if self._began_s is None and now_s >= self._due_s:
                self._began_s, self._held = now_s, {}
            elif self._began_s is not None:
                self._work(now_s)

    def _strike(self, now_s: float) -> None:
        while self.kills and self.kills[0][0] <= now_s:
            at_s, number = self.kills.pop(0)
            host = self._hosts[number]
            if now_s >= host.back_s:
                self.struck.append((at_s, number))
                self._hosts[number] = Host(at_s + AWAY_S, host.executor + 1, set())
                self._held = {task: holder for task, holder in self._held.items() if holder != number}

    def _work(self, now_s: float) -> None:
        for number, host in enumerate(self._hosts):
            if host.task is not None and now_s >= host.until_s:
                self._tell(number, host)
                self._held[host.task] = number if TASKS_S[host.task][0] == 0 else None
                host.task = None
        if all(task in self._held for task, (stage, _) in enumerate(TASKS_S) if stage == 1):
            self.batches.append((self._began_s, now_s + COST_S))
            self._due_s = max((self._began_s + 1e-6) // TRIGGER_S * TRIGGER_S + TRIGGER_S, now_s + COST_S)
            self._began_s = None
            return
        first = any(task not in self._held for task, (stage, _) in enumerate(TASKS_S) if stage == 0)
        running = {host.task for host in self._hosts}
        open_tasks = [
            task
            for task, (stage, _) in enumerate(TASKS_S)
            if stage == (0 if first else 1) and task not in self._held and task not in running
        ]
        for host in self._hosts:
            if open_tasks and host.task is None and now_s >= host.back_s:
                host.task = open_tasks.pop(0)
                stage, length_s = TASKS_S[host.task]
                host.since_s = now_s
                host.until_s = now_s + length_s + (0.0 if stage in host.warm else COLD_S[stage])
                host.warm.add(stage)

    def _tell(self, number: int, host: Host) -> None:
        told = {"batch": len(self.batches), "stage": TASKS_S[host.task][0], "task": host.task % 6}
        where = {"host": f"worker-{number + 1}", "executor": f"{number}.{host.executor}", "succeeded": True}
        self.tasks.append(told | where | {"launched_ns": _at(host.since_s), "ended_ns": _at(host.until_s)})


def simulated(seed: int, faults: int = 20) -> Simulated:
    """The tables of one run."""
    rng = np.random.default_rng([3, seed])
    times_s = np.sort(rng.uniform(2.0, WINDOW_S - 20.0, faults))
    cluster = Cluster(list(zip(times_s, rng.integers(0, HOSTS, faults).tolist(), strict=True)))
    made = [_batch(number, *moments) for number, moments in enumerate(cluster.batches)]
    outages = [_outage(number, at_s) for number, (at_s, _) in enumerate(cluster.struck)]
    usual = ledger.UndisturbedPace(1000 / (USUAL_S * NS))
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
            "spark_tasks": pd.DataFrame(cluster.tasks),
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
    back_ns = _at(at_s + AWAY_S)
    return Outage(number, 1, _at(at_s), _at(at_s + 0.05), _at(at_s + 0.05), went_on=True, back_ns=back_ns)


def _fault(number: int, at_s: float, host: int) -> dict[str, object]:
    told = {"fault": number, "kind": "kill", "targets": f"worker-{host + 1}", "outcome": "injected"}
    told |= {"actual_ns": _at(at_s), "healed_ns": _at(at_s + 2), "executors_ns": _at(at_s + AWAY_S)}
    return told | {"cause": "a clock"}


def apart(run: Simulated) -> float:
    """How much more the replay has than was measured."""
    return replay_run(MeasuredProcess(run, EXPERIMENT)).predicted - float(run.tables["runs"]["utilization"].iat[0])


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.extended) for seed in (1, 2))])
def test_the_replay_of_a_run_by_task_has_what_was_measured(seed):
    assert abs(apart(simulated(seed))) < TOLERANCE


def test_batches_and_cold_executors_are_as_they_were_simulated():
    process = MeasuredProcess(simulated(0), EXPERIMENT)
    stages = task_batches._stages(process)
    length_s = process.undisturbed_s.mean()
    assert stages.tasks == (6, 6)
    assert np.array(stages.shares) * length_s == pytest.approx([4.8, 1.6], abs=0.1)
    assert task_batches._excesses_s(process).median().tolist() == pytest.approx(COLD_S, abs=0.1)
    assert task_batches._paces(process).mean().tolist() == pytest.approx([1.0, 1.0], abs=0.03)


def planted(monkeypatch, change) -> float:
    """How far the replay is off if each strike is changed."""
    monkeypatch.setattr(task_batches, "Strike", lambda *given: change(Strike(*given)))
    return apart(simulated(0))


def test_an_away_time_that_is_doubled_is_noticed(monkeypatch):
    assert planted(monkeypatch, lambda strike: replace(strike, back_s=strike.back_s + AWAY_S)) < -TOLERANCE


def test_executors_that_are_thought_to_be_warm_are_noticed(monkeypatch):
    assert planted(monkeypatch, lambda strike: replace(strike, cold_s=0.0 * strike.cold_s)) > TOLERANCE


def test_a_host_that_is_thought_to_be_there_is_noticed(monkeypatch):
    assert planted(monkeypatch, lambda strike: replace(strike, hosts=strike.hosts & False)) > TOLERANCE


def test_hosts_that_are_thought_to_keep_what_they_did_are_noticed(monkeypatch):
    monkeypatch.setattr(task_batches, "TaskBatches", KeepingHosts)
    assert apart(simulated(0)) > TOLERANCE


def idle_between_batches(monkeypatch) -> None:
    """Hosts are mostly away for a whole batch, and back before the next one is due."""
    engine = {"checkpoint_interval_s": 20.0, "recovery": "task"}
    changed = {"TRIGGER_S": 20.0, "AWAY_S": 27.0, "WINDOW_S": 1200.0}
    for name, value in (changed | {"EXPERIMENT": Experiment(engine=engine, window_s=1200.0)}).items():
        monkeypatch.setattr(f"{__name__}.{name}", value)


def test_a_cold_executor_costs_in_the_ledger_what_it_costs_in_the_replay(monkeypatch):
    """Also in a batch that begins with all hosts. If the ledger counts it as useful, the batch is slow twice."""
    idle_between_batches(monkeypatch)
    assert abs(apart(simulated(0))) < TOLERANCE
    monkeypatch.setattr(ledger._Timeline, "_cold", {})
    assert apart(simulated(0)) < -TOLERANCE


def without(run: Simulated, table: str, **columns: object) -> Simulated:
    return replace(run, tables=run.tables | {table: run.tables[table].assign(**columns)})


def test_tables_that_do_not_say_when_executors_were_back_are_not_replayed():
    old = simulated(0)
    lacking = replace(old, tables=old.tables | {"faults": old.tables["faults"].drop(columns="executors_ns")})
    for each in (without(old, "faults", executors_ns=None), lacking):
        with pytest.raises(Unreplayable, match="when a host that was struck had an executor again"):
            apart(each)


def test_a_run_whose_tables_do_not_tell_its_tasks_is_not_replayed():
    old = simulated(0)
    tables = {name: table for name, table in old.tables.items() if name != "spark_tasks"}
    with pytest.raises(Unreplayable, match="there is no table spark_tasks"):
        apart(replace(old, tables=tables))
    with pytest.raises(Unreplayable, match="no task of a batch that no fault touched"):
        apart(without(old, "spark_tasks", succeeded=False))


def test_cold_executors_must_have_been_seen(monkeypatch):
    monkeypatch.setattr(task_batches, "FEWEST_RECOVERIES", 50)
    with pytest.raises(Unreplayable, match="the first task on a host that had come back of stage 0"):
        apart(simulated(0))


def test_the_cold_executor_of_a_fault_is_that_of_others(monkeypatch):
    """If one was slow, it is not in the replay of its own fault, but may be in that of another run's."""
    run = MeasuredProcess(simulated(1), EXPERIMENT)
    known = task_batches._excesses_s(run)
    fault = known.dropna().index[0]
    known.loc[:], known.loc[fault] = 1.0, 100.0
    monkeypatch.setattr(task_batches, "_excesses_s", lambda source: known)
    rng = np.random.default_rng(1)
    own, other = (
        next(
            strike.cold_s
            for strike, told in zip(task_batches._strikes(run, source, rng, 500), run.strikes, strict=True)
            if told.fault == fault
        )
        for source in (run, MeasuredProcess(simulated(1), EXPERIMENT))
    )
    assert (own == 1.0).all()
    assert (other == 100.0).any()


class OneFaultDraws:
    """A generator for which only one of the faults has any weight."""

    def __init__(self, column: int) -> None:
        self._column = column

    def exponential(self, size):
        weights = np.zeros(size)
        weights[:, self._column] = 1.0
        return weights

    def uniform(self, size):
        return np.full(size, 0.5)


def test_a_run_resamples_the_same_faults_for_each_strike_each_stage_and_both_costs(monkeypatch):
    """Though the own fault is dropped for one strike, and another one was not seen in one stage."""
    run = MeasuredProcess(simulated(0), EXPERIMENT)
    faults = [strike.fault for strike in run.strikes]
    numbered = pd.DataFrame({stage: [float(fault) for fault in faults] for stage in (0, 1)}, index=faults)
    monkeypatch.setattr(task_batches, "_paces", lambda source: numbered)
    monkeypatch.setattr(task_batches, "_excesses_s", lambda source: numbered.mask(_first_of_stage_1(numbered)))
    drawn = task_batches._strikes(run, run, OneFaultDraws(5), 3)
    for strike, given in zip(run.strikes, drawn, strict=True):
        if strike.fault != faults[5]:
            assert (given.cold_s == faults[5]).all()
            assert (given.pace == faults[5]).all()


def _first_of_stage_1(table):
    hidden = pd.DataFrame(data=False, index=table.index, columns=table.columns)
    hidden.iloc[0, 1] = True
    return hidden


@pytest.mark.parametrize("others", [1, 2])
def test_so_many_faults_must_be_known_besides_a_fault_itself(monkeypatch, others):
    run = MeasuredProcess(simulated(0), EXPERIMENT)
    known = task_batches._excesses_s(run)
    known.iloc[1 + others :] = np.nan
    known.iloc[: 1 + others] = 1.0
    monkeypatch.setattr(task_batches, "_excesses_s", lambda source: known)
    rng = np.random.default_rng(1)
    if others < 2:
        with pytest.raises(Unreplayable, match="of stage 0 was measured after 1 other faults; at least 2 are needed"):
            task_batches._strikes(run, run, rng, 5)
    else:
        assert (task_batches._strikes(run, run, rng, 5)[0].cold_s == 1.0).all()


def test_a_run_whose_faults_all_stop_the_query_needs_no_tasks():
    """A kill of the driver does, in mode task, too."""
    run = without(simulated(0), "faults", kind="driver-kill")
    tables = {name: table for name, table in run.tables.items() if name != "spark_tasks"}
    whole = MeasuredProcess(replace(run, tables=tables), EXPERIMENT)
    assert replay_run(whole).timed.lost_s.shape[1] == len(whole.strikes)


def test_a_host_that_dies_amid_the_restart_of_the_driver_does_not_end_that():
    """The driver dies, and a host 4 s later; 10 s after the driver the query is ready, and warm 3 s after that."""
    run = simulated(0)
    faults, died_ns = run.tables["faults"], run.tables["faults"]["actual_ns"][0]
    struck_ns = [died_ns, died_ns + round(4 * NS), *faults["actual_ns"][2:]]
    kinds, targets = (["driver-kill", *faults["kind"][1:]], ["gateway", *faults["targets"][1:]])
    edges_ns = died_ns + (np.array([0.0, 10.0, 13.0, 14.0]) * NS).astype("int64")
    down = pd.DataFrame({"start_ns": edges_ns[:-1], "end_ns": edges_ns[1:], "class": ["restart", "warm-up", "useful"]})
    down = down.assign(seconds=np.diff(edges_ns) / NS, fault=[0.0, 0.0, np.nan])
    struck = without(run, "faults", actual_ns=struck_ns, kind=kinds, targets=targets)
    ledger = pd.concat([run.tables["ledger"], down], ignore_index=True)
    process = MeasuredProcess(replace(struck, tables=struck.tables | {"ledger": ledger}), EXPERIMENT)
    timed = replay_run(process).timed
    assert timed.down_s[:, :2].mean(axis=0) == pytest.approx([10.0, 0.0], abs=1e-6)
    assert timed.warm_up_s[:, :2].mean(axis=0) == pytest.approx([3.0, 0.0], abs=1e-6)


def test_a_fault_strikes_each_of_its_hosts():
    run = simulated(0)
    targets = ["worker-3,worker-1", *run.tables["faults"]["targets"][1:]]
    process = MeasuredProcess(without(run, "faults", targets=targets), EXPERIMENT)
    strikes = task_batches._strikes(process, process, np.random.default_rng(1), 5)
    assert strikes[0].hosts.tolist() == [True, False, True]
    assert [each.hosts.sum() for each in strikes[1:]] == [1] * (len(strikes) - 1)


def test_a_kill_of_the_driver_leaves_each_other_fault_its_host():
    """The gateway is none of the hosts, all of which are struck."""
    run = simulated(0)
    faults = run.tables["faults"]
    assert faults["targets"][1:].nunique() == HOSTS
    first = {"kind": ["driver-kill", *faults["kind"][1:]], "targets": ["gateway", *faults["targets"][1:]]}
    process = MeasuredProcess(without(run, "faults", **first), EXPERIMENT)
    driver, *others = task_batches._strikes(process, process, np.random.default_rng(1), 5)
    assert driver.hosts is None
    assert [each.hosts.sum() for each in others] == [1] * len(others)


def test_the_cold_executor_is_the_one_that_came_first_whatever_its_name() -> None:
    """The ninth executor ended early, and the tenth took its place."""
    strike = StruckFault(0, "kill", ("worker-1",), struck_s=10.0, back_s=12.0)
    names = pd.MultiIndex.from_tuples([("worker-1", "0.10"), ("worker-1", "0.9")], names=["host", "executor"])
    firsts = pd.DataFrame({"executor": ["0.10", "0.9"], "stage": 0, "excess_s": [1.0, 4.0]})
    process = cast(MeasuredProcess, SimpleNamespace(strikes=[strike]))
    found = task_batches._of_fault(process, strike, firsts, pd.Series([30.0, 20.0], names))
    assert found.to_dict() == {0: 4.0}


def test_executors_of_another_driver_with_the_same_names_are_others():
    """Fault 10 is a kill of the driver. The next driver numbers its executors from 0 again."""
    run = simulated(0)
    faults, tasks = run.tables["faults"], run.tables["spark_tasks"]
    killed_ns = faults["actual_ns"].iat[10]
    told = {name: faults[name].mask(faults.index == 10, value) for name, value in DRIVER_KILL.items()}
    later = tasks["launched_ns"] > killed_ns
    number = tasks["executor"].str.partition(".")[2].astype(int)
    first = number[later].groupby(tasks["host"][later]).min()
    again = (number - tasks["host"].map(first)).astype(str)
    names = tasks["executor"].mask(later, tasks["executor"].str[:2] + again)
    assert names[later].isin(names[~later]).any()
    process = MeasuredProcess(without(without(run, "faults", **told), "spark_tasks", executor=names), EXPERIMENT)
    excesses_s = task_batches._excesses_s(process).drop(index=range(10)).dropna()
    assert len(excesses_s) > 5
    assert excesses_s.median().tolist() == pytest.approx(COLD_S, abs=0.1)


@pytest.mark.parametrize("drivers", [1, 3])
def test_how_long_a_driver_takes_to_restart_is_not_known_from_hosts_that_died(drivers):
    """The recoveries of hosts took no time, as the others went on; those of drivers stand for each other."""
    run = simulated(0)
    booked = run.tables["ledger"]
    killed = [4, 10, 16][:drivers]  # far enough from other faults for a recovery of their own
    classes = booked["class"].mask(booked["fault"].isin(killed), "restart")
    faults = run.tables["faults"]
    told = {name: faults[name].mask(faults["fault"].isin(killed), value) for name, value in DRIVER_KILL.items()}
    changed = without(without(run, "ledger", **{"class": classes}), "faults", **told)
    replayed = replay_run(MeasuredProcess(changed, EXPERIMENT))
    columns = [column for column, strike in enumerate(replayed.strikes) if strike.fault in killed]
    as_it_was_s, predicted_s = replayed.timed.down_s[:, columns], replayed.down_s[:, columns]
    assert (as_it_was_s > 0).all()
    if drivers == 1:
        assert (predicted_s == as_it_was_s).all()
    else:
        own_s, drawn_s = as_it_was_s[0].round(6), predicted_s.round(6)
        assert len({*own_s}) == drivers
        for column, its_own_s in enumerate(own_s):
            assert {*drawn_s[:, column]} == {*own_s} - {its_own_s}
