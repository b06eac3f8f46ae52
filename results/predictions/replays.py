"""A run replayed: checkpoint and restart over the faults that struck it, with the costs that were measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from experiments.engines import BY_BATCH, ProtocolName, TriggerMode
from experiments.loads import LoadMode
from experiments.wording import counted
from models.replay.borders import Borders
from models.replay.draws import Pool, means
from models.replay.micro_batches import MicroBatches
from models.replay.periods import Periods, Rounds
from models.replay.process import Faults, ReplayResult, replay
from models.replay.work import Array, Work
from results.predictions.outages import LedgerOutage, Recovery, StruckFault
from results.predictions.process import FEWEST_RECOVERIES, MeasuredProcess, Unreplayable
from results.predictions.task_batches import task_batches

RUNS, SEED = 1000, 20_190
PERCENTILES = (2.5, 97.5)
FEWEST_FAULTS, FEWEST_COSTS = 3, 3
MOST_IDLE = 0.05  # of the window, under a load that saturates: between two micro-batches there is a short wait


@dataclass(frozen=True)
class RunReplay:
    """The replays of one run; the columns of its arrays are the faults that struck, `strikes`, in their order.

    timed      the process with the recoveries as long as they were: what was lost, and what was useful
    down_s     (RUNS, faults), detection and restart as recoveries from other faults predict them
    warm_up_s  the same of the warm-up
    """

    strikes: list[StruckFault]
    window_s: float
    timed: ReplayResult
    down_s: Array
    warm_up_s: Array

    @property
    def utilizations(self) -> Array:
        """(RUNS,): useful in the timed replay, less what the predicted recoveries take longer than the actual ones."""
        longer_s = (self.down_s - self.timed.down_s + self.warm_up_s - self.timed.warm_up_s).sum(axis=1)
        return self.timed.utilizations - longer_s / self.window_s

    @property
    def predicted(self) -> float:
        """Mean utilization of the replays, by which the run is judged."""
        return float(self.utilizations.mean())

    @property
    def bounds(self) -> tuple[float, float]:
        """In 95 % of the replays utilization is between these."""
        low, high = np.percentile(self.utilizations, PERCENTILES)
        return float(low), float(high)


def replay_run(struck: MeasuredProcess, costs: MeasuredProcess | None = None) -> RunReplay:
    """Replay the faults of a run `RUNS` times, with its own costs, or with those of another run of the same experiment.

    Chance decides when faults strike, and how long each recovery and each batch takes; all of it decides how far the
    work has come that the next fault takes back. So the process is replayed with the times of this run. How long a
    recovery should have taken is predicted apart, from recoveries from other faults, and c is the mean. Each replay
    draws its costs from resampled measurements (Rubin's Bayesian bootstrap). Raises `Unreplayable` if the tables lack
    something.
    """
    rng = np.random.default_rng(SEED)
    source = costs or struck
    if len(struck.strikes) < FEWEST_FAULTS:
        raise Unreplayable(f"{counted(len(struck.strikes), 'fault')} took effect; at least {FEWEST_FAULTS} are needed")
    if len(source.costs_s) < FEWEST_COSTS:
        raise Unreplayable(f"{len(source.costs_s)} checkpoints were measured; at least {FEWEST_COSTS} are needed")
    if len(source.recoveries) < FEWEST_RECOVERIES:
        seen = f"{len(source.recoveries)} recoveries were seen to their end"
        raise Unreplayable(f"{seen}; at least {FEWEST_RECOVERIES} are needed")
    if struck.ledger.failed_by_itself:
        raise Unreplayable("the query was down once without a fault, which a replay of faults cannot know")
    work, since_s = _work(struck, source, rng)
    timed = replay(work, _as_they_went(struck), struck.window_s, since_s)
    down_s, warm_up_s = _predicted(struck, source, timed, rng)
    return RunReplay(struck.strikes, struck.window_s, timed, down_s, warm_up_s)


def _as_they_went(struck: MeasuredProcess) -> Faults:
    """The faults that struck, with the recoveries as long as they were.

    If a fault cut off the first batch after a recovery, the system was never at its usual pace: the warm-up lasts on.
    In mode task the system goes on at once, with hosts that are down; unless the driver restarts just then, which takes
    as long as it takes.
    """
    whole = {strike.fault for strike in struck.strikes if struck.stops_all(strike)}
    stopped, columns = [outage for outage in struck.ledger.outages if outage.fault in whole], []
    for strike in struck.strikes:
        outage = struck.ledger.outage_of.get(strike.fault) if strike.fault in whole else _amid_restart(strike, stopped)
        struck_s = strike.struck_s
        if outage and outage.fault == strike.fault:
            struck_s = max(struck_s, outage.start_s)  # a batch that is being committed ends before that
        restart_s = max(0.0, outage.ready_s - struck_s) if outage else 0.0
        lasts_s = outage.warm_up_s if outage and outage.is_whole else struck.window_s
        columns.append((struck_s, restart_s, lasts_s if outage else 0.0))
    return Faults(*(np.tile(column, (RUNS, 1)) for column in zip(*columns, strict=True)))


def _amid_restart(strike: StruckFault, outages: list[LedgerOutage]) -> LedgerOutage | None:
    """The one of these outages before whose end of the restart a fault struck; None if there is none."""
    return next((outage for outage in outages if outage.start_s <= strike.struck_s < outage.ready_s), None)


def _predicted(
    struck: MeasuredProcess, source: MeasuredProcess, timed: ReplayResult, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Detection + restart, and warm-up, of the outages by which it is known what a recovery takes.

    Each is drawn from the outages of other faults, of its own kind if there are any. The faults of a burst strike when
    they did, and the recovery is from the last of them. If too few faults stopped the whole query, since other hosts
    went on after the others, nobody knows how long these few should have taken: then each takes as long as it took.
    Raises `Unreplayable` if the costs are those of another run, which had too few.
    """
    known, down_s, warm_up_s = _whole(source), timed.down_s.copy(), timed.warm_up_s.copy()
    if len(known) < FEWEST_RECOVERIES:
        if source is not struck and _whole(struck):
            raise Unreplayable(f"fewer than {FEWEST_RECOVERIES} faults of the other run stopped the whole query")
        return down_s, warm_up_s
    waits, pools = source.waits_for_hosts, _Pools(known, rng)
    restarts_s = np.array([each.restart_s - (each.away_s if waits else 0.0) for each in known])
    warm_ups_s = np.array([each.outage.warm_up_s for each in known])
    columns = {strike.fault: column for column, strike in enumerate(struck.strikes)}
    for number, recovery in enumerate(_whole(struck)):
        column = columns[recovery.outage.fault]
        drawn = pools.draw(rng, recovery.kind, number if source is struck else None)
        known_s = recovery.extended_s + (recovery.away_s if waits else 0.0)
        down_s[:, column] = restarts_s[drawn] + known_s
        warm_up_s[:, column] = warm_ups_s[drawn]
    return down_s, warm_up_s


def _whole(process: MeasuredProcess) -> list[Recovery]:
    """The recoveries from faults that stopped the whole query."""
    return [each for each in process.recoveries if process.stops_all(each.strikes[0])]


class _Pools:
    """The recoveries that may stand for another: of the same kind rather than of another, and never itself."""

    def __init__(self, recoveries: Sequence[Recovery], rng: np.random.Generator) -> None:
        weights = rng.exponential(size=(RUNS, len(recoveries)))
        members: dict[str | None, list[int]] = {None: list(range(len(recoveries)))}
        for number, each in enumerate(recoveries):
            members.setdefault(each.kind, []).append(number)
        self._pools = {kind: (np.array(of_one), Pool(weights[:, of_one])) for kind, of_one in members.items()}

    def draw(self, rng: np.random.Generator, kind: str, own: int | None) -> npt.NDArray[np.intp]:
        """The numbers of recoveries that stand for one of a kind, one in each replay; `own` is its own number."""
        members, pool = self._pools.get(kind, self._pools[None])
        if own is None:
            return members[pool.draw(rng)]
        if len(members) == 1:
            members, pool = self._pools[None]
        return members[pool.draw(rng, int(np.searchsorted(members, own)))]


def _work(struck: MeasuredProcess, source: MeasuredProcess, rng: np.random.Generator) -> tuple[Work, Array]:
    """How the engine works, and since when it is at the work that is under way as the window opens."""
    engine, periods = struck.experiment.engine, max(1, round(struck.window_s / source.interval_s))
    costs_s = means(rng, source.costs_s, RUNS, periods)
    if not struck.works_in_batches:
        if struck.experiment.load.mode is LoadMode.SATURATING and struck.ledger.idle_share > MOST_IDLE:
            raise Unreplayable(
                f"the load was to saturate the query, which was idle for {struck.ledger.idle_share:.0%} of the run"
            )
        if engine.protocol_run in BY_BATCH:
            return _borders(struck, source, costs_s, rng)
        return _periods(struck, source, costs_s), -rng.uniform(0.0, min(source.interval_s, struck.window_s), RUNS)
    batches = struck.batches
    if batches.empty:
        raise Unreplayable("no batch was committed")
    interval_s = engine.checkpoint_interval_s if engine.trigger is TriggerMode.MICRO_BATCH else None
    trigger_s = -(struck.start_ns / 1e9 % engine.checkpoint_interval_s)
    work: Work
    if all(struck.stops_all(strike) for strike in struck.strikes):
        lengths_s, commits_s = (batches[name].to_numpy() for name in ("length_s", "commit_s"))
        work = MicroBatches(costs_s, lengths_s, interval_s=interval_s, trigger_s=trigger_s, commits_s=commits_s)
    else:
        work = task_batches(struck, source, costs_s, rng, interval_s=interval_s, trigger_s=trigger_s)
    return work, np.full(RUNS, min(0.0, float(batches["start_s"].iloc[0])))


def _periods(struck: MeasuredProcess, source: MeasuredProcess, costs_s: Array) -> Work:
    """The testbed: rounds by its coordinator's clock, or periods of its partitions, which begin with each recovery."""
    protocol, load = struck.experiment.engine.protocol_run, _load(struck)
    if protocol is ProtocolName.NONE:
        return Periods(1e3 * struck.window_s, np.zeros(RUNS), np.zeros(RUNS), load)
    load += float(costs_s.mean()) / source.interval_s
    if protocol is ProtocolName.COORDINATED:
        rounds = struck.partition_checkpoints.rounds
        taken_s, complete_s = (rounds[name].to_numpy() for name in ("taken_s", "complete_s"))
        return Rounds(source.interval_s, costs_s, taken_s, complete_s, load)
    if struck.experiment.engine.staggered_run:
        raise Unreplayable("slots take their checkpoints one after the other: no model says which of them are undone")
    stores_s = np.full(RUNS, _store_s(source))
    return Periods(source.interval_s, costs_s, stores_s, load, _lost_shares(struck, source))


def _store_s(source: MeasuredProcess) -> float:
    """From when a partition takes a checkpoint until it is stored [s]."""
    store_s = source.partition_checkpoints.store_s
    if store_s is None:
        raise Unreplayable("no partition has stored a checkpoint")
    return store_s


def _lost_shares(struck: MeasuredProcess, source: MeasuredProcess) -> list[float]:
    """How much each fault takes of the work since the last checkpoints, of hosts that take them on their own.

    If those that are left take one before the recovery, only the part of the hosts that died goes back.
    """
    workers, takes_s = struck.experiment.cluster.workers, (source.interval_s, _store_s(source))
    return [
        strike.hosts / workers if struck.ledger.leaves_time_for_a_checkpoint(strike, *takes_s) else 1.0
        for strike in struck.strikes
    ]


def _borders(
    struck: MeasuredProcess, source: MeasuredProcess, costs_s: Array, rng: np.random.Generator
) -> tuple[Work, Array]:
    """The testbed with checkpoints at the borders of batches, which lie at multiples of a time since the epoch.

    A load below saturation leaves no backlog as the window opens. How far one above has grown is not known, and only
    decides where between two borders the system is.
    """
    engine, load = struck.experiment.engine, _rate_share(struck)
    length_s = engine.batch_length_run_s
    interval_s = round(engine.checkpoint_interval_s / length_s) * length_s
    load += float(costs_s.mean()) / interval_s
    behind_s = rng.uniform(0.0, interval_s, RUNS) if load >= 1.0 else np.zeros(RUNS)
    border_s = -(struck.start_ns % round(interval_s * 1e9)) / 1e9
    lag_s = source.partition_checkpoints.border_lag_s
    if lag_s is None:
        raise Unreplayable("no border in the window has a checkpoint of every partition")
    lags_s = np.full(RUNS, lag_s)
    return Borders(interval_s, border_s, costs_s, lags_s, load, behind_s), np.full(RUNS, -2.0 * interval_s)


def _load(struck: MeasuredProcess) -> float:
    """Seconds of work that come in a second; more than there is time for where the load saturates the query."""
    return np.inf if struck.experiment.load.mode is LoadMode.SATURATING else _rate_share(struck)


def _rate_share(struck: MeasuredProcess) -> float:
    """The rate at which records come over that at which they are processed."""
    rates = (struck.load_rate, struck.service_rate)
    if any(pd.isna(rate) for rate in rates):
        raise Unreplayable("the service rate is not known: no undisturbed batch in the window gave one")
    return float(struck.load_rate) / float(struck.service_rate)
