"""How long an output log stops its operator, and how long a checkpoint of the same state would.

`.venv/bin/python -m benchmarks.testbed.log_pause [--windows 1000000] [--targets 1 2 4]`: windows of 10 records, so many
of them open. For each target (Q as a multiple of the open windows) a million records are read; G-checks get 5 ms in
every 100 ms of a stream of 55,000 records per second. Prints how long the longest batch of records, the longest
G-checks, the longest commit and the longest search for garbage took, and, last, how long it takes to copy the parts of
all windows at once, as a coordinated checkpoint does. CPU time of the thread.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from statistics import median
from typing import Any

from reproductions.cec.operator import BATCH, BATCHES_PER_COMMIT, NAME, RATE, Dropping, Stream, new_operator
from testbed.output_log.log import OutputLog
from testbed.output_log.logged import LoggedOperator
from testbed.output_log.policies import NO_TARGET, CheckPacing, OpensOnly, Targets
from testbed.runtime.slot.long_lived import settle

SIZE, RECORDS, COPIES = 10, 1_000_000, 3
PACE = CheckPacing(0.005, 0.1)
EVERY = round(PACE.period_s * RATE / BATCH)  # batches in a period


class Longest:
    """The longest time that each kind of work took [s]."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def time(self, what: str, work: Callable[[], Any]) -> None:
        """Do the work, and remember how long it took if that is the longest so far."""
        begun_s = time.thread_time()
        work()
        self.seconds[what] = max(self.seconds.get(what, 0.0), time.thread_time() - begun_s)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--windows", type=int, default=1_000_000, help="open windows")
    parser.add_argument("--targets", type=int, nargs="+", default=[1, 2, 4], help="Q, by the number of open windows")
    chosen = parser.parse_args()
    items = chosen.windows * SIZE // (SIZE - 1)
    operator, _ = new_operator(SIZE)
    logged = LoggedOperator(operator, OutputLog(Dropping(), NAME), OpensOnly())
    for batch in Stream(items, SIZE, 12 * items, 1).batches():
        logged.process(0, batch)
        logged.commit()
    print("Q by open windows  open windows  records [ms]  G-checks [ms]  commit [ms]  search [ms]", flush=True)
    for times in chosen.targets:
        print(f"{times:17}  {len(logged.extent):12,}" + _longest(logged, Targets(times * chosen.windows, NO_TARGET), items))
    copies = Longest()
    taken_s = [_timed(copies, operator.parts) for _ in range(COPIES)]
    print(f"all parts at once: {1e3 * median(taken_s):.0f} ms, the median of {COPIES}")


def _longest(logged: LoggedOperator, policy: Targets, items: int) -> str:
    logged._policy = policy
    found = Longest()
    settle()
    for number, batch in enumerate(Stream(items, SIZE, RECORDS, 2).batches(), 1):
        found.time("records", lambda batch=batch: logged.process(0, batch))
        if number % EVERY == 0:
            until_s = time.thread_time() + PACE.interval_s
            found.time("checks", lambda until_s=until_s: logged.check(lambda: time.thread_time() < until_s))
        if number % BATCHES_PER_COMMIT == 0:
            found.time("commit", logged.commit)
            found.time("search", settle)
    widths = {"records": 14, "checks": 15, "commit": 13, "search": 13}
    return "".join(f"{1e3 * found.seconds[name]:{width}.1f}" for name, width in widths.items())


def _timed(longest: Longest, work: Callable[[], Any]) -> float:
    begun_s = time.thread_time()
    work()
    return time.thread_time() - begun_s


if __name__ == "__main__":
    main()
