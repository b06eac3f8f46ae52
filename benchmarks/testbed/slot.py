"""What one slot of the testbed costs without Spark: events per CPU second by protocol, in one process, with a store.

`.venv/bin/python -m benchmarks.testbed.slot [--queries q1 ...] [--protocols none ...] [--records 1024] [--cpu S]
[--repeats N] [--no-chaining]` runs all partitions of a query in one slot, events made inside the sources and results
forgotten, and checkpoints every 5 s to a folder below the temporary one. It takes turns between protocols, so that
other work on the machine meets all alike, and judges by CPU time: of all threads, after a quarter of it to get warm.
Prints for each the median over the repeats, its share of the first protocol's, the part of CPU time that went into
checkpoints, and the load before a run.
Nothing leaves the process, so that bytes are made for logs only: what a network costs is not in it.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks.arguments import above_zero
from benchmarks.machine_load import load_of_others
from benchmarks.one_line_errors import one_line_errors
from benchmarks.testbed.throughput import WORKLOADS, comparison, job_of
from testbed.core.checkpoints import Line
from testbed.core.coordinator.coordinator import Coordinator
from testbed.core.effects import Delete, Order
from testbed.runtime.connectors.sources import Generated
from testbed.runtime.job import InputKind, Job
from testbed.source_positions import events_read
from tests.unit.testbed.runtime.lone_slot import LoneSlot

EPOCH = 1


class Cost(NamedTuple):
    """Of one run: events per CPU second, the share of checkpoints in CPU time, and the load before it."""

    events_per_cpu_s: float
    checkpoints: float
    load: float


class Spent(NamedTuple):
    """Events that were read, the CPU time of all threads, the time of checkpoints (see `SlotStatus`), and all time."""

    events: int
    cpu_s: float
    checkpoint_s: float
    seconds: float

    def since(self, earlier: Spent) -> Spent:
        """What was spent between two moments."""
        seconds = self.seconds - earlier.seconds
        checkpoint_s, cpu_s = self.checkpoint_s - earlier.checkpoint_s, self.cpu_s - earlier.cpu_s
        return Spent(self.events - earlier.events, cpu_s, checkpoint_s, seconds)


class OneSlot(LoneSlot):
    """A coordinator and the one slot that it has, which take turns in one thread."""

    def __init__(self, job: Job) -> None:
        super().__init__(job, lambda _, told: self._coordinator.on_message(told))
        self._job = job
        self._coordinator = Coordinator(self.layout, job.protocol_class, job.slots)
        self.begin(EPOCH)
        self._coordinator.on_joined("slot")
        self._next_round_s = time.monotonic() + job.checkpoint_interval_s

    @property
    def line(self) -> Line:
        """The line of checkpoints that a recovery would go to now."""
        return self._coordinator.history.line

    def run(self, cpu_s: float) -> Spent:
        """For at least so much CPU time: a turn that has begun is ended."""
        before = self._spent()
        end_s = time.process_time() + cpu_s
        while time.process_time() < end_s:
            self._coordinate(time.monotonic())
            self.turn()
        return self._spent().since(before)

    def run_rounds(self, first: int, count: int) -> Spent:
        """From the moment at which the `first`th checkpoint is due, to that of the `count`th one after it."""
        self._until_round(first)
        before = self._spent()
        self._until_round(count)
        return self._spent().since(before)

    def events_read(self) -> int:
        """Events of the input that the sources have read."""
        positions = {self.layout.partitions[number].name: at for number, at in self.hosting.status().positions.items()}
        made = self._job.input.kind is InputKind.GENERATED
        return events_read(positions) * (Generated.block_events(self._job.input.rate) if made else 1)

    def _spent(self) -> Spent:
        checkpoint_s = self.hosting.status().checkpoint_s
        return Spent(self.events_read(), time.process_time(), checkpoint_s, time.monotonic())

    def _until_round(self, left: int) -> None:
        while left:
            self.turn()
            left -= self._coordinate(time.monotonic())

    def _coordinate(self, now_s: float) -> bool:
        """Do what is due, as the coordinator of a run; returns whether a round of checkpoints was."""
        due = now_s >= self._next_round_s
        if due:
            self._next_round_s = now_s + self._job.checkpoint_interval_s
            self._coordinator.on_round_due()
        for effect in self._coordinator.take_effects():
            if isinstance(effect, Order):
                self.hosting.order(effect.partition, effect.message)
            elif isinstance(effect, Delete):
                for key in effect.keys:
                    self.store.delete(key)
        return due


@one_line_errors()
def main() -> None:
    """Measure every protocol in alternating runs, and print a line for each query and protocol."""
    given = _arguments()
    print("query    protocol              records  events/CPU s  share  us/event  checkpoints  load", flush=True)
    for query in given.queries:
        found: dict[str, list[Cost]] = {protocol: [] for protocol in given.protocols}
        for _ in range(given.repeats):
            for protocol, costs in found.items():
                costs.append(_measured(query, protocol, given))
        base = median(cost.events_per_cpu_s for cost in found[given.protocols[0]])
        for protocol, costs in found.items():
            rate, share, load = (median(figures) for figures in zip(*costs, strict=True))
            line = f"{query:8} {protocol:22} {given.records:7} {rate:13,.0f} {rate / base:6.0%} {1e6 / rate:9.3f}"
            print(f"{line} {share:12.1%} {load:5.0f}", flush=True)


def _arguments() -> argparse.Namespace:
    parser = comparison(__doc__, list(WORKLOADS), repeats=3)
    parser.add_argument("--cpu", type=above_zero, default=8.0, help="CPU seconds that are measured")
    return parser.parse_args()


def _measured(query: str, protocol: str, given: argparse.Namespace) -> Cost:
    name, cpu_s, load = f"{query}-{protocol}", given.cpu, load_of_others()
    with tempfile.TemporaryDirectory(prefix="aftershock-slot-") as folder:
        job = job_of(name, query, protocol, 2, Path(folder), given.records, chaining=given.chaining)
        slot = OneSlot(replace(job, slots=1))
        try:
            slot.run(cpu_s / 4)
            spent = slot.run(cpu_s)
        finally:
            slot.close()
    return Cost(spent.events / spent.cpu_s, spent.checkpoint_s / spent.cpu_s, load)


if __name__ == "__main__":
    main()
