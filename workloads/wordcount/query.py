"""The word count as a Structured Streaming query, and its oracle as a batch query that works another way."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from experiments.spec import WorkloadSpec

LATENESS_S = 2.0  # the generator sends records of all partitions in the order in which they are due
SHORTEST_WORD = 2


def query(records: DataFrame, spec: WorkloadSpec) -> DataFrame:
    """Word counts by sliding window, regrouped `spec.depth - 1` times by ever shorter prefixes of the word.

    `records` has `value` (a passage of text, binary) and `timestamp` (when it was due). The result has
    `window` (start, end), `key` and `count`; every window is emitted once, when the watermark passes its end.
    """
    words = records.withWatermark("timestamp", f"{LATENESS_S} seconds").select(
        "timestamp", F.explode(_words()).alias("key")
    )
    window = F.window("timestamp", f"{spec.window_s} seconds", f"{spec.slide_s} seconds")
    counts = words.groupBy(window, "key").agg(F.count("*").alias("count"))
    for level in range(2, spec.depth + 1):
        counts = counts.groupBy("window", _prefix(level, spec.depth).alias("key")).agg(F.sum("count").alias("count"))
    return counts


def oracle(records: DataFrame, spec: WorkloadSpec) -> DataFrame:
    """The exact result of `query` without faults: `start_ms`, `end_ms` (of the window), `key`, `count`.

    Counts once per pane (a slide's length) and adds up the panes of each window, so that it shares
    neither the window function nor the state of the streaming query.
    """
    slide_ms, panes = int(spec.slide_s * 1000), round(spec.window_s / spec.slide_s)
    key = _prefix(spec.depth, spec.depth) if spec.depth > 1 else F.col("key")
    pane = F.floor(F.unix_millis("timestamp") / slide_ms)
    words = records.select(pane.alias("pane"), F.explode(_words()).alias("key"))
    by_pane = words.groupBy("pane", key.alias("key")).agg(F.count("*").alias("count"))
    first = F.explode(F.sequence(F.col("pane") - (panes - 1), F.col("pane")))
    by_window = by_pane.select(first.alias("first"), "key", "count").groupBy("first", "key")
    start = F.col("first") * slide_ms
    return by_window.agg(F.sum("count").alias("count")).select(
        start.alias("start_ms"), (start + panes * slide_ms).alias("end_ms"), "key", "count"
    )


def _words() -> Column:
    words = F.split(F.lower(F.col("value").cast("string")), "[^a-z]+")
    return F.filter(words, lambda word: F.length(word) >= SHORTEST_WORD)


def _prefix(level: int, depth: int) -> Column:
    return F.substring("key", 1, depth - level + 1)
