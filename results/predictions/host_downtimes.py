"""The hosts that were away while the query went on, in mode task: Spark gives their work to those that are left.

A host is down from the strike until it has a Spark executor again, which the tables say. Its new executor is cold, and
the first batch is longer by what a warm-up takes. So long as the batches are, that is as if the host were down for
warm-up / share longer, its share being that of one host. What a warm-up takes is known from the ledger, less what hosts
did not do that were away during it. It is that of *other* faults: else the excess of a batch would explain itself.
"""

from __future__ import annotations

import numpy as np

from models.replay.downtimes import HostDowntimes
from models.replay.draws import draw
from models.replay.work import Array
from results.predictions.process import FEWEST_RECOVERIES, MeasuredProcess, StruckFault, Unreplayable


def host_downtimes(
    struck: MeasuredProcess, source: MeasuredProcess, rng: np.random.Generator, runs: int
) -> HostDowntimes | None:
    """The downtimes of a run, with warm-ups that the source measured; None if every fault stopped the whole query."""
    partial = [strike for strike in struck.strikes if not struck.stops_all(strike)]
    if not partial:
        return None
    cold_s = _cold(partial, source, rng, runs, own=source is struck)
    rows = [(host, number) for number, strike in enumerate(partial) for host in strike.targets]
    numbers = [number for _, number in rows]
    back_s = np.array([_until_s(struck, strike) for strike in partial])
    from_s = np.array([strike.struck_s for strike in partial])
    names = [host for host, _ in rows]
    hosts = [names.index(name) for name in names]
    return HostDowntimes(struck.experiment.cluster.workers, hosts, from_s[numbers], (back_s + cold_s)[:, numbers])


def _until_s(process: MeasuredProcess, strike: StruckFault) -> float:
    """When the hosts of a fault had executors again, or the end of the window."""
    if all(each.executors_s is None for each in process.strikes):
        raise Unreplayable("table faults does not say when a host that was struck had an executor again")
    return process.window_s if strike.executors_s is None else strike.executors_s


def _cold(
    partial: list[StruckFault], source: MeasuredProcess, rng: np.random.Generator, runs: int, *, own: bool
) -> Array:
    """For how long a host more is as good as down while its executor is cold, (runs, faults)."""
    known = _warm_ups(source)
    if len(known) < FEWEST_RECOVERIES:
        seen = f"{len(known)} warm-ups of a host's new executor were seen without a further fault"
        raise Unreplayable(f"{seen}; at least {FEWEST_RECOVERIES} are needed")
    weights, found = rng.exponential(size=(runs, len(known))), []
    lengths_s = np.array(list(known.values()))
    for strike in partial:
        pool = [index for index, fault in enumerate(known) if not (own and fault == strike.fault)]
        found.append(lengths_s[pool][draw(rng, weights[:, pool])])
    return np.stack(found, axis=1)


def _warm_ups(source: MeasuredProcess) -> dict[int, float]:
    """The warm-up of each fault whose batch nothing else struck, as so much longer a downtime of its hosts [s]."""
    hosts, found = source.experiment.cluster.workers, dict[int, float]()
    for recovery in source.recoveries:
        strike, outage = recovery.strikes[-1], recovery.outage
        if source.stops_all(strike) or len(recovery.strikes) > 1:
            continue
        begin_s, end_s = source.warm_up_batches.get(strike.fault, (outage.end_s, outage.end_s))
        if any(begin_s <= other.struck_s < end_s for other in source.strikes):
            continue
        missing_s = sum(
            each.hosts / hosts * max(0.0, min(_until_s(source, each), end_s) - max(each.struck_s, begin_s))
            for each in source.strikes
            if not source.stops_all(each)
        )
        found[strike.fault] = max(0.0, outage.warm_up_s - missing_s) * hosts / strike.hosts
    return found
