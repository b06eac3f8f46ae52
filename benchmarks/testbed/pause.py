"""How long a checkpoint stops a partition.

`.venv/bin/python -m benchmarks.testbed.pause [--state groups|rows|values] [--keys 1000000] [--changed 100000]
[--repeats 2]`: small batches update a state with `--keys` keys without end, as in a slot, while a thread writes its
checkpoints to a folder below the temporary one. Prints the median and the longest of: taking the checkpoint, in the
slot's own thread and of its CPU time; the longest time that two batches were apart before it, undisturbed, and while it
was written; and writing it. Then it prints how long making the state again takes. The state is the groups of an
aggregate, the rows of one side of a join, or values of any kind by key.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from benchmarks.arguments import at_least, at_least_one
from benchmarks.one_line_errors import one_line_errors
from testbed.core.checkpoints import initial_line
from testbed.core.control import Restore
from testbed.core.effects import Store
from testbed.core.partition.snapshots import Snapshots
from testbed.operators import Aggregate, Aggregation, Join, Operator
from testbed.operators.keyed_state import KeyedState
from testbed.operators.state import State
from testbed.runtime.slot.freed_memory import keep_freed_memory
from testbed.runtime.slot.long_lived import LongLived
from testbed.runtime.slot.storing import letting_others_go_on
from testbed.stores.store import DirectoryStore
from tests.unit.testbed.nexmark_flows import counted

BATCH, DRAWN, PER_FULL, EPOCH, FILLED = 256, 4_000, 10, 1, 1 << 14
BIDS = pa.schema([("bidder", pa.int64()), ("price", pa.int64())])


def bids(keys: np.ndarray) -> pa.RecordBatch:
    """A bid of each of these bidders."""
    return pa.RecordBatch.from_arrays([pa.array(keys), pa.array(keys)], schema=BIDS)


class Groups:
    """An aggregate's count and sum by key."""

    def __init__(self) -> None:
        of_each = Aggregation("bids", "count"), Aggregation("sum", "sum", "price")
        self.operator: Operator = Aggregate("bidder", of_each)
        self.operator.schema(BIDS)
        self.operator.open()

    @property
    def states(self) -> dict[str, State]:
        """The state by name."""
        return self.operator.states()

    def update(self, batch: pa.RecordBatch) -> None:
        """Take a batch in."""
        self.operator.process(0, batch)


class Rows(Groups):
    """What a join remembers of one side."""

    def __init__(self) -> None:
        self.operator = Join("bidder", "bidder")
        self.operator.schema(BIDS, BIDS)
        self.operator.open()


class Values:
    """A count by key, as any object."""

    def __init__(self) -> None:
        self.values: KeyedState[int, int, tuple[int]] = KeyedState()

    @property
    def states(self) -> dict[str, State]:
        """The state by name."""
        return {"values": self.values}

    def update(self, batch: pa.RecordBatch) -> None:
        """Count each of its keys."""
        keys = batch.column(0).to_pylist()
        self.values.put_all(0, keys, [((known or (0,))[0] + 1,) for known in self.values.get_all(0, keys)])


KINDS: dict[str, Callable[[], Groups | Values]] = {"groups": Groups, "rows": Rows, "values": Values}


class Times(NamedTuple):
    """Of one checkpoint [s]: taking it, the longest time for a batch before it and while it is written, and writing."""

    taken: float
    undisturbed: float
    paused: float
    written: float


class CheckpointedState:
    """One partition's state, its checkpoints, and the thread that writes them."""

    def __init__(self, kind: str, keys: int, most_batches: int, store: DirectoryStore) -> None:
        """`most_batches`: the number of batches before each checkpoint, and the most while it is written. Rows of a
        join only get more, so without an end each checkpoint would take longer than the one before.
        """
        layout = counted()
        partition = next(each for each in layout.partitions if isinstance(each.element, Operator))
        begin = Restore(EPOCH, initial_line(layout)[partition.number], ())
        self._snapshots, self._state = Snapshots(partition, PER_FULL), KINDS[kind]()
        self._core = self._snapshots.fill(begin, self._state.states, {})
        self._snapshots.restore(begin)
        self._kind, self._store, self._writer = kind, store, ThreadPoolExecutor(1)
        self._most_batches, self._long_lived = most_batches, LongLived()
        drawn = np.random.default_rng(1).integers(0, keys, (DRAWN, BATCH))
        self._batches, self._taken = cycle([bids(each) for each in drawn]), 0
        for start in range(0, keys, FILLED):
            self._state.update(bids(np.arange(start, min(start + FILLED, keys))))
        self.update_all()

    def update_all(self) -> None:
        """Take in what comes between two checkpoints, while nothing is written."""
        self._undisturbed_s = self._longest_gap(lambda: False)

    def update(self) -> None:
        """Take one batch of records in, and let objects settle now and then, as a slot does."""
        self._state.update(next(self._batches))
        self._long_lived.on_clock(time.monotonic())

    def checkpoint(self) -> tuple[bool, Times]:
        """Whether it was whole, and its times."""
        self._taken += 1
        begun_s = time.thread_time()
        effect = self._snapshots.take(self._core, self._state.states, EPOCH, self._taken, forced=False)
        taken_s, self._last = time.thread_time() - begun_s, effect.checkpoint
        written = self._writer.submit(self._write, effect)
        paused_s = self._longest_gap(written.done)
        written_s = written.result()
        self._snapshots.on_stored(EPOCH, self._taken)
        return len(effect.checkpoint.state_keys) == 1, Times(taken_s, self._undisturbed_s, paused_s, written_s)

    def _longest_gap(self, is_over: Callable[[], bool]) -> float:
        """The longest time between two batches [s], until it is over or all were taken in."""
        longest_s, at_s = 0.0, time.perf_counter()
        for _ in range(self._most_batches):
            if is_over():
                break
            self.update()
            now_s = time.perf_counter()
            longest_s, at_s = max(longest_s, now_s - at_s), now_s
        return longest_s

    def restore(self) -> str:
        """Make the state of the last checkpoint again; returns how long that took."""
        checkpoint, again = self._last, KINDS[self._kind]()
        objects = {key: self._store.get(key) for key in checkpoint.state_keys}
        begun_s = time.thread_time()
        self._snapshots.fill(Restore(EPOCH, checkpoint, ()), again.states, objects)
        took_s, size = time.thread_time() - begun_s, sum(map(len, objects.values()))
        return f"restored in {took_s:.2f} s of CPU time from {len(objects)} objects with {size / 1e6:.1f} MB"

    def close(self) -> None:
        """End the thread that writes checkpoints."""
        self._writer.shutdown()

    def _write(self, effect: Store) -> float:
        begun_s = time.perf_counter()
        for key, content in effect.objects.items():
            self._store.put(key, letting_others_go_on(content()))
        return time.perf_counter() - begun_s


@one_line_errors()
def main() -> None:
    """Take checkpoints, and print how long taking, pause and write took."""
    given = _arguments()
    keep_freed_memory()
    found: dict[bool, list[Times]] = {False: [], True: []}
    with tempfile.TemporaryDirectory(prefix="aftershock-pause-") as folder:
        batches = given.changed // BATCH
        state = CheckpointedState(given.state, given.keys, batches, DirectoryStore(Path(folder)))
        found[True].append(state.checkpoint()[1])
        for _ in range(PER_FULL * given.repeats):
            state.update_all()
            full, times = state.checkpoint()
            found[full].append(times)
        restored = state.restore()
        state.close()
    print(f"{given.keys:,} keys, {batches * BATCH:,} updates before each; median and longest of each [ms]\n")
    print("            taking              undisturbed         pause               write")
    for full, own in sorted(found.items()):
        columns = [f"{1e3 * median(each):8.1f} {1e3 * max(each):8.1f}   " for each in zip(*own, strict=True)]
        print(f"{'the whole' if full else 'changes':10}", *columns, sep="")
    print(f"\n{restored}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--state", choices=list(KINDS), default="groups")
    parser.add_argument("--keys", type=at_least_one, default=1_000_000)
    parser.add_argument("--changed", type=at_least(BATCH), default=100_000, help="updates, in full batches")
    parser.add_argument("--repeats", type=at_least_one, default=2)
    return parser.parse_args()


if __name__ == "__main__":
    main()
