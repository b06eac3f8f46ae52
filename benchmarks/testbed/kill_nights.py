"""Real kills of the testbed's slots for every recovery strategy, over as many nights as it takes.

`.venv/bin/python -m benchmarks.testbed.kill_nights --ledger kills.jsonl [--strategies passive ...] [--kills 200]
[--hours 8]` runs episodes as `kills` does, with protocol `batch-aligned`, until each strategy has had `--kills` kills,
or `--hours` have passed. The strategy with the fewest episodes so far comes next. Its queries take turns.

The ledger gets one line for each episode when that is over, so the command can be ended at any moment, and goes on from
there when it is started again. An episode that went wrong counts no kills; its line names its files. Prints kills by
strategy and moment. Ends with 1 if any episode in the ledger went wrong.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from aftershock.reference import markdown
from benchmarks.arguments import above_zero, at_least_one
from benchmarks.json_ledger import JsonLedger
from benchmarks.one_line_errors import one_line_errors
from benchmarks.sigterm import end_by_sigterm
from benchmarks.testbed.kills import Case, EpisodeFailed, run_episode
from testbed.recovery import STRATEGIES
from tests.integration.testbed.kills.campaign import Episode, Means
from tests.integration.testbed.kills.jobs import TREE
from tests.integration.testbed.kills.moments import Moment

PROTOCOL, NIGHT_QUERIES, EPISODE_KILLS, SLOTS = "batch-aligned", ("q12", "q8", TREE), 10, 3
STANDBY = {"partially-active": SLOTS}  # slots that take the copies of half of the partitions, and more


@dataclass(frozen=True)
class LedgerLine:
    """One episode.

    moments   kills by the moment that they hit
    wrong     what was wrong, and where the episode's files are; empty if nothing was
    """

    strategy: str
    query: str
    seed: int
    moments: dict[str, int] = field(default_factory=dict)
    pauses: int = 0
    records: int = 0
    wrong: str = ""

    @property
    def kills(self) -> int:
        return sum(self.moments.values())


class Ledger(JsonLedger[LedgerLine]):
    """The episodes so far."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, LedgerLine)

    def kills(self, strategy: str) -> int:
        """How many kills a strategy has had."""
        return sum(line.kills for line in self.lines if line.strategy == strategy)

    def next(self, strategies: Sequence[str], most: int) -> tuple[str, str, int] | None:
        """Strategy, query and seed of the next episode; None if all strategies have had `most` kills.

        An episode that went wrong is not tried again: the next one has another seed, and the others have their turns.
        """
        left = [each for each in strategies if self.kills(each) < most]
        if not left:
            return None
        episodes = Counter(line.strategy for line in self.lines)  # not kills: some episodes count none
        strategy = min(left, key=lambda each: episodes[each])
        before = episodes[strategy]
        return strategy, NIGHT_QUERIES[before % len(NIGHT_QUERIES)], before

    def table(self, strategies: Iterable[str]) -> str:
        """As Markdown: kills by strategy and moment, and what was wrong."""
        names = [moment.value for moment in Moment]
        head, rows = ["strategy", "kills", *names, "pauses", "records", "episodes", "wrong"], []
        for strategy in strategies:
            lines = [line for line in self.lines if line.strategy == strategy]
            moments = sum((Counter(line.moments) for line in lines), Counter[str]())
            wrong = sum(bool(line.wrong) for line in lines)
            found = [moments.total(), *(moments[name] for name in names), sum(line.pauses for line in lines)]
            counts = [*found, sum(line.records for line in lines), len(lines), wrong]
            rows.append([strategy, *(f"{each:,}" for each in counts)])
        return markdown.table(head, rows)


def played(strategy: str, query: str, seed: int, run: Callable[[Case, int], Episode] = run_episode) -> LedgerLine:
    """Run one episode."""
    case = Case(PROTOCOL, strategy, query, EPISODE_KILLS, SLOTS, STANDBY.get(strategy, 0))
    try:
        episode = run(case, seed)
    except EpisodeFailed as error:
        return LedgerLine(strategy, query, seed, wrong=str(error))
    moments: Counter[str] = Counter()
    for injection in episode.injections:
        moments[injection.hit.value] += injection.kills
    pauses = sum(injection.means is Means.PAUSE for injection in episode.injections)
    return LedgerLine(strategy, query, seed, dict(moments), pauses, episode.verdict.compared)


@one_line_errors()
def main() -> None:
    """Run episodes until there were enough kills of each strategy, or the time is up, and print the table."""
    given = _arguments()
    end_by_sigterm()  # so that the slots of the episode end
    ledger, end_s = Ledger(given.ledger), time.monotonic() + given.hours * 3600
    while time.monotonic() < end_s and (following := ledger.next(given.strategies, given.kills)) is not None:
        ledger.add(played(*following))
        last = ledger.lines[-1]
        print(f"{last.strategy}, {last.query}: {last.kills} kills {last.wrong}", flush=True)
    print(ledger.table(given.strategies))
    sys.exit(any(line.wrong for line in ledger.lines))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ledger", type=Path, required=True, help="the file that has the episodes so far")
    parser.add_argument("--strategies", nargs="+", choices=STRATEGIES, default=list(STRATEGIES))
    parser.add_argument("--kills", type=at_least_one, default=200, help="of each strategy")
    parser.add_argument("--hours", type=above_zero, default=8.0, help="no episode begins later")
    return parser.parse_args()


if __name__ == "__main__":
    main()
