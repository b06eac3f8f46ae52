"""Times the testbed's own parts on this machine, for the simulated workers.

A query runs in this process, one partition an operator, on NexMark's events. It is timed in CPU seconds, with messages
of one record and of many, to separate fixed costs from costs per record. What a worker waits for, an object store or a
connection, takes elapsed time: the least of many tries. The loop of a slot around its partitions is not included.
"""

from __future__ import annotations

import socket
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median

import pyarrow as pa

from experiments.workloads.catalogue import NexmarkSpec
from testbed.core.checkpoints import initial_line
from testbed.core.control import Go, Restore
from testbed.core.dataflow.layout import Channel, Layout, Route, lay_out
from testbed.core.dataflow.partitioning import rows_by_channel
from testbed.core.effects import Grant, PartitionEffect, Send, Store
from testbed.core.frames import Frame, FrameReader, data_bytes, encode
from testbed.core.partition.partition import Partition, PartitionLimits
from testbed.core.protocol import Unprotected
from testbed.core.seal import Piece
from testbed.operators import Delivery, Source
from testbed.protocols import Protocol
from testbed.protocols.uncoordinated import Uncoordinated
from testbed.queries import dataflow
from testbed.runtime.connectors.sources import Make, maker_of
from testbed.scaling.costs import Costs, Linear, OperatorCosts, Point, fitted
from testbed.stores.store import DirectoryStore, ObjectStore
from workloads.schedule import Schedule

BLOCK_EVENTS = {1: 80, 1024: 8_000}  # by records a message
BLOCKS, BLOCKS_PER_CHECKPOINT = 100, 5
EVENTS_PER_SECOND = 20_000.0  # dates the events, so that windows of ten seconds close
MOST_FRAMES, REPEATS, SPLIT_INTO, ROWS_SPLIT = 200, 40, 64, 1024
OBJECT_BYTES = (1 << 10, 1 << 16, 1 << 21)
HOP_S = 1e-4  # between machines of one data centre: the only cost that is assumed, as a single machine has no wire
EPOCH = 1


@dataclass
class _Spent:
    """What one operator has read, sent and spent. `checkpoints` has 1, records since the one before, and bytes."""

    messages_in: int = 0
    rows_in: int = 0
    rows_out: int = 0
    step_s: float = 0.0
    sent: int = 0
    sent_rows: int = 0
    sent_bytes: int = 0
    log_s: float = 0.0
    log_bytes: int = 0
    checkpoints: list[Point] = field(default_factory=list)
    rows_since: int = 0


@dataclass
class _Run:
    """What a run has shown, by operator; some of its frames; and the CPU seconds of each checkpoint without its log."""

    spent: dict[str, _Spent]
    frames: list[Frame] = field(default_factory=list)
    checkpoint_s: list[float] = field(default_factory=list)


def costs(spec: NexmarkSpec, blocks: int = BLOCKS) -> Costs:
    """The costs of a query of the testbed, measured with `blocks` blocks of events: a few seconds.

    Raises `BadInput` for a query that it doesn't have.
    """
    layout = lay_out(dataflow(spec, 1, Delivery.PLAIN))
    with tempfile.TemporaryDirectory(prefix="aftershock-costs-") as folder:
        store = DirectoryStore(Path(folder))
        plain = [_Bench(spec, layout, Unprotected, store, rows).run(blocks) for rows in BLOCK_EVENTS]
        logging = [_Bench(spec, layout, Uncoordinated, store, rows).run(blocks) for rows in BLOCK_EVENTS]
        write_s, read_s = _store_costs(store)
    schemas = [channel.schema for channel in layout.channels]
    send_s, receive_s = _transfer_costs([frame for run in plain for frame in run.frames], schemas)
    return Costs(
        operators={each.operator: _operator_costs(each.operator, plain, logging) for each in layout.partitions},
        split_s=_split_s(),
        send_s=send_s,
        receive_s=receive_s,
        checkpoint_s=median(seconds for run in logging for seconds in run.checkpoint_s),
        write_s=write_s,
        read_s=read_s,
        connect_s=_waited(_connect_and_close),
        hop_s=HOP_S,
    )


class _Bench:
    """Partitions by turns in one thread, and a clock on each."""

    def __init__(
        self, spec: NexmarkSpec, layout: Layout, protocol: type[Protocol], store: ObjectStore, rows: int
    ) -> None:
        self._layout, self._store, self._block = layout, store, BLOCK_EVENTS[rows]
        schemas = [channel.schema for channel in layout.channels]
        limits = PartitionLimits(records_per_message=rows, messages_in_range=1)  # a cost by message is asked for
        count = len(layout.partitions)
        self._partitions = [Partition(p, count, schemas, protocol, limits) for p in layout.partitions]
        for partition, at in zip(self._partitions, initial_line(layout), strict=True):
            partition.restore(Restore(EPOCH, at, ()), {})
            partition.on_order(Go(EPOCH))
            partition.take_effects()
        schedule = Schedule(0, EVENTS_PER_SECOND)
        self._sources: list[tuple[Partition, Make]] = [
            (p, maker_of(spec, schedule, p.layout)) for p in self._partitions if isinstance(p.layout.element, Source)
        ]
        self._waiting: deque[Partition] = deque()
        self._run = _Run({each.operator: _Spent() for each in layout.partitions})
        self._logs = protocol.logs

    def run(self, blocks: int) -> _Run:
        size = self._block
        for block in range(blocks):
            for partition, make in self._sources:
                self._timed(partition, partial(_read, partition, make, block * size, size))
            self._drain()
            if self._logs and block % BLOCKS_PER_CHECKPOINT == BLOCKS_PER_CHECKPOINT - 1:
                for partition in self._partitions:
                    self._checkpoint(partition)
        return self._run

    def _of(self, partition: Partition) -> _Spent:
        return self._run.spent[partition.layout.operator]

    def _timed(self, partition: Partition, act: Callable[[], None]) -> None:
        """Let a partition do something, and deliver what it sends."""
        spent, before, messages = self._of(partition), partition.tally.records_out, _made(partition)
        begun_s = time.process_time()
        act()
        effects = partition.take_effects()
        spent.step_s += time.process_time() - begun_s
        spent.rows_out += partition.tally.records_out - before
        if isinstance(partition.layout.element, Source):
            spent.rows_in += partition.tally.records_out - before
            spent.rows_since += partition.tally.records_out - before
            spent.messages_in += _made(partition) - messages
        self._carry_out(partition, effects)

    def _drain(self) -> None:
        while self._waiting:
            partition = self._waiting.popleft()
            while (channel := partition.next_channel()) is not None:
                self._timed(partition, partial(partition.step, channel))

    def _carry_out(self, partition: Partition, effects: Iterable[PartitionEffect]) -> None:
        spent = self._of(partition)
        for effect in effects:
            if isinstance(effect, Send):
                frame = effect.frame
                spent.sent, spent.sent_rows = spent.sent + 1, spent.sent_rows + frame.rows
                spent.sent_bytes += data_bytes(frame)
                if frame.batch is not None and len(self._run.frames) < MOST_FRAMES:
                    self._run.frames.append(frame)
                self._deliver(frame)
            elif isinstance(effect, Grant):
                sender = self._partitions[self._layout.channels[effect.channel].sender]
                sender.on_credit(effect)
                self._carry_out(sender, sender.take_effects())

    def _deliver(self, frame: Frame) -> None:
        receiver = self._partitions[self._layout.channels[frame.channel].receiver]
        spent = self._of(receiver)
        spent.messages_in, spent.rows_in = spent.messages_in + 1, spent.rows_in + frame.rows
        spent.rows_since += frame.rows
        receiver.on_frame(frame)
        self._waiting.append(receiver)

    def _checkpoint(self, partition: Partition) -> None:
        spent = self._of(partition)
        begun_s = time.process_time()
        partition.on_timer()
        taken_s = time.process_time() - begun_s
        for effect in partition.take_effects():
            if isinstance(effect, Store):
                for key, content in effect.objects.items():
                    size, seconds = self._write(key, content)
                    if key == effect.checkpoint.log_key:
                        spent.log_bytes, spent.log_s = spent.log_bytes + size, spent.log_s + seconds
                    else:
                        self._run.checkpoint_s.append(taken_s + seconds)
                        spent.checkpoints.append((1.0, float(spent.rows_since), float(size)))
                partition.on_stored(EPOCH, effect.checkpoint.number)
        spent.rows_since = 0

    def _write(self, key: str, content: Callable[[], Iterable[Piece]]) -> tuple[int, float]:
        """The number of bytes, and the CPU seconds of the write."""
        begun_s = time.process_time()
        size = self._store.put(key, content())
        return size, time.process_time() - begun_s


def _made(partition: Partition) -> int:
    """How many messages it has made, also those that wait for credit: they are sent when somebody else is timed."""
    return sum(partition.sending.sent.values())


def _read(partition: Partition, make: Make, start: int, events: int) -> None:
    partition.on_input(make(start, start + events), start + events)


def _operator_costs(name: str, plain: Sequence[_Run], logging: Sequence[_Run]) -> OperatorCosts:
    of, logged = [run.spent[name] for run in plain], [run.spent[name] for run in logging]
    return OperatorCosts(
        step_s=fitted((each.messages_in, each.rows_in, each.step_s) for each in of),
        rows_out=sum(each.rows_out for each in of) / max(1, sum(each.rows_in for each in of)),
        sent_bytes=fitted((each.sent, each.sent_rows, each.sent_bytes) for each in of),
        log_s=fitted((each.sent, each.sent_rows, each.log_s) for each in logged),
        log_bytes=fitted((each.sent, each.sent_rows, each.log_bytes) for each in logged),
        state_bytes=fitted(point for each in logged for point in each.checkpoints),
    )


def _split_s() -> float:
    """CPU seconds for each further message that a batch is split into."""
    channels = [Channel(i, 0, i, 0, pa.schema([("key", pa.int64())]), False) for i in range(SPLIT_INTO)]
    batch = pa.RecordBatch.from_pydict({"key": list(range(ROWS_SPLIT))})
    route = Route("key", tuple(channels))
    return _least(partial(rows_by_channel, batch, route), time.process_time) / SPLIT_INTO


def _store_costs(store: ObjectStore) -> tuple[Linear, Linear]:
    """Seconds that pass until an object is written, and until it is read."""
    written, read = [], []
    for size in OBJECT_BYTES:
        content, key = bytes(size), f"object-{size}"
        written.append((1.0, float(size), _waited(partial(store.put, key, [content]))))
        read.append((1.0, float(size), _waited(partial(store.get, key))))
    return fitted(written), fitted(read)


def _transfer_costs(frames: Sequence[Frame], schemas: Sequence[pa.Schema]) -> tuple[Linear, Linear]:
    """CPU seconds of sending a frame on a connection, and of making one of what comes there."""
    sent, received = [], []
    with ExitStack() as stack:
        here, there = (stack.enter_context(end) for end in _connected())
        for frame in frames:
            begun_s = time.process_time()
            data = encode(frame)
            here.sendall(data)
            sent_s = time.process_time()
            reader, left = FrameReader(schemas), len(data)
            while left:
                piece = there.recv(left)
                reader.feed(piece)
                left -= len(piece)
            sent.append((1.0, float(len(data)), sent_s - begun_s))
            received.append((1.0, float(len(data)), time.process_time() - sent_s))
    return fitted(sent), fitted(received)


def _connect_and_close() -> None:
    for end in _connected():
        end.close()


def _connected() -> tuple[socket.socket, socket.socket]:
    """Both ends of a TCP connection on this machine; the system buffers more than the largest frame."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        here = socket.create_connection(server.getsockname())
        there, whose = server.accept()
        while whose != here.getsockname():  # every user of this machine may have come first
            there.close()
            there, whose = server.accept()
    for end in (here, there):
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return here, there


def _waited(act: Callable[[], object]) -> float:
    """Seconds that pass until a call returns."""
    return _least(act, time.perf_counter)


def _least(act: Callable[[], object], clock: Callable[[], float]) -> float:
    """Seconds that a call takes by this clock: the least of many, since all else that a machine does can only add."""
    seconds = []
    for _ in range(REPEATS):
        begun_s = clock()
        act()
        seconds.append(clock() - begun_s)
    return min(seconds)
