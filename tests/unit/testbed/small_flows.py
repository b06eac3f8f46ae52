"""Small dataflows of every kind, with their input: what the tests run under faults. Their output is the same in any
order of arrival, so that runs can be compared record by record."""

from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from testbed.core.dataflow.chaining import chained
from testbed.core.dataflow.graph import Dataflow
from testbed.core.dataflow.layout import lay_out
from testbed.operators import Aggregation, Delivery, Emit, Operator, sliding, tumbling
from testbed.operators.keyed_state import KeyedState

EVENTS = pa.schema([("key", pa.int64()), ("value", pa.int64()), ("at_ns", pa.int64())])
COUNT = (Aggregation("count", "count"),)
KEYS = 5


def events(seed, batches=6, rows=3, keys=KEYS):
    """Batches of one source partition; the values are different in all of them."""
    rng = np.random.default_rng(seed)
    at_ns = np.sort(rng.integers(0, 100, batches * rows))
    numbers = np.arange(batches * rows)
    found = pa.record_batch(
        {"key": rng.integers(0, keys, numbers.size), "value": numbers * 100 + seed, "at_ns": at_ns}, schema=EVENTS
    )
    return [found.slice(i * rows, rows) for i in range(batches)]


def doubled(batch):
    return batch.set_column(1, "value", pc.multiply(batch.column("value"), 2))


class Countdown(Operator):
    """Counts the visits to each key and sends what has steps left on to another key: a cycle, with state on it."""

    keys = ("key",)

    def schema(self, *inputs):
        return pa.schema([("key", pa.int64()), ("left", pa.int64()), ("origin", pa.int64()), ("visit", pa.int64())])

    def open(self):
        self._visits = KeyedState()

    def states(self):
        return {"visits": self._visits}

    def process(self, port, batch):
        rows = []
        for key, left, origin, _ in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            visit = (self._visits.get(0, key) or 0) + 1
            self._visits.put(0, key, visit)
            rows.append(((key * 3 + 1) % KEYS, left - 1, origin, visit))
        columns = [pa.array(column, pa.int64()) for column in zip(*rows, strict=True)]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema())


def chain(delivery):
    """Stateless, partition by partition."""
    flow = Dataflow("chain")
    events_in = flow.source("events", EVENTS, parallelism=2, due="at_ns")
    events_in.map("double", doubled).filter("keep", lambda b: pc.greater(b.column("key"), 0)).sink("out", delivery)
    return flow, {"events": [events(1), events(2)]}


def tiny(delivery):
    """One source, a keyed count on two partitions, one sink: small enough for thousands of runs."""
    flow = Dataflow("tiny")
    events_in = flow.source("events", EVENTS, due="at_ns")
    events_in.aggregate("count", "key", COUNT, parallelism=2).sink("out", delivery, parallelism=1)
    return flow, {"events": [events(1, 8, 2)]}


def joined(delivery):
    """Two keyed streams into an incremental join, whose pairs are counted by another key, one partition to many."""
    flow = Dataflow("joined")
    left = flow.source("left", EVENTS, parallelism=2, due="at_ns")
    right = flow.source("right", EVENTS, due="at_ns")
    pairs = left.join(right, "pair", ("key", "key"), parallelism=2)
    pairs.aggregate("count", "value", COUNT, parallelism=2).sink("out", delivery)
    pairs.sink("pairs", delivery)
    return flow, {"left": [events(1, 4), events(2, 4)], "right": [events(3, 4)]}


def windowed(delivery):
    """Windows that close by the watermark of several partitions, and a join by window."""
    flow = Dataflow("windowed")
    left = flow.source("left", EVENTS, parallelism=2, time="at_ns")
    right = flow.source("right", EVENTS, time="at_ns")
    what = (*COUNT, Aggregation("sum", "sum", "value"), Aggregation("low", "min", "value"))
    left.aggregate("slide", "key", what, sliding("at_ns", 40, 20), Emit.ON_CLOSE).sink("sums", delivery)
    size = tumbling("at_ns", 50)
    left.join(right, "pair", ("key", "key"), (size, size), parallelism=2).sink("pairs", delivery)
    return flow, {"left": [events(1, 4), events(2, 4)], "right": [events(3, 4)]}


def behind_source(flow):
    """A windowed count by key of what is left of a source by a filter and a map, either of which it can do itself."""
    stream = flow.source("events", EVENTS, parallelism=2, time="at_ns")
    kept = stream.filter("keep", lambda b: pc.greater(b.column("key"), 0)).map("double", doubled)
    return kept.aggregate("count", "key", COUNT, tumbling("at_ns", 50), Emit.ON_CLOSE)


def fused(delivery):
    """Sources that do what a filter and a map behind them would do."""
    flow = Dataflow("fused")
    behind_source(flow).sink("out", delivery)
    return chained(flow), {"events": [events(1), events(2)]}


def spread(delivery):
    """Streams without a key that are split over more partitions, two to five and two to three."""
    flow = Dataflow("spread")
    wide = flow.source("events", EVENTS, parallelism=2, time="at_ns").map("wide", doubled, parallelism=5)
    size = tumbling("at_ns", 50)
    wide.aggregate("count", "key", COUNT, size, Emit.ON_CLOSE, parallelism=2).sink("out", delivery, parallelism=3)
    return flow, {"events": [events(1, 4), events(2, 4)]}


def cyclic(delivery):
    """Records that go round a cycle three times, over two partitions."""
    flow = Dataflow("cyclic")
    start = flow.source("events", EVENTS, parallelism=2)
    shape = Countdown().schema()
    entering = start.map("enter", lambda b: enter(b, shape))
    visits = flow.operator("visit", Countdown(), entering, parallelism=2)
    again = visits.filter("again", lambda b: pc.greater(b.column("left"), 0))
    again.feed(visits, 0)
    visits.map("seen", seen).sink("out", delivery)
    return flow, {"events": [events(1, 4), events(2, 4)]}


def enter(batch, shape):
    zeros = np.zeros(batch.num_rows, dtype=np.int64)
    return pa.RecordBatch.from_arrays(
        [batch.column("key"), pa.array(zeros + 3), batch.column("value"), pa.array(zeros)], schema=shape
    )


def seen(batch):
    """Of a visit what doesn't depend on the order: which came from where, and that there was one with this number."""
    columns = [batch.column("key"), batch.column("left"), batch.column("origin")]
    return pa.RecordBatch.from_arrays(columns, names=["key", "left", "origin"])


FLOWS = {each.__name__: each for each in (chain, tiny, joined, windowed, fused, spread, cyclic)}


@cache
def laid_out(name, delivery=Delivery.EXACTLY_ONCE):
    """The layout of one of these, and its input."""
    flow, inputs = FLOWS[name](delivery)
    return lay_out(flow), inputs
