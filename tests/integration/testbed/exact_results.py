"""The results that a job of the testbed must have emitted, computed from its events at once, and its actual results."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, TopicPartition

from experiments.workloads.catalogue import NexmarkQuery, ReachabilitySpec
from experiments.workloads.cec_prices import CecPricesSpec
from experiments.workloads.window_tree import WindowTreeSpec
from testbed.runtime.connectors.sinks import published
from testbed.runtime.connectors.sources import Generated, stream_of
from testbed.runtime.job import InputKind, Job
from tests.unit.testbed.queries.average_prices import exact as averages
from tests.unit.testbed.queries.window_trees import exact_rows
from tests.unit.testbed.small_job import tuples_in
from workloads.cec_prices.input import prices
from workloads.nexmark.stream import events_of
from workloads.reachability.input import events_of as graph_events
from workloads.reachability.input import paths
from workloads.schedule import Schedule
from workloads.window_tree.input import tuples

NS_PER_MS = 10**6
READ_LIMIT_S = 120.0  # for a topic of results
Positions = dict[str, int]
Read = Callable[[str], pa.RecordBatch]


@dataclass(frozen=True)
class Verdict:
    """Of `compared` records that must be there: how many are not, are there once too often, and should not be."""

    compared: int
    lost: int
    doubled: int
    wrong: int

    @property
    def exact(self) -> bool:
        return not (self.lost or self.doubled or self.wrong)


def judged(job: Job, positions: Positions) -> Verdict:
    """What has come out, against what had to for all that sources at these positions have read."""
    wanted, found = exact(job, positions), emitted(job)
    more = found - wanted
    doubled = sum(times for row, times in more.items() if row in wanted)
    return Verdict(wanted.total(), (wanted - found).total(), doubled, more.total() - doubled)


def exact(job: Job, positions: Positions | None = None) -> Counter[tuple]:
    """The rows for the first `job.input.events`, or for what sources at these positions have read.

    Columns are as the query emits them; of the cyclic query, the paths that its changes add up to.
    """

    def read(kind: str) -> pa.RecordBatch:
        return _events(job, kind, 0, job.input.events) if positions is None else _read(job, kind, positions)

    if isinstance(job.workload, ReachabilitySpec):
        return paths(read("links"), read("sources"))
    if isinstance(job.workload, WindowTreeSpec):
        return _tree(job, read("tuples"))
    if isinstance(job.workload, CecPricesSpec):
        return averages(job.workload, {"prices": [[read("prices")]]})
    return _EXACT[job.workload.query](job, read)


def emitted(job: Job) -> Counter[tuple]:
    """The rows in the files of its sinks; of the cyclic query, what their changes add up to."""
    rows: Counter[tuple] = Counter()
    for table in published(Path(job.output.folder)):
        rows.update(zip(*(column.to_pylist() for column in table.columns), strict=True))
    return _added_up(rows) if isinstance(job.workload, ReachabilitySpec) else rows


def messages_out(job: Job, isolation: str = "read_committed") -> Counter[bytes]:
    """The values in its output topic, as readers of that isolation see them once all transactions there have ended.

    A commit returns before the broker has marked the records as committed. Until then the topic seems to such a reader
    to end before them.
    """
    settings = {**job.output.broker.for_librdkafka(), "group.id": "test", "enable.partition.eof": True}
    places = [TopicPartition(job.output.topic, number, 0) for number in range(job.parallelism)]
    unread = _ends(settings, places)
    consumer = Consumer({**settings, "isolation.level": isolation})
    consumer.assign(places)
    values: Counter[bytes] = Counter()
    deadline_s = time.monotonic() + READ_LIMIT_S
    while unread:
        assert time.monotonic() < deadline_s, f"not read up to {unread}"
        for each in consumer.consume(10_000, 0.2):
            if each.error() is None:
                values[each.value()] += 1
            elif each.error().code() == KafkaError._PARTITION_EOF and each.offset() >= unread.get(each.partition(), 0):
                unread.pop(each.partition(), None)
    consumer.close()
    return values


def _ends(settings: dict[str, Any], places: list[TopicPartition]) -> dict[int, int]:
    """Where each partition ends, by its number, whatever of it is committed."""
    consumer = Consumer({**settings, "isolation.level": "read_uncommitted"})
    ends = {each.partition: consumer.get_watermark_offsets(each, READ_LIMIT_S)[1] for each in places}
    consumer.close()
    return ends


def _added_up(changes: Counter[tuple]) -> Counter[tuple]:
    found: Counter[tuple] = Counter()
    for (*path, change), times in changes.items():
        found[tuple(path)] += change * times
    return Counter({path: times for path, times in found.items() if times})


def _q1(job: Job, read: Read) -> Counter[tuple]:
    columns = _columns(read("bids"), "position", "date_time", "auction", "bidder", "price", "extra")
    return Counter((p, t * NS_PER_MS, a, b, 908 * price, extra) for p, t, a, b, price, extra in columns)


def _q8(job: Job, read: Read) -> Counter[tuple]:
    def windowed(kind: str, *names: str) -> list[tuple]:
        size_ms = job.workload.window_ms
        found = _columns(read(kind), "date_time", *names)
        return [(due_ms // size_ms * size_ms * NS_PER_MS, due_ms * NS_PER_MS, *rest) for due_ms, *rest in found]

    persons = {(start, at, person): rest for start, at, person, *rest in windowed("persons", "id", "position", "name")}
    by_window = {(start, person): (at, *rest) for (start, at, person), rest in persons.items()}
    rows: Counter[tuple] = Counter()
    for start, at, position, auction, seller in windowed("auctions", "position", "id", "seller"):
        if (start, seller) in by_window:
            person_at, person_position, name = by_window[start, seller]
            rows[start, position, at, auction, seller, person_position, person_at, name] += 1
    return rows


def _q12(job: Job, read: Read) -> Counter[tuple]:
    size_ms = job.workload.window_ms
    groups = Counter((b, t // size_ms * size_ms * NS_PER_MS) for t, b in _columns(read("bids"), "date_time", "bidder"))
    return Counter((*group, count) for group, count in groups.items())


_EXACT = {NexmarkQuery.Q1: _q1, NexmarkQuery.Q8: _q8, NexmarkQuery.Q12: _q12}


def _tree(job: Job, read: pa.RecordBatch) -> Counter[tuple]:
    sources: list[list[tuple]] = [[] for _ in range(job.parallelism)]
    for row in tuples_in(read):
        sources[row[0] // _block(job) % job.parallelism].append(row)
    return exact_rows(job.workload, sources)


def _columns(events: pa.RecordBatch, *names: str) -> list[tuple]:
    return list(zip(*(events[name].to_pylist() for name in names), strict=True))


def _events(job: Job, kind: str, start: int, stop: int) -> pa.RecordBatch:
    if isinstance(job.workload, ReachabilitySpec):
        return graph_events(job.workload, kind, start, stop)
    schedule = Schedule(job.input.start_ns, job.input.rate)
    if isinstance(job.workload, WindowTreeSpec):
        return tuples(job.workload, schedule, start, stop)
    if isinstance(job.workload, CecPricesSpec):
        return _purchases(job, job.workload, start, stop)
    return events_of(stream_of(job.workload, schedule), kind, start, stop)


def _purchases(job: Job, spec: CecPricesSpec, start: int, stop: int) -> pa.RecordBatch:
    """Which items a purchase may have depends on the partition that its block goes to."""
    schedule, size = Schedule(job.input.start_ns, job.input.rate, job.parallelism), _block(job)
    blocks = [(at, min(at + size, stop), at // size % job.parallelism) for at in range(start, stop, size)]
    return pa.concat_batches([prices(spec, schedule, *block) for block in [(start, start, 0), *blocks]])


def _read(job: Job, kind: str, positions: Positions) -> pa.RecordBatch:
    """A position counts blocks of events, or events in Kafka; the n-th of partition i is number n P + i of all."""
    size = _block(job)
    ends = np.array([positions[f"{kind}.{index}"] for index in range(job.parallelism)])
    common = int(min(ends)) * job.parallelism * size
    blocks = [(n * job.parallelism + i) * size for i, end in enumerate(ends) for n in range(min(ends), end)]
    pieces = [_events(job, kind, 0, common), *(_events(job, kind, start, start + size) for start in blocks)]
    return pa.Table.from_batches(pieces).combine_chunks().to_batches()[0]


def _block(job: Job) -> int:
    """Events at a stretch that go to one partition."""
    return 1 if job.input.kind is InputKind.KAFKA else Generated.block_events(job.input.rate)
