"""What one slot of the testbed costs without Spark: events per CPU second by protocol, in one process, with a store.

`.venv/bin/python -m benchmarks.dataflow_slot [--queries q1 ...] [--protocols none ...] [--records 1024] [--cpu S]
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
import selectors
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from statistics import median

from benchmarks.dataflow_throughput import comparison, job_of
from spark_jobs.dataflow.coordinator import Coordinator
from spark_jobs.dataflow.effects import Delete, Order
from spark_jobs.dataflow.progress import events_read
from spark_jobs.dataflow.queries import QUERIES
from spark_jobs.dataflow.runtime.background import Background, Results
from spark_jobs.dataflow.runtime.hosting import Hosting
from spark_jobs.dataflow.runtime.job import Job
from spark_jobs.dataflow.runtime.mesh import Mesh
from spark_jobs.dataflow.runtime.messages import Peers
from spark_jobs.dataflow.runtime.sources import Generated
from spark_jobs.dataflow.runtime.wire import turn

HERE, TURN_S, EPOCH = "127.0.0.1", 0.005, 1


class OneSlot:
    """A coordinator and the one slot that it has, by turns in one thread; the slot's own threads are as ever."""

    def __init__(self, job: Job) -> None:
        self._job, layout, self._selector = job, job.layout(), selectors.DefaultSelector()
        results = Results(self._selector)
        self._threads = [Background(results, "store"), Background(results, "outlet")]
        schemas = [channel.schema for channel in layout.channels]
        nobody = (lambda _: None,) * 3
        self._mesh = Mesh(self._selector, HERE, bytes(16), schemas, *nobody)
        self._coordinator, self._store = Coordinator(layout, job.protocol_class, job.slots), job.object_store()
        self._names = [partition.name for partition in layout.partitions]
        self.hosting = Hosting(
            job, layout, self._mesh, *self._threads, lambda _, told: self._coordinator.on_message(told)
        )
        self.hosting.begin(Peers(EPOCH, (self._mesh.address,), 0))
        self._coordinator.on_joined("slot")
        self._next_round_s = time.monotonic() + job.checkpoint_interval_s

    def run(self, cpu_s: float) -> tuple[float, float]:
        """For so much CPU time; returns how many events that read, and the CPU time of checkpoints."""
        events, spent_s = self._events(), self.hosting.status().checkpoint_s
        end_s = time.process_time() + cpu_s
        while time.process_time() < end_s:
            self._turn(time.monotonic())
        return self._events() - events, self.hosting.status().checkpoint_s - spent_s

    def close(self) -> None:
        self.hosting.close()
        for thread in self._threads:
            thread.close()
        self._mesh.close()

    def _turn(self, now_s: float) -> None:
        if now_s >= self._next_round_s:
            self._next_round_s = now_s + self._job.checkpoint_interval_s
            self._coordinator.on_round_due()
        for effect in self._coordinator.take_effects():
            if isinstance(effect, Order):
                self.hosting.order(effect.partition, effect.message)
            elif isinstance(effect, Delete):
                for key in effect.keys:
                    self._store.delete(key)
        self.hosting.on_clock(now_s)
        turn(self._selector, 0 if self.hosting.work(now_s + TURN_S) else TURN_S)

    def _events(self) -> int:
        positions = {self._names[number]: at for number, at in self.hosting.status().positions.items()}
        return events_read(positions) * Generated.block_events(self._job.input.rate)


def main() -> None:
    given = _arguments()
    print("query protocol              records  events/CPU s  share  us/event  checkpoints  load", flush=True)
    for query in given.queries:
        found: dict[str, list[tuple[float, float]]] = {protocol: [] for protocol in given.protocols}
        for _ in range(given.repeats):
            for protocol, rates in found.items():
                rates.append(_measured(query, protocol, given))
        base = median(rate for rate, _ in found[given.protocols[0]])
        for protocol, rates in found.items():
            rate, share = median(rate for rate, _ in rates), median(share for _, share in rates)
            line = f"{query:5} {protocol:22} {given.records:7} {rate:13,.0f} {rate / base:6.0%} {1e6 / rate:9.3f}"
            print(f"{line} {share:12.1%} {os.getloadavg()[0]:5.0f}", flush=True)


def _arguments() -> argparse.Namespace:
    parser = comparison(__doc__, [each.value for each in QUERIES], repeats=3)
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
