"""For how long a checkpoint keeps a partition from its work, by what it holds: a copy of what changed, or all of it.

`.venv/bin/python -m benchmarks.dataflow_pause [--keys 1000000] [--changed 100000] [--repeats 2]`: a state with so many
keys is updated by small batches without end, as a slot does, while a thread writes its checkpoints to a folder below
the temporary one, every tenth a full copy. Prints the median and the longest of: taking the copy, in the slot's own
thread; the longest time that two batches were apart while it was written; and writing it.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.test_dataflow_core_speed import counted
from testbed.core.checkpoints import initial_line
from testbed.core.control import Restore
from testbed.core.effects import Store
from testbed.core.snapshots import Snapshots
from testbed.operators import Operator
from testbed.operators.state import KeyedState
from testbed.stores.store import DirectoryStore

BATCH, DRAWN, PER_FULL, EPOCH = 256, 10_000, 10, 1


class CheckpointedState:
    """One partition's state, its checkpoints, and the thread that writes them."""

    def __init__(self, keys: int, store: DirectoryStore) -> None:
        layout = counted()
        partition = next(each for each in layout.partitions if isinstance(each.element, Operator))
        begin = Restore(EPOCH, initial_line(layout)[partition.number], (), 0)
        self._snapshots, self._groups = Snapshots(partition, PER_FULL - 1), KeyedState()
        self._core = self._snapshots.fill(begin, self._states, {})
        self._snapshots.restore(begin)
        self._store, self._writer = store, ThreadPoolExecutor(1)
        drawn = np.random.default_rng(1).integers(0, keys, (DRAWN, BATCH)).tolist()
        self._batches, self._taken = cycle(drawn), 0
        self._groups.put_all(0, range(keys), [(0,)] * keys)

    @property
    def _states(self) -> dict:
        return {"groups": self._groups}

    def update(self) -> None:
        """Count one batch of records into the state."""
        keys = next(self._batches)
        self._groups.put_all(0, keys, [(count + 1,) for (count,) in self._groups.get_all(0, keys)])

    def checkpoint(self) -> tuple[bool, tuple[float, float, float]]:
        """Whether it was a full copy, and what it took [s]: the copy, the longest pause after it, and writing it."""
        self._taken += 1
        begun_s = time.perf_counter()
        effect = self._snapshots.take(self._core, self._states, EPOCH, self._taken, forced=False)
        at_s = time.perf_counter()
        copied_s, pause_s, written = at_s - begun_s, 0.0, self._writer.submit(self._write, effect)
        while not written.done():
            self.update()
            now_s = time.perf_counter()
            pause_s, at_s = max(pause_s, now_s - at_s), now_s
        self._snapshots.on_stored(EPOCH, self._taken)
        return len(effect.checkpoint.state_keys) == 1, (copied_s, pause_s, written.result())

    def close(self) -> None:
        """End the thread that writes checkpoints."""
        self._writer.shutdown()

    def _write(self, effect: Store) -> float:
        begun_s = time.perf_counter()
        for key, content in effect.objects.items():
            self._store.put(key, content())
        return time.perf_counter() - begun_s


def main() -> None:
    """Take checkpoints, and print how long each copy, pause and write took."""
    given = _arguments()
    found: dict[bool, list[tuple[float, float, float]]] = {False: [], True: []}
    with tempfile.TemporaryDirectory(prefix="aftershock-pause-") as folder:
        state = CheckpointedState(given.keys, DirectoryStore(Path(folder)))
        state.checkpoint()
        for _ in range(PER_FULL * given.repeats):
            for _ in range(given.changed // BATCH):
                state.update()
            full, times = state.checkpoint()
            found[full].append(times)
        state.close()
    print(f"{given.keys:,} keys, {given.changed:,} updates before each; median and longest of each [ms]\n")
    print("            copy                pause               write")
    for full, times in found.items():
        columns = [f"{1e3 * median(each):8.1f} {1e3 * max(each):8.1f}   " for each in zip(*times, strict=True)]
        print(f"{'everything' if full else 'changes':10}", *columns, sep="")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--changed", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=2)
    return parser.parse_args()


if __name__ == "__main__":
    main()
