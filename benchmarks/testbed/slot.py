"""What one slot of the testbed costs without Spark: events per CPU second by protocol, in one process, with a store.

`.venv/bin/python -m benchmarks.testbed.slot [--queries q1 ...] [--protocols none ...] [--records 1024] [--cpu S]
[--repeats N] [--no-chaining]` runs all partitions of a query in one slot, events made inside the sources and results
forgotten, and checkpoints every 5 s to a folder below the temporary one. It takes turns between protocols, so that
other work on the machine meets all alike, and judges by CPU time: of all threads, after a quarter of it to get warm.
Prints for each the median over the repeats, its share of the first protocol's, and the part of CPU time that went
into checkpoints.
Nothing leaves the process, so that bytes are made for logs only: what a network costs is not in it.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from statistics import median

from benchmarks.testbed.throughput import WORKLOADS, comparison, job_of
from testbed.core.checkpoints import Line
from testbed.core.coordinator.coordinator import Coordinator
from testbed.core.effects import Delete, Order
from testbed.runtime.connectors.sources import Generated
from testbed.runtime.job import Job
from testbed.source_positions import events_read
from tests.unit.testbed.runtime.lone_slot import LoneSlot

EPOCH = 1


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

    def run(self, cpu_s: float) -> tuple[float, float]:
        """For so much CPU time; returns how many events that read, and the CPU time of checkpoints."""
        events, spent_s = self._events(), self.hosting.status().checkpoint_s
        end_s = time.process_time() + cpu_s
        while time.process_time() < end_s:
            self._coordinate(time.monotonic())
            self.turn()
        return self._events() - events, self.hosting.status().checkpoint_s - spent_s

    def _coordinate(self, now_s: float) -> None:
        if now_s >= self._next_round_s:
            self._next_round_s = now_s + self._job.checkpoint_interval_s
            self._coordinator.on_round_due()
        for effect in self._coordinator.take_effects():
            if isinstance(effect, Order):
                self.hosting.order(effect.partition, effect.message)
            elif isinstance(effect, Delete):
                for key in effect.keys:
                    self.store.delete(key)

    def _events(self) -> int:
        positions = {self.layout.partitions[number].name: at for number, at in self.hosting.status().positions.items()}
        return events_read(positions) * Generated.block_events(self._job.input.rate)


def main() -> None:
    """Measure every protocol in alternating runs, and print a line for each query and protocol."""
    given = _arguments()
    print("query    protocol              records  events/CPU s  share  us/event  checkpoints  load", flush=True)
    for query in given.queries:
        found: dict[str, list[tuple[float, float]]] = {protocol: [] for protocol in given.protocols}
        for _ in range(given.repeats):
            for protocol, rates in found.items():
                rates.append(_measured(query, protocol, given))
        base = median(rate for rate, _ in found[given.protocols[0]])
        for protocol, rates in found.items():
            rate, share = median(rate for rate, _ in rates), median(share for _, share in rates)
            line = f"{query:8} {protocol:22} {given.records:7} {rate:13,.0f} {rate / base:6.0%} {1e6 / rate:9.3f}"
            print(f"{line} {share:12.1%} {os.getloadavg()[0]:5.0f}", flush=True)


def _arguments() -> argparse.Namespace:
    parser = comparison(__doc__, list(WORKLOADS), repeats=3)
    parser.add_argument("--cpu", type=float, default=8.0, help="CPU seconds that are measured")
    return parser.parse_args()


def _measured(query: str, protocol: str, given: argparse.Namespace) -> tuple[float, float]:
    """Events per CPU second, and the share of checkpoints in CPU time."""
    name, cpu_s = f"{query}-{protocol}", given.cpu
    with tempfile.TemporaryDirectory(prefix="aftershock-slot-") as folder:
        job = job_of(name, query, protocol, 2, Path(folder), given.records, chaining=given.chaining)
        slot = OneSlot(replace(job, slots=1))
        try:
            slot.run(cpu_s / 4)
            events, spent_s = slot.run(cpu_s)
        finally:
            slot.close()
    return events / cpu_s, spent_s / cpu_s


if __name__ == "__main__":
    main()
