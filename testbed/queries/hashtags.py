"""The queries over hashtags (`incremental`, section 7) as a dataflow: each query is an operator with a sink of its own.

A parser takes the hashtags out of tweets. Queries of windows count them: topology 1 has only these. The other queries
of topology 2 keep totals of what the queries send that they read. A total has everything in it since the beginning, so
a state that is wrong after a recovery shows in all later results.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from experiments.workloads.hashtags import WINDOW, HashtagsSpec
from testbed.core.dataflow.graph import Dataflow, Stream
from testbed.operators import Aggregation, Delivery, Emit, Operator, sliding
from testbed.operators.aggregate import WINDOW_START, Aggregate
from testbed.operators.keyed_state import KeyedState
from testbed.operators.state import State
from workloads.hashtags.input import MARK, TOTALS, TWEETS
from workloads.schedule import NS_PER_MS

TAG, AT, COUNT, QUERY = "hashtag", "at_ns", "count", "query"
TAGS = pa.schema([(TAG, pa.string()), (AT, pa.int64())])
COUNTS = pa.schema([(TAG, pa.string()), (AT, pa.int64()), (COUNT, pa.int64()), (QUERY, pa.int64())])
EVER = 0


def parsed(tweets: pa.RecordBatch) -> pa.RecordBatch:
    """The hashtags of tweets one by one, each with the time of its tweet."""
    words = pc.split_pattern(tweets.column("text"), " ")
    times = tweets.column(AT).take(pc.list_parent_indices(words))
    tags = pc.utf8_ltrim(pc.list_flatten(words), MARK)
    return pa.RecordBatch.from_arrays([tags, times], schema=TAGS)


class WindowedCounts(Aggregate):
    """How often each hashtag was there in a sliding window. A count has the time of the window's last nanosecond."""

    def __init__(self, query: int, size_ns: int, slide_ns: int) -> None:
        windows = sliding(AT, size_ns, slide_ns)
        super().__init__(TAG, (Aggregation(COUNT, "count"),), windows, Emit.ON_CLOSE)
        self._query, self._size_ns = query, size_ns

    def schema(self, *inputs: pa.Schema) -> pa.Schema:
        super().schema(*inputs)
        return COUNTS

    def advance(self, watermark_ns: int) -> pa.RecordBatch | None:
        closed = super().advance(watermark_ns)
        if closed is None:
            return None
        times = pc.add(closed.column(WINDOW_START), self._size_ns - 1)
        return _results(closed.column(TAG), times, closed.column(COUNT), self._query)


class Totals(Operator):
    """For each hashtag the total of the counts that have come, from all inputs together, modulo `TOTALS`.

    When a slide ends it emits the totals that have changed in the slide, with the time of its last nanosecond.
    """

    windowed = True

    def __init__(self, query: int, inputs: int, slide_ns: int) -> None:
        self.keys = (TAG,) * inputs
        self._query, self._slide_ns = query, slide_ns

    def schema(self, *inputs: pa.Schema) -> pa.Schema:
        return COUNTS

    def open(self) -> None:
        self._totals: KeyedState[int, str, int] = KeyedState()
        self._slides: KeyedState[int, str, int] = KeyedState()

    def states(self) -> dict[str, State]:
        return {"totals": self._totals, "slides": self._slides}

    def process(self, port: int, batch: pa.RecordBatch) -> None:
        starts = batch.column(AT).to_numpy() // self._slide_ns * self._slide_ns
        for start in np.unique(starts).tolist():
            rows = batch.filter(pa.array(starts == start))
            grouped = (
                pa.table({TAG: rows.column(TAG), COUNT: rows.column(COUNT)})
                .group_by(TAG, use_threads=False)
                .aggregate([(COUNT, "sum")])
            )
            tags, counts = grouped.column(TAG).to_pylist(), grouped.column(f"{COUNT}_sum").to_pylist()
            known = self._slides.get_all(start, tags)
            self._slides.put_all(start, tags, [n + (before or 0) for n, before in zip(counts, known, strict=True)])

    def advance(self, watermark_ns: int) -> pa.RecordBatch | None:
        ended = sorted(start for start in self._slides.buckets() if start + self._slide_ns <= watermark_ns)
        found = [self._ended(start) for start in ended]
        return pa.concat_batches(found) if found else None

    def _ended(self, start: int) -> pa.RecordBatch:
        tags, counts = zip(*sorted(self._slides.drop(start).items()), strict=True)
        before = self._totals.get_all(EVER, tags)
        totals = [(n + (known or 0)) % TOTALS for n, known in zip(counts, before, strict=True)]
        self._totals.put_all(EVER, tags, totals)
        times = pa.array(np.full(len(tags), start + self._slide_ns - 1))
        return _results(pa.array(tags), times, pa.array(totals, pa.int64()), self._query)


def hashtags(spec: HashtagsSpec, parallelism: int, delivery: Delivery) -> Dataflow:
    """A source `tweets`, a `parser`, and for query i an operator `o<i>` and a sink `q<i>`."""
    flow, slide_ns = Dataflow(spec.name), spec.slide_ms * NS_PER_MS
    tweets = flow.source("tweets", TWEETS, parallelism, time=AT)
    tags, streams = tweets.map("parser", parsed), list[Stream]()
    for query, read in enumerate(spec.reads):
        if read == WINDOW:
            counts = WindowedCounts(query, spec.window_of(query) * NS_PER_MS, slide_ns)
            streams.append(flow.operator(f"o{query}", counts, tags))
        else:
            inputs = [streams[each] for each in read]
            streams.append(flow.operator(f"o{query}", Totals(query, len(read), slide_ns), *inputs))
        streams[-1].sink(f"q{query}", delivery)
    return flow


def packed_counts(results: pa.RecordBatch, spec: HashtagsSpec) -> Iterator[tuple[int, int, str, str]]:
    """For each result: start_ms and end_ms of its window or slide, its query, its hashtag, and the value."""
    columns = (results.column(name).to_pylist() for name in (QUERY, TAG, AT, COUNT))
    for query, tag, at_ns, count in zip(*columns, strict=True):
        end_ms = (at_ns + 1) // NS_PER_MS
        length_ms = spec.window_of(query) if spec.reads[query] == WINDOW else spec.slide_ms
        yield end_ms - length_ms, end_ms, f"q{query} {tag}", f'{{"count":{count}}}'


def _results(tags: pa.Array, times: pa.Array, counts: pa.Array, query: int) -> pa.RecordBatch:
    queries = pa.array(np.full(len(tags), query))
    return pa.RecordBatch.from_arrays([tags, times, counts, queries], schema=COUNTS)
