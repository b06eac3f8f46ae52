"""How many probes a search for the sustainable rate takes, how long, and how often its bracket holds the true rate.

`.venv/bin/python -m benchmarks.testbed.search_probes [--searches 200]` searches simulated queries with the settings of
figure 7 of `checkmate`. A query reports twice a second what it has read. Its speed scatters from probe to probe, by
several shares, and within a probe; the generator slows it down. Each is searched twice: as a run does it, and by
doubling from `load.rate` and bisection, as it was before. Prints a row for each share and way.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from math import exp, log, sqrt
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.arguments import at_least_one
from benchmarks.one_line_errors import one_line_errors
from models.sustainable.duration import burst_s, settle_s
from models.sustainable.lag import MOST_GROWTH, ProbeOutcome, is_overwhelmed, judge
from models.sustainable.search import Search
from models.sustainable.service_rate import Report, of_burst, service_rate
from reproductions.checkmate.experiments import searched

EXPERIMENT = searched(1)[0]
LOAD, INTERVAL_S, PROBE_S = EXPERIMENT.load, EXPERIMENT.engine.checkpoint_interval_s, EXPERIMENT.probe_s
SLOWEST, FASTEST = 2_000.0, 40_000.0  # records/s that a query can sustain
NOISES = (0.0, 0.02, 0.05, 0.1)  # standard deviations of the logarithm of the speed, from probe to probe
TICK_S = 0.5  # between two reports
SCATTER = 0.1  # standard deviation of the speed in a tick
ORDERS_S = 2.5  # from an order to when it takes effect, and from what was read to when it is noticed
GENERATOR_SHARE, SLOWED_MOST = 0.1, 0.5  # of the query's work for a record, the generator's; of the speed
NS = 1e9


@dataclass(frozen=True)
class ProbeResult:
    """What came of a probe, how many records/s were read meanwhile, and how long it took until all was read [s]."""

    outcome: ProbeOutcome
    pace: float | None
    seconds: float


@dataclass(frozen=True)
class Found:
    """The bracket of a search [records/s], how many probes it took, and how long [s]."""

    low: float | None
    high: float | None
    probes: int
    seconds: float


class SimulatedQuery:
    """A query that sustains a known rate.

    true_rate  at which its lag grows as fast as still counts as bounded [records/s]
    noise      standard deviation of the logarithm of its speed, from probe to probe
    """

    def __init__(self, true_rate: float, noise: float, random: np.random.Generator) -> None:
        self.true_rate, self._noise, self._random = true_rate, noise, random
        self._alone = true_rate * (1 + GENERATOR_SHARE - MOST_GROWTH)  # records/s while the generator rests

    def _speed(self, load: float) -> float:
        """Records/s beside this load, about as fast as for the rest of a probe."""
        slowed = max(self._alone - GENERATOR_SHARE * load, SLOWED_MOST * self._alone)
        return slowed * exp(self._random.normal(0, self._noise))

    def _work(self, speed: float) -> float:
        """How many records it can read in a tick."""
        return max(0.0, speed * TICK_S * self._random.normal(1, SCATTER))

    def probe(self, rate: float) -> ProbeResult:
        """Try this rate [records/s]."""
        speed, lag, read, now_s = self._speed(rate), 0.0, 0.0, 0.0
        seen: list[tuple[float, float, float]] = []
        while now_s < settle_s(INTERVAL_S) + PROBE_S and not is_overwhelmed(rate, INTERVAL_S, lag):
            now_s += TICK_S
            done = min(lag + rate * TICK_S, self._work(speed))
            lag, read = lag + rate * TICK_S - done, read + done
            seen.append((now_s, lag, read))
        began_s = 0.0 if is_overwhelmed(rate, INTERVAL_S, lag) else settle_s(INTERVAL_S)
        lags = [(at_s, behind) for at_s, behind, _ in seen if at_s >= began_s]
        reports = [(round(at_s * NS), int(count)) for at_s, _, count in seen if at_s >= began_s]
        judged = judge(rate, INTERVAL_S, lags, lags)
        return ProbeResult(judged.outcome, service_rate(reports), now_s + lag / self._speed(0.0) + ORDERS_S)

    def burst(self, rate: float) -> tuple[list[Report], float]:
        """What it reports of a burst at this rate [records/s], and how long it takes [s]."""
        lasts_s, now_s, read = burst_s(INTERVAL_S), 0.0, 0.0
        beside, alone = self._speed(rate), self._speed(0.0)
        reports = [(0, 0)]
        while read < rate * lasts_s:
            now_s += TICK_S
            due = rate * min(now_s, lasts_s)
            read = min(due, read + self._work(beside if now_s <= lasts_s else alone))
            reports.append((round(now_s * NS), int(read)))
        return reports, now_s


def near(query: SimulatedQuery) -> Found:
    """Search as a run does it."""
    rate, seconds = LOAD.rate, 0.0
    measured: float | None = None
    while measured is None:
        reports, took_s = query.burst(rate)
        seconds += took_s + ORDERS_S
        measured = of_burst(reports) if took_s > 2 * burst_s(INTERVAL_S) else None
        rate *= 2
    search = Search.near(measured, LOAD.precision, LOAD.probes)
    while search.end is None:
        tried = query.probe(search.rate)
        seconds += tried.seconds
        search = search.after(tried.outcome, tried.pace)
    return Found(search.low, search.high, search.probes, seconds)


def doubling(query: SimulatedQuery) -> Found:
    """Search by doubling or halving from `load.rate` until a bracket is found, and by bisection."""
    low: float | None = None
    high: float | None = None
    probes, seconds = 0, 0.0
    while probes < LOAD.probes and not (low and high and high <= low * (1 + LOAD.precision)):
        if low is None:
            rate = LOAD.rate if high is None else high / 2
        else:
            rate = 2 * low if high is None else sqrt(low * high)
        tried = query.probe(rate)
        probes, seconds = probes + 1, seconds + tried.seconds
        if tried.outcome is ProbeOutcome.SUSTAINED:
            low = rate
        else:
            high = rate
    return Found(low, high, probes, seconds)


WAYS: dict[str, Callable[[SimulatedQuery], Found]] = {"near a service rate": near, "doubling": doubling}


def searches(way: str, noise: float, count: int) -> pd.DataFrame:
    """A row for each of so many queries, which are the same for every way.

    `probes`, `seconds`; `closed` and `holds`, whether the bracket is closed, and whether it holds the true rate; `off`,
    by which share its lower end is above the true rate.
    """
    rows: list[dict[str, Any]] = []
    for seed in range(count):
        random = np.random.default_rng([11, seed])
        true_rate = exp(random.uniform(log(SLOWEST), log(FASTEST)))
        found = WAYS[way](SimulatedQuery(true_rate, noise, random))
        low, high = found.low or 0.0, found.high or np.inf
        rows.append(
            {
                "probes": found.probes,
                "seconds": found.seconds,
                "closed": high <= low * (1 + LOAD.precision),
                "holds": low <= true_rate <= high,
                "off": low / true_rate - 1,
            }
        )
    return pd.DataFrame(rows)


@one_line_errors()
def main() -> None:
    """Print what each way of searching needs and finds, by how much the speed scatters."""
    given = _arguments()
    rows = []
    for noise in NOISES:
        for way in WAYS:
            found = searches(way, noise, given.searches)
            most = {"most_probes": found["probes"].max(), "off_std": found["off"].std()}
            rows.append({"noise": noise, "search": way} | found.mean().to_dict() | most)
    print(pd.DataFrame(rows).to_string(index=False, float_format="{:.3g}".format))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--searches", type=at_least_one, default=200, help="simulated searches of each kind")
    return parser.parse_args()


if __name__ == "__main__":
    main()
