"""How often the regression verdicts err: nights without a change, and nights after a slowdown, simulated.

`regression_nights.py [HISTORIES]` prints the tables of docs/regressions.md (default: 50 histories of 200 nights).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

import numpy as np

from results.metrics import METRICS
from results.regression.history import BASELINE, CANDIDATES
from results.regression.judging import Chances, Change, Pair, holm, measure, verdict

NIGHTS = 200
SLOWER = 1.15
TRIALS = 400
DRAWS = 10_000
SEED = 6

# Each metric of a run: its usual value, and its standard deviation from night to night as a share of it.
NOISE = {
    "utilization": (0.6, 0.025),
    "detect_s": (0.13, 0.15),
    "restore_s": (6.9, 0.03),
    "service_rate": (6000.0, 0.025),
    "checkpoint_s": (0.28, 0.05),
    "p99_latency_s": (9.0, 0.08),
}
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


def slower(calm: Nights, since: int, times: float = SLOWER) -> Nights:
    """The same nights, with everything that is work taking `times` as long from night `since` on."""
    factors = {"checkpoint_s": times, "restore_s": times, "p99_latency_s": times, "service_rate": 1 / times}
    changed = {name: values.copy() for name, values in calm.items()}
    for name, factor in factors.items():
        changed[name][since:] *= factor
    return changed


def pairs_of(history: Nights, night: int, names: Sequence[str] = FOLLOWED) -> list[Pair]:
    """What is judged after a night: the latest runs against those before them."""
    split, start = night + 1 - CANDIDATES, max(0, night + 1 - CANDIDATES - BASELINE)
    return [Pair(METRICS[name], ((history[name][split : night + 1], history[name][start:split]),)) for name in names]


def verdicts_of(families: Sequence[list[Pair]], draws: int = DRAWS) -> Iterator[list[Change]]:
    """The verdicts of each family of pairs, which are judged together."""
    found: Iterator[Chances] = iter(measure([pair for family in families for pair in family], draws))
    for family in families:
        own = [next(found) for _ in family]
        corrected = holm([one.p_value for one in own])
        yield [verdict(pair.metric, one, p) for pair, one, (p, _) in zip(family, own, corrected, strict=True)]


def alarms(seed: int, histories: int) -> dict[Change, int]:
    """Of nights without a change: how many had any metric worse, and how many any better."""
    generator, first = np.random.default_rng(seed), CANDIDATES + BASELINE - 1
    counts = {Change.WORSE: 0, Change.BETTER: 0}
    for _ in range(histories):
        calm = nights(generator, first + NIGHTS)
        for verdicts in verdicts_of([pairs_of(calm, night) for night in range(first, first + NIGHTS)]):
            for change in counts:
                counts[change] += change in verdicts
    return counts


def found_after(seed: int, histories: int, night: int) -> float:
    """The share of slowdowns that are found after so many nights with them."""
    generator = np.random.default_rng(seed)
    before = CANDIDATES + BASELINE
    families = [
        pairs_of(slower(nights(generator, before + night), before), before + night - 1) for _ in range(histories)
    ]
    return float(np.mean([Change.WORSE in verdicts for verdicts in verdicts_of(families)]))


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


def main(histories: int) -> None:
    counts, total = alarms(SEED, histories), histories * NIGHTS
    for change, count in counts.items():
        print(f"unchanged: {count} of {total} nights {change}, {NIGHTS * count / total:.2f} in {NIGHTS} nights")
    for night in range(1, 8):
        print(f"everything 15 % slower, night {night}: found in {found_after(SEED, TRIALS, night):.1%}")
    for share in (0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1):
        row = [found_at(SEED, TRIALS, share, baseline)[Change.WORSE] for baseline in (5, 10, 20)]
        print(f"one metric 15 % slower, noise {share:.0%}: found in {' '.join(f'{found:.1%}' for found in row)}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 50)
