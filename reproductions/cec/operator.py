"""The operator of `cec`, section IV, alone in this process: the average price of an item's windows of W records.

Records of 100 bytes come in batches of 1,000. The log is in a directory, and a commit writes what 20 batches put out.
Objects settle ten times a second, as in a slot (`testbed.runtime.slot.long_lived`).
Time is CPU time of this thread, so that little of what else the machine does is in it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from testbed.operators.count_windows import CountWindows
from testbed.operators.parts import TOGETHER, EntryKind
from testbed.output_log.log import OutputLog
from testbed.output_log.logged import LoggedOperator
from testbed.output_log.policies import CheckPacing, OpensOnly, Policy
from testbed.output_log.reading import LogReader
from testbed.runtime.slot.long_lived import SETTLE_S, LongLived
from testbed.stores.store import DirectoryStore, MemoryStore, ObjectStore

BATCH, BATCHES_PER_COMMIT, RECORD_BYTES, NAME = 1000, 20, 100, "average.0"
SCHEMA = pa.schema([("item", pa.int64()), ("price", pa.int64()), ("at_ns", pa.int64()), ("padding", pa.string())])
PADDING = "x" * (RECORD_BYTES - 24)
RATE = 55_000  # records per second: about that of the paper, whose windows of 10 stay open for 16.5 s
STORE_KEY = b"k" * 32
CONSTANTS = {
    "batch": BATCH,
    "batches_per_commit": BATCHES_PER_COMMIT,
    "record_bytes": RECORD_BYTES,
    "rate": RATE,
    "together": TOGETHER,
    "settle_s": SETTLE_S,
}

Clock = Callable[[], float]  # [s]
Elapsed = Callable[[int, float], float]  # (records, busy [s]) -> time that has passed for the pace of checks [s]


@dataclass(frozen=True)
class Stream:
    """Prices of so many items, all as frequent, and windows of `size` of them."""

    items: int
    size: int
    records: int
    seed: int

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The records in order."""
        random = np.random.default_rng(self.seed)
        padding = pa.array([PADDING] * BATCH)
        for first in range(0, self.records, BATCH):
            columns = random.integers(0, self.items, BATCH), random.integers(1, 1000, BATCH)
            at_ns = np.arange(first, first + BATCH)
            yield pa.RecordBatch.from_arrays([*map(pa.array, (*columns, at_ns)), padding], schema=SCHEMA)


def in_the_stream(records: int, busy_s: float) -> float:
    """Records come at a set rate, and the operator keeps up."""
    return records / RATE


def while_busy(records: int, busy_s: float) -> float:
    """Records come as fast as the operator takes them in."""
    return busy_s


@dataclass
class Lived:
    """A run of an operator with a log.

    busy_s       time for records, checks and commits
    check_s      of that for checks
    longest_s    the longest time that checks have stopped it at once
    response_s   by window that has closed in the last third of the run, how long it was open
    """

    logged: LoggedOperator
    rows: pa.Schema
    records: int
    checks: int
    busy_s: float
    check_s: float
    longest_s: float
    response_s: np.ndarray

    @property
    def rate(self) -> float:
        """Records per second."""
        return self.records / self.busy_s


class Dropping(MemoryStore):
    """Takes everything and keeps nothing: what an operator does for its log without the disk."""

    def _write(self, key, pieces):  # type: ignore[no-untyped-def]
        for _ in pieces:
            pass


def live(
    store: ObjectStore,
    stream: Stream,
    policy: Policy,
    pace: CheckPacing | None = None,
    elapsed: Elapsed = in_the_stream,
    clock: Clock = time.thread_time,
) -> Lived:
    """Take the stream in. Checks get CI in every CP of the time that `elapsed` says, none without a pace."""
    operator, rows = new_operator(stream.size)
    logged, long_lived = LoggedOperator(operator, OutputLog(store, NAME), policy), LongLived()
    responses = _Responses(stream)
    records = checks = 0
    busy_s = next_s = check_s = longest_s = 0.0
    for number, batch in enumerate(stream.batches(), 1):
        begun_s = clock()
        logged.process(0, batch)
        records += batch.num_rows
        if pace is not None and elapsed(records, busy_s + clock() - begun_s) >= next_s:
            next_s += pace.period_s
            stopped_s = clock()
            checks += logged.check(together_until(stopped_s + pace.interval_s, clock))
            stopped_s = clock() - stopped_s
            check_s, longest_s = check_s + stopped_s, max(longest_s, stopped_s)
        if number % BATCHES_PER_COMMIT == 0:
            logged.commit()
            long_lived.on_clock(clock())
        busy_s += clock() - begun_s
        responses.add(operator, records, busy_s)
    logged.commit()
    long_lived.end()
    return Lived(logged, rows, records, checks, busy_s, check_s, longest_s, responses.of_closed)


def together_until(end_s: float, clock: Clock = time.thread_time) -> Callable[[], int]:
    """How many more parts a check may save before it asks again: none after this time."""
    return lambda: TOGETHER if clock() < end_s else 0


def bare_rate(stream: Stream, clock: Clock = time.thread_time) -> float:
    """Records per second without a log."""
    (operator, _), long_lived = new_operator(stream.size), LongLived()
    busy_s = 0.0
    for number, batch in enumerate(stream.batches(), 1):
        begun_s = clock()
        operator.process(0, batch)
        if number % BATCHES_PER_COMMIT == 0:
            long_lived.on_clock(clock())
        busy_s += clock() - begun_s
    long_lived.end()
    return stream.records / busy_s


@dataclass(frozen=True)
class Recovered:
    """What a recovery from the log took.

    windows    that were open
    extent     entries of the log that were read
    load_s     for reading them and rebuilding the windows
    replay_mb  input that would be replayed after that
    """

    windows: int
    extent: int
    load_s: float
    replay_mb: float


def recover(root: Path, lived: Lived, size: int, clock: Clock = time.thread_time) -> Recovered:
    """The operator crashes at the end of its run, and another one reads its log, which is in this directory."""
    operator, _ = new_operator(size)
    begun_s = clock()
    other = LoggedOperator(operator, OutputLog(MemoryStore(), NAME), OpensOnly())
    found = other.restore(LogReader(DirectoryStore(root, STORE_KEY), NAME, lived.rows), lived.logged.log.results)
    load_s = clock() - begun_s
    replay_mb = (found.position - found.replay_after) * RECORD_BYTES / 1e6
    return Recovered(len(found.windows), found.extent, load_s, replay_mb)


def new_operator(size: int) -> tuple[CountWindows, pa.Schema]:
    """An operator with windows of so many records, open and empty, and the schema of what it emits."""
    operator = CountWindows("item", "price", size, ("at_ns",))
    rows = operator.schema(SCHEMA)
    operator.open()
    return operator, rows


class _Responses:
    """How long windows were open, of those that close when there are as many old ones as there will be."""

    def __init__(self, stream: Stream) -> None:
        self._opened_s = np.zeros(stream.items)
        self._settled = stream.records * 2 // 3
        self._found = [np.empty(0)]

    def add(self, operator: CountWindows, records: int, now_s: float) -> None:
        """A batch was taken in by now."""
        entries = operator.footprints().entries
        kinds, windows = entries.column("kind").to_numpy(), entries.column("window")
        items = np.frombuffer(b"".join(windows.to_pylist()), dtype="<i8")
        if records > self._settled:
            self._found.append(now_s - self._opened_s[items[kinds == EntryKind.RESULT]])
        self._opened_s[items[kinds == EntryKind.OPEN]] = now_s

    @property
    def of_closed(self) -> np.ndarray:
        return np.concatenate(self._found)
