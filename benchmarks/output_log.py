"""Section IV of `cec` with one operator: `output_log.py [--records N] [--repeats R] [--parts a b ...]`.

Prices of items, 100 bytes a record, in batches of 1,000; the average price of each item's windows of W records. The
store is a directory; a commit writes what 20 batches put out. Rates, loads and checks count CPU time of this thread.
Commits count wall-clock time, with whatever else the machine does in it.

Checks get CI of CPU time in every CP of a stream of 55,000 records per second, as in the paper.

    baseline    figure 5: without log; with G-open entries that are made and dropped; with a log on disk
    extent      figure 6: 100,000 items, W = 10, Q = 1, 2, 4, 8 times the open windows
    moments     the extent without checks, which the oldest of 90,000 windows decides, at 12 moments
    replay      figure 7: the same, U = 125,000 to 1,000,000 records
    period      figures 8 and 9: Q = 1 times the open windows, CI = 10 ms, CP = 25 to 250 ms
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from testbed.operators.count_windows import CountWindows
from testbed.output_log.log import OutputLog
from testbed.output_log.logged import LoggedOperator
from testbed.output_log.policies import CheckPacing, OpensOnly, Policy, Targets
from testbed.output_log.reading import LogReader
from testbed.stores.store import DirectoryStore, MemoryStore

BATCH, BATCHES_PER_COMMIT, RECORD_BYTES, NAME = 1000, 20, 100, "average.0"
SCHEMA = pa.schema([("item", pa.int64()), ("price", pa.int64()), ("at_ns", pa.int64()), ("padding", pa.string())])
PADDING = "x" * (RECORD_BYTES - 24)
ITEMS, SIZE = 100_000, 10
RATE = 55_000  # records per second: about that of the paper, whose windows of 10 stay open for 16.5 s
OPEN = ITEMS * (SIZE - 1) // SIZE


def prices(items: int, count: int, seed: int) -> Iterator[pa.RecordBatch]:
    random = np.random.default_rng(seed)
    padding = pa.array([PADDING] * BATCH)
    for first in range(0, count, BATCH):
        columns = random.integers(0, items, BATCH), random.integers(1, 1000, BATCH), np.arange(first, first + BATCH)
        yield pa.RecordBatch.from_arrays([*map(pa.array, columns), padding], schema=SCHEMA)


def average(size: int) -> tuple[CountWindows, pa.Schema]:
    operator = CountWindows("item", "price", size, ("at_ns",))
    rows = operator.schema(SCHEMA)
    operator.open()
    return operator, rows


class Dropping(MemoryStore):
    """Takes everything and keeps nothing: what an operator does for its log without the disk."""

    def _write(self, key, pieces):
        for _ in pieces:
            pass


@dataclass
class Lived:
    """A run of an operator with a log: rate [records/s], checks, the longest pauses for checks and for a commit [s]."""

    logged: LoggedOperator
    rows: pa.Schema
    rate: float
    checks: int
    check_s: float
    longest_check_s: float
    longest_commit_s: float


def live(store, items: int, size: int, count: int, seed: int, policy: Policy, pace: CheckPacing | None) -> Lived:
    operator, rows = average(size)
    logged = LoggedOperator(operator, OutputLog(store, NAME), policy)
    checks, spent, checking, committing = 0, 0.0, [0.0], [0.0]
    batches_per_period = max(round(pace.period_s * RATE / BATCH), 1) if pace is not None else 0
    for number, batch in enumerate(prices(items, count, seed), 1):
        begun = time.thread_time()
        logged.process(0, batch)
        if pace is not None and number % batches_per_period == 0:
            before = time.thread_time()
            checks += logged.check(lambda: time.thread_time() < before + pace.interval_s)  # noqa: B023
            checking.append(time.thread_time() - before)
        before = time.perf_counter()
        if number % BATCHES_PER_COMMIT == 0:
            logged.commit()
        committing.append(time.perf_counter() - before)
        spent += time.thread_time() - begun
    return Lived(logged, rows, count / spent, checks, sum(checking), max(checking), max(committing))


def bare(items: int, size: int, count: int, seed: int) -> float:
    """The rate without a log."""
    operator, _ = average(size)
    spent = 0.0
    for batch in prices(items, count, seed):
        begun = time.thread_time()
        operator.process(0, batch)
        spent += time.thread_time() - begun
    return count / spent


def baseline(count: int, repeats: int) -> None:
    print("workload            none [1/s]  G-open, dropped  G-open, on disk  (of none, by turns)")
    for name, items, size in (("fast, W = 1", 2, 1), ("slow, W = 1000", 2, 1000), ("many, W = 10", ITEMS, SIZE)):
        rates, shares = [], []
        for seed in range(repeats):
            with tempfile.TemporaryDirectory() as root:
                store = DirectoryStore(Path(root))
                rate = bare(items, size, count, seed)
                others = [live(each, items, size, count, seed, OpensOnly(), None).rate for each in (Dropping(), store)]
                rates.append(rate)
                shares.append([each / rate for each in others])
        dropped, disk = (statistics.median(each) for each in zip(*shares, strict=True))
        print(f"{name:18}  {statistics.median(rates):10,.0f}  {dropped:15.1%}  {disk:15.1%}", flush=True)


HEADER = "rate [1/s]   checks  open windows   extent  load [s]  entries/s  replay [MB]  longest check, commit [ms]"


def recovered(label: str, lived: Lived, root: Path) -> None:
    """Crash here, and restore in a fresh operator."""
    operator, _ = average(SIZE)
    begun = time.thread_time()
    other = LoggedOperator(operator, OutputLog(MemoryStore(), NAME), OpensOnly())
    reader = LogReader(DirectoryStore(root, KEY), NAME, lived.rows)
    found = other.restore(reader, lived.logged.log.results)
    load_s = time.thread_time() - begun
    replay_mb = (found.position - found.replay_after) * RECORD_BYTES / 1e6
    print(
        f"{label:14}  {lived.rate:10,.0f}  {lived.checks:7,}  {len(found.windows):12,}  {found.extent:7,}"
        f"  {load_s:8.2f}  {found.extent / load_s:9,.0f}  {replay_mb:11.1f}"
        f"  {lived.longest_check_s * 1e3:13.1f}, {lived.longest_commit_s * 1e3:.1f}",
        flush=True,
    )


KEY = b"k" * 32


def swept(count: int, settings: list[tuple[str, Policy, CheckPacing | None]]) -> None:
    print(f"{'':14}  {HEADER}")
    for label, policy, pace in settings:
        with tempfile.TemporaryDirectory() as root:
            recovered(label, live(DirectoryStore(Path(root), KEY), ITEMS, SIZE, count, 7, policy, pace), Path(root))


def moments() -> None:
    print("seed  records    open windows   extent")
    for seed in (1, 2):
        operator, _ = average(SIZE)
        logged = LoggedOperator(operator, OutputLog(Dropping(), NAME), OpensOnly())
        for number, batch in enumerate(prices(ITEMS, 6_000_000, seed), 1):
            logged.process(0, batch)
            logged.commit()
            if number >= 3500 and number % 500 == 0:
                extent = logged.extent
                print(f"{seed:4}  {number * BATCH:9,}  {len(extent):12,}  {extent.length:7,}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=5_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--parts", nargs="*", default=["baseline", "extent", "replay", "period"])
    given = parser.parse_args()
    pace, never = CheckPacing(0.005, 0.1), 10**12
    if "baseline" in given.parts:
        baseline(given.records // 10, given.repeats)
    if "extent" in given.parts:
        swept(given.records, [(f"Q = {times} x open", Targets(times * OPEN, never), pace) for times in (1, 2, 4, 8)])
    if "moments" in given.parts:
        moments()
    if "replay" in given.parts:
        targets = (125_000, 250_000, 500_000, 1_000_000)
        swept(given.records, [(f"U = {each:,}", Targets(never, each), pace) for each in targets])
    if "period" in given.parts:
        paces = [(f"CP = {round(cp * 1e3)} ms", CheckPacing(0.01, cp)) for cp in (0.025, 0.05, 0.1, 0.25)]
        swept(given.records, [("without checks", OpensOnly(), None)] + [(n, Targets(OPEN, never), p) for n, p in paces])


if __name__ == "__main__":
    main()
