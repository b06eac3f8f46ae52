"""How often the regression verdicts err: nights without a change, and nights after a slowdown, simulated.

`python -m benchmarks.regressions.simulated_nights [HISTORIES]` prints the tables of docs/lab/regressions.md (default:
50 histories of 200 nights, and the fewer the more experiments a night has).
"""

from __future__ import annotations

import argparse

from benchmarks.arguments import at_least_one
from benchmarks.one_line_errors import one_line_errors
from results.regression.change import Change
from tests.unit.results.regression.simulated_nights import NIGHTS, alarms, found_after, found_at

TRIALS = 400
EXPERIMENTS = (1, 10, 40)  # of a night, judged together
SEED = 6


@one_line_errors()
def main() -> None:
    """Print how often nights without a change raise an alarm, and how often a change is found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("histories", nargs="?", type=at_least_one, default=50, help="of 200 nights (50)")
    histories = parser.parse_args().histories
    for experiments in EXPERIMENTS:
        own = max(1, histories // experiments)
        counts, total = alarms(SEED, own, experiments), own * NIGHTS
        for change, count in counts.items():
            rate = f"{NIGHTS * count / total:.2f} in {NIGHTS} nights"
            print(f"{experiments} experiments unchanged: {count} of {total} nights {change}, {rate}", flush=True)
        for night in range(1, 8):
            found = found_after(SEED, TRIALS, night, experiments)
            print(f"one of {experiments}: everything 15 % slower, night {night}: found in {found:.1%}", flush=True)
    for share in (0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1):
        row = [found_at(SEED, TRIALS, share, baseline)[Change.WORSE] for baseline in (5, 10, 20)]
        print(f"one metric 15 % slower, noise {share:.0%}: found in {' '.join(f'{found:.1%}' for found in row)}")


if __name__ == "__main__":
    main()
