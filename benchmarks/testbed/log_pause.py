"""How long an output log stops its operator at once, and how long a copy of the whole state would.

`.venv/bin/python -m benchmarks.testbed.log_pause [--windows 1000000] [--targets 1 2 4 8]`: average prices in windows of
10 records, so many of them open. For each target (Q as a multiple of the open windows) a million records are read.
G-checks get 5 ms in every 100 ms of a stream of 55,000 records per second. Objects settle ten times a second, as in a
slot. Prints the longest time [ms, CPU time] that a batch of records, G-checks, a commit, and a search for garbage have
taken, and for comparison the time for the parts of all windows at once, which is what a coordinated checkpoint copies.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.arguments import at_least_one
from benchmarks.one_line_errors import one_line_errors
from reproductions.cec.operator import (
    BATCH,
    BATCHES_PER_COMMIT,
    NAME,
    RATE,
    Dropping,
    Stream,
    new_operator,
    together_until,
)
from testbed.output_log.log import OutputLog
from testbed.output_log.logged import LoggedOperator
from testbed.output_log.policies import NO_TARGET, CheckPacing, Targets
from testbed.runtime.slot.long_lived import SETTLE_S, settle

SIZE, RECORDS = 10, 1_000_000
FILLING = 12  # records an item, after which as many windows are open as ever will be
PACE = CheckPacing(0.005, 0.1)
BATCHES_PER_PERIOD = round(PACE.period_s * RATE / BATCH)
BATCHES_PER_SEARCH = round(SETTLE_S * RATE / BATCH)


@one_line_errors()
def main() -> None:
    """Fill an operator for each target, and print how long it stops."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--windows", type=at_least_one, default=1_000_000, help="open windows")
    parser.add_argument(
        "--targets", type=at_least_one, nargs="+", default=[1, 2, 4, 8], help="Q, by the number of open windows"
    )
    chosen = parser.parse_args()
    print("Q / open  open windows  records  G-checks  commit  search  all parts", flush=True)
    for times in chosen.targets:
        logged = filled(chosen.windows, Targets(times * chosen.windows, NO_TARGET))
        records, checks, commits, searches, everything = (1e3 * each for each in pauses(logged, chosen.windows))
        print(
            f"{times:8}  {len(logged.extent):12,}  {records:7.1f}  {checks:8.1f}  {commits:6.1f}  {searches:6.1f}"
            f"  {everything:9.1f}",
            flush=True,
        )


def items_of(windows: int) -> int:
    """So many items have about this number of open windows."""
    return windows * SIZE // (SIZE - 1)


def filled(windows: int, policy: Targets) -> LoggedOperator:
    """An operator that has its windows."""
    operator, _ = new_operator(SIZE)
    logged = LoggedOperator(operator, OutputLog(Dropping(), NAME), policy)
    items = items_of(windows)
    for batch in Stream(items, SIZE, FILLING * items, 1).batches():
        logged.process(0, batch)
        logged.commit()
    settle()
    return logged


def pauses(logged: LoggedOperator, windows: int) -> tuple[float, float, float, float, float]:
    """The longest time for records, G-checks, a commit and a search, and that for all parts [s]."""
    records, checks, commits, searches = [0.0], [0.0], [0.0], [0.0]
    for number, batch in enumerate(Stream(items_of(windows), SIZE, RECORDS, 2).batches(), 1):
        records.append(_timed(partial(logged.process, 0, batch)))
        if number % BATCHES_PER_PERIOD == 0:
            checks.append(_timed(partial(logged.check, together_until(time.thread_time() + PACE.interval_s))))
        if number % BATCHES_PER_COMMIT == 0:
            commits.append(_timed(logged.commit))
        if number % BATCHES_PER_SEARCH == 0:
            searches.append(_timed(settle))
    return max(records), max(checks), max(commits), max(searches), _timed(logged.operator.parts)


def _timed(work: Callable[[], Any]) -> float:
    begun_s = time.thread_time()
    work()
    return time.thread_time() - begun_s


if __name__ == "__main__":
    main()
