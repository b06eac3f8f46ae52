"""The inputs of source partitions: anything that can be read again from a position."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple, TypeAlias, cast

import pyarrow as pa
import pyarrow.compute as pc

from experiments.errors import BadInput
from experiments.workloads.catalogue import NexmarkSpec, ReachabilitySpec
from experiments.workloads.cec_prices import CecPricesSpec
from experiments.workloads.hashtags import HashtagsSpec
from experiments.workloads.ppa_queries import IncidentsSpec, Top100Spec
from experiments.workloads.window_tree import WindowTreeSpec
from testbed.core.dataflow.layout import PartitionLayout
from testbed.operators import Source
from testbed.queries import TestbedWorkload
from testbed.runtime.job import InputKind, Job
from workloads.cec_prices.input import prices
from workloads.hashtags.input import tweets
from workloads.nexmark.stream import EventStream, events_of
from workloads.reachability.input import events_of as graph_events
from workloads.schedule import NS_PER_MS, Schedule
from workloads.top_100.input import requests
from workloads.window_tree.input import tuples

Make: TypeAlias = Callable[[int, int], pa.RecordBatch]
BLOCK_EVENTS = 8192


class Read(NamedTuple):
    """A batch, where to read on, whether that is the end, and the times of the first and the last event that was read
    [ns], if the input tells them.

    An input that several sources share tells them to each, whomever the events are for: a source for which it has no
    records would hold up event time otherwise.
    """

    batch: pa.RecordBatch | None
    position: int
    ended: bool
    times_ns: tuple[int, int] | None = None


class Feed(ABC):
    """The input of one source partition."""

    @abstractmethod
    def read(self, position: int, until: int | None = None) -> Read | None:
        """What begins at this position; None if there is nothing yet. Never waits.

        until   a position where an earlier batch ended: this one goes no further
        """

    def close(self) -> None:
        """Nothing more will be read."""
        return


class Generated(Feed):
    """Events made from their positions: block b of `block_events` events goes to partition b mod P.

    The position is the number of the partition's own next block; every batch is one block. A block is there when its
    last event is due.
    """

    def __init__(self, job: Job, layout: PartitionLayout) -> None:
        self._index, self._partitions, self._events = layout.index, job.parallelism, job.input.events
        self._schedule = Schedule(job.input.start_ns, job.input.rate, job.parallelism)
        self._make = maker_of(job.workload, self._schedule, layout)
        self._has_kinds = isinstance(job.workload, NexmarkSpec)
        self._block = self.block_events(job.input.rate)

    @staticmethod
    def block_events(rate: float) -> int:
        """Events of a block: of a tenth of a second at most, so that a slow stream comes evenly."""
        return max(1, min(BLOCK_EVENTS, int(rate / 10)))

    def read(self, position: int, until: int | None = None) -> Read | None:
        start = (position * self._partitions + self._index) * self._block
        stop = start + self._block if self._events is None else min(start + self._block, self._events)
        if start >= stop:
            return Read(None, position, True)
        if self._schedule.due_count(time.time_ns()) < stop and until is None:
            return None
        following = start + self._partitions * self._block
        ended = self._events is not None and following >= self._events
        due_ns = (self._schedule.due_ms(start) * NS_PER_MS, self._schedule.due_ms(stop - 1) * NS_PER_MS)
        return Read(self._make(start, stop), position + 1, ended, due_ns if self._has_kinds else None)


def maker_of(spec: TestbedWorkload, schedule: Schedule, layout: PartitionLayout) -> Make:
    """What makes the batch of a source from the events at positions `start` to before `stop`."""
    kind, schema = layout.operator, cast(Source, layout.element).output
    if isinstance(spec, ReachabilitySpec):
        return lambda start, stop: graph_events(spec, kind, start, stop)
    if isinstance(spec, WindowTreeSpec):
        return lambda start, stop: tuples(spec, schedule, start, stop)
    if isinstance(spec, Top100Spec):
        return lambda start, stop: requests(spec, schedule, start, stop)
    if isinstance(spec, IncidentsSpec):
        allowed = "kafka with incidents: a region's events must come to one partition of the source"
        raise BadInput("input", InputKind.GENERATED.value, allowed)
    if isinstance(spec, HashtagsSpec):
        return lambda start, stop: tweets(spec, schedule, start, stop)
    if isinstance(spec, CecPricesSpec):
        return lambda start, stop: prices(spec, schedule, start, stop, layout.index)
    stream = stream_of(spec, schedule)
    return lambda start, stop: columns(events_of(stream, kind, start, stop), schema)


def stream_of(spec: NexmarkSpec, schedule: Schedule) -> EventStream:
    """The events of a workload under a schedule, as `workloads.nexmark.messages` has them."""
    hot = (spec.hot_auctions, spec.hot_bidders, spec.hot_sellers)
    return EventStream(spec.stream_seed, schedule, *hot, open_at_most_ms=spec.window_ms)


def columns(events: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Those columns of generated events that a source has."""
    return pa.RecordBatch.from_arrays([_column(events, name) for name in schema.names], schema=schema)


def _column(events: pa.RecordBatch, name: str) -> pa.Array:
    if name == "at_ns":
        return pc.multiply(events.column("date_time"), NS_PER_MS)
    found = events.column(name)
    return found.dictionary_decode() if pa.types.is_dictionary(found.type) else found
