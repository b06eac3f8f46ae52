"""What the testbed's core costs by itself: events a second of CPU time, frames made bytes of and back on every hop.

No network, no store, no other process: an upper bound for what workers can do, and each protocol's share of it.
Run by hand: .venv/bin/pytest -s benchmarks/speed/test_dataflow_core_speed.py
"""

import time
from collections import deque

import numpy as np
import pyarrow as pa
import pytest

from testbed.core.checkpoints import initial_line
from testbed.core.control import Go, Restore, Round
from testbed.core.dataflow.layout import Layout
from testbed.core.effects import Grant, Send, Store
from testbed.core.frames import FrameReader, encode
from testbed.core.partition.partition import Partition, PartitionLimits
from testbed.operators import Source
from testbed.protocols import PROTOCOLS
from tests.unit.testbed.nexmark_flows import BIDS, converted, counted

EVENTS = {1: 4_000, 1024: 400_000}
EVENTS_PER_CHECKPOINT = {1: 1_000, 1024: 100_000}


def batches(rows: int, count: int) -> list[pa.RecordBatch]:
    """Batches of bids, 10 µs apart, of a thousand bidders."""
    rng = np.random.default_rng(1)
    at_ns = (np.arange(rows * count) * 10_000).reshape(count, rows)
    draw = (rng.integers(0, 1000, (3, rows)) for _ in range(count))
    return [
        pa.RecordBatch.from_arrays([*map(pa.array, columns), pa.array(t)], schema=BIDS)
        for columns, t in zip(draw, at_ns, strict=True)
    ]


class Loop:
    """Partitions that take turns in one thread."""

    def __init__(self, layout: Layout, protocol: str, records_per_message: int) -> None:
        self.layout, self.protocol = layout, PROTOCOLS[protocol]
        schemas = [channel.schema for channel in layout.channels]
        limits = PartitionLimits(records_per_message=records_per_message)
        self.partitions = [
            Partition(p, len(layout.partitions), schemas, self.protocol, limits) for p in layout.partitions
        ]
        self.reader, self.queue, self.total_bytes = FrameReader(schemas), deque(), 0
        for partition, at in zip(self.partitions, initial_line(layout), strict=True):
            partition.restore(Restore(1, at, ()), {})
            partition.on_order(Go(1))
            partition.take_effects()
        self.sources = [p for p in self.partitions if isinstance(p.layout.element, Source)]

    def feed(self, batch: pa.RecordBatch, position: int) -> None:
        """Give every source one batch, and handle what follows from it."""
        for source in self.sources:
            source.on_input(batch, position)
            self.queue.append(source)
        self.drain()

    def checkpoint(self, number: int) -> None:
        """Have every partition take a checkpoint as its protocol does, and handle what follows from it."""
        for partition in self.partitions:
            if self.protocol.on_own_time:
                partition.on_timer()
            elif self.protocol.in_rounds and partition in self.sources:
                partition.on_order(Round(1, number))
            self.queue.append(partition)
        self.drain()

    def drain(self) -> None:
        """Let partitions work until none has input or effects left."""
        while self.queue:
            partition = self.queue.popleft()
            while (channel := partition.next_channel()) is not None:
                partition.step(channel)
            for effect in partition.take_effects():
                self.carry_out(partition, effect)

    def carry_out(self, partition: Partition, effect: object) -> None:
        """Do what a partition wants done, without network and store: frames are encoded, decoded and handed over."""
        match effect:
            case Send(frame):
                data = encode(frame)
                self.total_bytes += len(data)
                (received,) = self.reader.feed(data)
                receiver = self.partitions[self.layout.channels[frame.channel].receiver]
                receiver.on_frame(received)
                self.queue.append(receiver)
            case Grant(channel):
                sender = self.partitions[self.layout.channels[channel].sender]
                sender.on_credit(effect)
                self.queue.append(sender)
            case Store(checkpoint):
                for content in effect.objects.values():
                    deque(content(), maxlen=0)
                partition.on_stored(1, checkpoint.number)


@pytest.mark.parametrize("rows", [1024, 1])
@pytest.mark.parametrize("query", [converted, counted], ids=["q1", "q12"])
def test_events_a_second_of_cpu_time(query, rows):
    base, shown = None, []
    given = batches(rows, EVENTS[rows] // rows // 2)
    every = EVENTS_PER_CHECKPOINT[rows] // rows // 2
    for protocol in PROTOCOLS:
        loop = Loop(query(), protocol, rows)
        begun = time.process_time()
        for i, batch in enumerate(given):
            loop.feed(batch, i + 1)
            if i % every == every - 1:
                loop.checkpoint(i // every + 1)
        rate = 2 * rows * len(given) / (time.process_time() - begun)
        base = base or rate
        protocol_bytes = sum(partition.tally.protocol_bytes for partition in loop.partitions)
        overhead = protocol_bytes / (loop.total_bytes - protocol_bytes)
        shown.append(
            f"{query.__name__}, {rows} a message, {protocol}: {rate:,.0f}/s, {rate / base:.0%}, +{overhead:.2%}"
        )
        assert loop.partitions[-1].tally.records_in > 0
    print("", *shown, sep="\n")
