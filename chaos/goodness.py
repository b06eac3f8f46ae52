"""How well a plan fits its laws, and how well the injected faults fit the plan.

Every law gives a clock a hazard; summed up over time it turns the clock's ticks into a Poisson process of rate 1 (Ogata
1988, residual analysis). The clocks of a process are put end to end on that axis, so that the gap that a window cuts
off is no loss: it goes on with the next clock.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special, stats

from chaos.clocks import clocks, clocks_of
from chaos.composition import compose
from chaos.events import FaultEvent, listed_events
from chaos.laws import Lognormal, Weibull, gaps
from experiments.faults import FaultProcess, FaultSpec, GapLaw

Numbers = npt.NDArray[np.float64]
Strike = tuple[int, str]  # the number of a planned fault, and one of its hosts
FEWEST_TICKS = 5  # of fewer the window keeps mostly short gaps
LARGEST_HAZARD = 700.0  # no draw comes near exp(-700), and no sum of these overflows
FEWEST_PER_CELL = 10.0  # ticks squared by clocks: from there on the chi-square law is close (Koehler and Larntz 1980)


class Fit(NamedTuple):
    """One comparison: its statistic, and where chance has a law the probability of one as bad; None if there is none.

    gaps         samples: ticks        statistic: Kolmogorov and Smirnov's distance of the transformed gaps
    count        samples: ticks        statistic: how many the laws expect
    dispersion   samples: clocks       statistic: variance of the clocks' counts over their mean
    lateness     samples: strikes      statistic: 99th percentile of |actual - planned| [s]
    missing      samples: strikes      statistic: how many neither struck nor were absorbed or withheld
    composition  samples: strikes      statistic: how many struck that should have come to nothing, or the other way
    """

    test: str
    subject: str
    samples: int
    statistic: float | None
    p_value: float | None


def fit_to_laws(spec: FaultSpec, events: Iterable[FaultEvent]) -> list[Fit]:
    """Hold a plan against the laws of its spec, process by process.

    A process that spreads its ticks is judged by the first host of each clock: uniform offsets leave a Poisson process
    one, thinner as the window opens. Spread ticks of other laws are not judged: their offsets hide the gaps.

    Listed faults are left out. Those of a plan that is replayed have causes that read like those of clocks.
    """
    times: dict[str, list[float]] = defaultdict(list)
    first_host = {clock.cause: clock.hosts[0] for clock in clocks(spec)}
    for event in (Counter(events) - Counter(listed_events(spec))).elements():
        if first_host.get(event.cause) in event.targets:
            times[event.cause].append(event.at)
    found: list[Fit] = []
    for index, process in enumerate(spec.processes):
        if process.shows_its_law:
            by_clock = [times[clock.cause] for clock in clocks_of(spec, index)]
            found += _fits(f"process {index}", process, by_clock, spec.duration_s)
    return found


def fit_to_plan(
    events: Sequence[FaultEvent], start_ns: int, strikes_ns: Mapping[Strike, int | None], max_down: int | None = None
) -> list[Fit]:
    """Hold what an injector did against its plan, for a window that opens at `start_ns`.

    `strikes_ns` has when each strike was carried out [ns]; None for one that was absorbed or withheld.
    """
    strikes = {(fault, host) for fault, event in enumerate(events) for host in event.targets}
    struck_ns = {strike: at_ns for strike, at_ns in strikes_ns.items() if at_ns is not None}
    due_ns = [start_ns + round(event.at * 1e9) for event in events]
    late_s = [abs(at_ns - due_ns[fault]) / 1e9 for (fault, _), at_ns in struck_ns.items()]
    planned = compose(events, max_down).struck
    otherwise = (planned ^ set(struck_ns)) & set(strikes_ns)
    return [
        Fit("lateness", "injected", len(late_s), float(np.quantile(late_s, 0.99)) if late_s else None, None),
        Fit("missing", "injected", len(strikes), float(len(strikes - set(strikes_ns))), None),
        Fit("composition", "injected", len(strikes), float(len(otherwise)), None),
    ]


def _fits(subject: str, process: FaultProcess, times: list[list[float]], duration_s: float) -> list[Fit]:
    pieces = [_transformed(process, np.asarray(of_clock), duration_s) for of_clock in times]
    counts = np.array([len(of_clock) for of_clock in times])
    ticks, expected = int(counts.sum()), float(sum(total for _, total in pieces))
    found = [Fit("count", subject, ticks, expected, _poisson_p_value(ticks, expected))]
    if ticks >= FEWEST_TICKS:
        test = stats.kstest(_residuals(pieces), "expon")
        found.append(Fit("gaps", subject, ticks, float(test.statistic), float(test.pvalue)))
    if process.law is GapLaw.EXPONENTIAL and len(counts) > 1 and ticks**2 >= FEWEST_PER_CELL * len(counts):
        found.append(_dispersion(subject, counts))
    return found


def _poisson_p_value(ticks: int, expected: float) -> float:
    one_side = min(stats.poisson.cdf(ticks, expected), stats.poisson.sf(ticks - 1, expected))
    return float(min(1.0, 2.0 * one_side))


def _dispersion(subject: str, counts: npt.NDArray[np.int_]) -> Fit:
    """Clocks of one rate share their ticks evenly, but for chance: a chi-square test; too even is the gaps' matter."""
    mean = counts.mean()
    statistic = float(((counts - mean) ** 2).sum() / mean)
    freedom = len(counts) - 1
    return Fit("dispersion", subject, len(counts), statistic / freedom, float(stats.chi2.sf(statistic, freedom)))


def _residuals(pieces: list[tuple[Numbers, float]]) -> Numbers:
    """The gaps of the clocks' ticks, put end to end on the axis of their hazards; the last, open one is left out."""
    starts = np.cumsum([0.0, *(total for _, total in pieces)])
    placed = [ticks + start for (ticks, _), start in zip(pieces, starts, strict=False)]
    return np.diff(np.concatenate(placed), prepend=0.0)


def _transformed(process: FaultProcess, times_s: Numbers, duration_s: float) -> tuple[Numbers, float]:
    """A clock's ticks and the end of the window, in units of summed hazard."""
    if process.spread:
        ends = process.rate * _ramped(np.append(times_s, duration_s), process.spread)
        return ends[:-1], float(ends[-1])
    steps = np.diff(np.append(times_s, duration_s) * process.rate, prepend=0.0)
    hazards = np.append(_first_hazard(process, steps[:1]), _hazard(process, steps[1:]))
    ends = np.cumsum(np.minimum(hazards, LARGEST_HAZARD))
    return ends[:-1], float(ends[-1])


def _ramped(times_s: Numbers, spread_s: float) -> Numbers:
    """Time weighted by how much of the spread before it lies in the window."""
    return np.where(times_s < spread_s, times_s**2 / (2.0 * spread_s), times_s - spread_s / 2.0)


def _hazard(process: FaultProcess, mean_gaps: Numbers) -> Numbers:
    """-log of the chance that a gap is longer, in mean gaps."""
    law = gaps(process)
    with np.errstate(over="ignore", divide="ignore"):
        if isinstance(law, Weibull):
            return (mean_gaps / law.scale) ** law.shape
        if isinstance(law, Lognormal):
            return -special.log_ndtr(-np.log(mean_gaps) / law.sigma - law.sigma / 2.0)
    return mean_gaps


def _first_hazard(process: FaultProcess, mean_gaps: Numbers) -> Numbers:
    """The same for the first gap, which is longer with the chance that is left of the mean: the integral of S."""
    law = gaps(process)
    with np.errstate(over="ignore", divide="ignore"):
        if isinstance(law, Weibull):
            longer = special.gammaincc(1.0 / law.shape, (mean_gaps / law.scale) ** law.shape)
        elif isinstance(law, Lognormal):
            middle = np.log(mean_gaps) / law.sigma
            longer = special.ndtr(law.sigma / 2.0 - middle) - mean_gaps * special.ndtr(-law.sigma / 2.0 - middle)
        else:
            return mean_gaps
    return -np.log(np.maximum(longer, np.exp(-LARGEST_HAZARD)))
