"""A run replayed: checkpoint and restart over the faults that struck it, with the costs that were measured."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from experiments.engines import Protocol, TriggerMode
from experiments.loads import LoadMode
from models.replay.draws import draw, means
from models.replay.micro_batches import MicroBatches
from models.replay.periods import Periods
from models.replay.process import Faults, Replayed, replay
from models.replay.work import Array, Work
from results.process import Process, Strike

RUNS, SEED = 1000, 20_190
PERCENTILES = (2.5, 97.5)
FEWEST_FAULTS, FEWEST_COSTS = 3, 3


class Unreplayable(Exception):
    """The tables lack what a replay takes; the message says what."""


@dataclass(frozen=True)
class Replay:
    """The replays of one run; `strikes` are in the order of the columns of `replayed`."""

    strikes: list[Strike]
    replayed: Replayed

    @property
    def predicted(self) -> float:
        return float(self.replayed.utilizations.mean())

    def useful_by(self, moments_s: Array) -> Array:
        """Useful time until each of these moments [s], mean of the replays."""
        return self.replayed.useful_by(np.asarray(moments_s, dtype=float))

    @property
    def bounds(self) -> tuple[float, float]:
        """In 95 % of the replays utilization is between these."""
        low, high = np.percentile(self.replayed.utilizations, PERCENTILES)
        return float(low), float(high)


def replayed(struck: Process, costs: Process | None = None) -> Replay:
    """Replay the faults of a run `RUNS` times, with its own costs, or with those of another run of the same experiment.

    Each replay draws c, R and warm-up from resampled measurements (Rubin's Bayesian bootstrap). What an outage of
    this run took is never used for that outage itself. Raises `Unreplayable` if the tables lack something.
    """
    rng = np.random.default_rng(SEED)
    source = costs or struck
    if len(struck.strikes) < FEWEST_FAULTS:
        raise Unreplayable(f"{len(struck.strikes)} faults took effect; at least {FEWEST_FAULTS} are needed")
    if len(source.costs_s) < FEWEST_COSTS:
        raise Unreplayable(f"{len(source.costs_s)} checkpoints were measured; at least {FEWEST_COSTS} are needed")
    work, since_s = _work(struck, source, rng)
    faults = _faults(struck, source, rng)
    return Replay(struck.strikes, replay(work, faults, struck.window_s, since_s))


def _faults(struck: Process, source: Process, rng: np.random.Generator) -> Faults:
    """The faults that struck, each with a recovery drawn from other outages, of its own kind if there are any."""
    waits = source.waits_for_hosts
    weights = rng.exponential(size=(RUNS, len(source.clean)))
    columns = []
    for strike in struck.strikes:
        pool = _others(strike, source, own=source is struck)
        drawn = draw(rng, weights[:, pool])
        outages = [source.clean[index] for index in pool]
        away_s = [(s.back_s - s.struck_s) if waits else 0.0 for s, _ in outages]
        restarts_s = np.array([o.down_s - away for (_, o), away in zip(outages, away_s, strict=True)])
        warm_ups_s = np.array([o.warm_up_s for _, o in outages])
        back_s = strike.back_s if waits else strike.struck_s
        columns.append((np.full(RUNS, strike.struck_s), np.full(RUNS, back_s), restarts_s[drawn], warm_ups_s[drawn]))
    return Faults(*(np.stack(column, axis=1) for column in zip(*columns, strict=True)))


def _others(strike: Strike, source: Process, *, own: bool) -> list[int]:
    """The outages that may stand for that of a fault: not its own one; of the same kind rather than of another."""
    found = [i for i, (other, _) in enumerate(source.clean) if not (own and other.fault == strike.fault)]
    if not found:
        raise Unreplayable("no recovery from another fault was measured to the end without a further fault")
    return [i for i in found if source.clean[i][0].kind == strike.kind] or found


def _work(struck: Process, source: Process, rng: np.random.Generator) -> tuple[Work, Array]:
    """How the engine works, and since when it is at the work that is under way as the window opens."""
    engine, periods = struck.experiment.engine, max(1, round(struck.window_s / source.interval_s))
    costs_s = means(rng, source.costs_s, RUNS, periods)
    load = _load(struck)
    if not struck.works_in_batches:
        keeps = engine.protocol_run is not Protocol.NONE
        interval_s = source.interval_s if keeps else 1e3 * struck.window_s
        costs_s = costs_s if keeps else np.zeros(RUNS)
        work = Periods(interval_s, costs_s, np.full(RUNS, source.store_s), load + float(costs_s.mean()) / interval_s)
        return work, -rng.uniform(0.0, min(interval_s, struck.window_s), RUNS)
    if len(source.batches_s) < FEWEST_COSTS:
        raise Unreplayable(f"{len(source.batches_s)} batches ran undisturbed; at least {FEWEST_COSTS} are needed")
    full_s = means(rng, source.batches_s, RUNS, periods)
    triggered = engine.trigger is TriggerMode.MICRO_BATCH
    phase_s = struck.start_ns / 1e9 % engine.checkpoint_interval_s
    work = MicroBatches(
        costs_s,
        full_s,
        interval_s=engine.checkpoint_interval_s if triggered else None,
        trigger_s=-phase_s,
        load=load,
        lost_share=struck.lost_share,
    )
    return work, np.full(RUNS, -phase_s) if triggered else -rng.uniform(0.0, 1.0, RUNS) * full_s


def _load(struck: Process) -> float:
    """Seconds of work that come in a second; more than there is time for where the load saturates the query."""
    if struck.experiment.load.mode is LoadMode.SATURATING:
        return np.inf
    rates = (struck.load_rate, struck.service_rate)
    if any(rate is None or rate != rate for rate in rates):
        raise Unreplayable("the service rate is not known: no undisturbed batch in the window gave one")
    return float(struck.load_rate) / float(struck.service_rate)
