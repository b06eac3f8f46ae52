"""Latency of the input records, from when each was due until its result could be seen.

Micro-batches show their results by their commit, a query in real-time mode as soon as it has them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.streaming.progress import Place
from spark_jobs.tables.streaming.batches import MS, Commit
from workloads.results import position
from workloads.schedule import Integers

QUANTILES = {"p50_s": 0.5, "p99_s": 0.99, "p999_s": 0.999}


def latency(seen: DataFrame, window: tuple[int, int]) -> DataFrame:
    """Latency percentiles by second in which the records were seen, counted from the window's start.

    `seen` has seen_ms and due_ms of every record. By the second in which an onlooker sees the result: an outage
    shows as seconds without any, then as late records.
    """
    start_ms, end_ms = window[0] // MS, window[1] // MS
    second = F.floor((F.col("seen_ms") - start_ms) / 1000)
    delay = (F.col("seen_ms") - F.col("due_ms")) / 1000
    inside = seen.where((F.col("seen_ms") >= start_ms) & (F.col("seen_ms") < end_ms))
    # Of several percentiles, each would keep all delays for itself, which takes three times as long.
    percentiles = F.percentile(delay, list(QUANTILES.values())).alias("percentiles")
    by_second = inside.groupBy(second.alias("second")).agg(F.count("*").alias("records"), percentiles)
    columns = [F.col("percentiles")[place].alias(name) for place, name in enumerate(QUANTILES)]
    return by_second.select("second", "records", *columns).orderBy("second")


def seen_at_commit(records: DataFrame, commits: Iterable[Commit]) -> DataFrame:
    """Records (topic, partition, offset, due_ms) as seen at the first commit that covers each."""
    return records.mapInArrow(_commit_times(commits), "seen_ms long, due_ms long")


def seen_in_sink(sink: DataFrame) -> DataFrame:
    """Input records of a query of depth 0 as seen when the last of their results first came to the sink.

    `sink` has start_ms, key and arrived_ms. A copy that a restarted batch wrote is not the first. A record without
    results is never seen.
    """
    first = sink.groupBy("start_ms", "key").agg(F.min("arrived_ms").alias("first_ms"))
    whole = first.groupBy("start_ms", *position("key")).agg(F.max("first_ms").alias("seen_ms"))
    return whole.select("seen_ms", F.col("start_ms").alias("due_ms"))


def _commit_times(commits: Iterable[Commit]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """For records as they come: when each was committed."""
    told: dict[Place, list[tuple[int, int]]] = defaultdict(list)
    for commit in commits:
        for place, end in commit.ends.items():
            told[place].append((end, commit.at_ns // MS))
    known = {place: _first_commits(of_place) for place, of_place in told.items()}

    def assigned(chunks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for chunk in chunks:
            for topic, partition in _places(chunk):
                here = pc.and_(pc.equal(chunk["topic"], topic), pc.equal(chunk["partition"], partition))
                records, (ends, times_ms) = chunk.filter(here), known[topic, str(partition)]
                index = np.searchsorted(ends, records["offset"].to_numpy(), side="right")
                yield pa.RecordBatch.from_pydict({"seen_ms": times_ms[index], "due_ms": records["due_ms"]})

    return assigned


def _first_commits(told: list[tuple[int, int]]) -> tuple[Integers, Integers]:
    """End offsets in order, and when the first commit came that reached each of them or went beyond it [ms].

    A job without a checkpoint reads its input anew after a failure, and commits earlier offsets later.
    """
    ends, times_ms = np.array(sorted(told), dtype=np.int64).T
    return ends, np.minimum.accumulate(times_ms[::-1])[::-1]


def _places(chunk: pa.RecordBatch) -> Iterator[tuple[str, int]]:
    names = ["topic", "partition"]
    found = pa.Table.from_batches([chunk]).group_by(names).aggregate([])
    return zip(*(found[name].to_pylist() for name in names), strict=True)
