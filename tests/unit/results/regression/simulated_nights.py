"""The metrics of nights without a change and after a slowdown, simulated, and the verdicts on them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from results.regression.change import Change
from results.regression.change_points import change_points
from results.regression.history import BASELINE, CANDIDATES
from results.regression.judging import FALSE_ALARM, Chances, Pair, holm, margin, measure, on_scale, verdict
from results.regression.regress import worse_places
from results.summary.metrics import METRICS, Scale

NIGHTS = 200
SLOWER = 1.15
LOOKED_AT = 60  # runs in which changes are looked for; of 400, as `regress` does, it would take hours
DRAWS = 10_000

# Each metric of a run: its usual value, and its standard deviation from night to night as a share of it.
NOISE = {
    "utilization": (0.6, 0.025),
    "detect_s": (0.13, 0.15),
    "restore_s": (6.9, 0.03),
    "service_rate": (6000.0, 0.025),
    "checkpoint_s": (0.28, 0.05),
    "p99_latency_s": (9.0, 0.08),
}
WORK = {"checkpoint_s": 1, "restore_s": 1, "p99_latency_s": 1, "service_rate": -1}  # exponents of a slowdown
SLOW_START = 0.3  # nights whose median restart is one of the slow ones
FOLLOWED = (*NOISE, "restart_s", "lost", "wrong", "duplicated", "model_error")

Nights = dict[str, np.ndarray]


def nights(generator: np.random.Generator, count: int) -> Nights:
    """The metrics of one run a night, nothing changing.

    A restart takes one of two times; the query emits duplicates after two kills of three, and loses nothing.
    """
    found = {name: usual * np.exp(share * generator.normal(size=count)) for name, (usual, share) in NOISE.items()}
    slow = generator.random(count) < SLOW_START
    found["restart_s"] = np.where(slow, 18.0, 10.7) * np.exp(0.06 * generator.normal(size=count))
    found["lost"] = found["wrong"] = np.zeros(count)
    found["duplicated"] = np.round(generator.lognormal(9, 1, count)) * (generator.random(count) < 2 / 3)
    found["model_error"] = np.abs(0.03 * generator.normal(size=count))
    return found


def slower(calm: Nights, since: int) -> Nights:
    """The same nights, with everything that is work taking `SLOWER` times as long from night `since` on."""
    changed = {name: values.copy() for name, values in calm.items()}
    for name, exponent in WORK.items():
        changed[name][since:] *= SLOWER**exponent
    return changed


def pairs_of(history: Nights, night: int, names: Sequence[str] = FOLLOWED) -> list[Pair]:
    """What is judged after a night: the latest runs against those before them that are on no worse level."""
    split, worse = night + 1 - CANDIDATES, below(history, night, names)
    usual = [place for place in range(split) if place not in worse][-BASELINE:]
    return [Pair(METRICS[name], ((history[name][split : night + 1], history[name][usual]),)) for name in names]


def below(history: Nights, night: int, names: Sequence[str]) -> set[int]:
    """The places of the runs that are on a worse level of some metric than before, seen after a night."""
    start = max(0, night + 1 - LOOKED_AT)
    found = set()
    for metric in (METRICS[name] for name in names if METRICS[name].scale is not Scale.COUNT):
        values = on_scale(metric, history[metric.name][start : night + 1])
        for places in worse_places(metric, change_points(values, margin(metric)), len(values)):
            found.update(start + place for place in places)
    return found


def verdicts_of(families: Sequence[list[Pair]], others: int = 0) -> Iterator[list[Change]]:
    """The verdicts of each family of pairs, which are judged together and with `others` that show no change at all."""
    level = FALSE_ALARM / (max(map(len, families)) + others)
    found: Iterator[Chances] = iter(measure([pair for family in families for pair in family], level, DRAWS))
    for family in families:
        own = [next(found) for _ in family]
        corrected = holm([one.p_value for one in own] + [1.0] * others)
        yield [verdict(pair.metric, one, p) for pair, one, (p, _) in zip(family, own, corrected, strict=False)]


def alarms(seed: int, histories: int, experiments: int = 1) -> dict[Change, int]:
    """Of nights of experiments without a change: how many had any metric worse, and how many any better."""
    first = CANDIDATES + BASELINE - 1
    counts = {Change.WORSE: 0, Change.BETTER: 0}
    for number in range(histories):
        generator = np.random.default_rng(seed + number)
        calm = [nights(generator, first + NIGHTS) for _ in range(experiments)]
        families = [[pair for one in calm for pair in pairs_of(one, night)] for night in range(first, first + NIGHTS)]
        for verdicts in verdicts_of(families):
            for change in counts:
                counts[change] += change in verdicts
    return counts


def found_after(seed: int, histories: int, night: int, experiments: int = 1) -> float:
    """The share of slowdowns of one of the experiments that are found after this number of nights with them."""
    generator = np.random.default_rng(seed)
    before = CANDIDATES + BASELINE
    families = [
        pairs_of(slower(nights(generator, before + night), before), before + night - 1) for _ in range(histories)
    ]
    others = len(FOLLOWED) * (experiments - 1)
    return float(np.mean([Change.WORSE in verdicts for verdicts in verdicts_of(families, others)]))


def found_at(seed: int, histories: int, share: float, baseline: int = BASELINE) -> dict[Change, float]:
    """Verdicts on one metric among `FOLLOWED` that is 15 % slower for five nights, by the noise of its runs."""
    generator = np.random.default_rng(seed)
    verdicts = []
    for slow in verdicts_of([_one_slow(generator, share, baseline) for _ in range(histories)]):
        verdicts.append(slow[0])
    return {change: verdicts.count(change) / histories for change in Change}


def _one_slow(generator: np.random.Generator, share: float, baseline: int) -> list[Pair]:
    slow, usual = (np.exp(share * generator.normal(size=size)) for size in (CANDIDATES, baseline))
    calm = nights(generator, CANDIDATES + baseline)
    rest = [name for name in FOLLOWED if name != "service_rate"]
    return [Pair(METRICS["service_rate"], ((slow / SLOWER, usual),)), *pairs_of(calm, CANDIDATES + baseline - 1, rest)]
