"""The word count as a Structured Streaming query, and its oracle as a batch query that works differently."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from experiments.workloads.catalogue import WordCountSpec
from workloads import results
from workloads.checked_events import values

LATENESS_S = 2.0  # the generator sends records of all partitions in the order in which they are due
SHORTEST_WORD = 2


def query(records: DataFrame, spec: WordCountSpec) -> DataFrame:
    """Word counts by sliding window, regrouped `spec.depth - 1` times by ever shorter prefixes of the word.

    `records` has `value` (a passage of text, binary), `timestamp` (when it was due), and `partition` and `offset` in
    its topic. The result is as in `workloads.results`, its value the count; every window is emitted once, when the
    watermark passes its end. At depth 0 there is no state: see `_by_record`.
    """
    if not spec.depth:
        return _by_record(records)
    words = records.withWatermark("timestamp", f"{LATENESS_S} seconds").select(
        "timestamp", F.explode(_words()).alias("key")
    )
    window = F.window("timestamp", f"{spec.window_ms} milliseconds", f"{spec.slide_ms} milliseconds")
    counts = words.groupBy(window, "key").agg(F.count("*").alias("count"))
    for level in range(2, spec.depth + 1):
        counts = counts.groupBy("window", _prefix(level, spec.depth).alias("key")).agg(F.sum("count").alias("count"))
    start, end = F.unix_millis("window.start"), F.unix_millis("window.end")
    return counts.select(start.alias("start_ms"), end.alias("end_ms"), "key", _value())


def oracle(records: DataFrame, spec: WordCountSpec) -> DataFrame:
    """The exact result of `query` without faults: as in `workloads.results`.

    Counts once per pane (a slide's length) and adds up the panes of each window, so that it shares
    neither the window function nor the state of the streaming query; and it finds words, where the query splits at what
    is none. At depth 0 it groups what was exploded, where the query works within each record's array.
    """
    if not spec.depth:
        words = records.select("partition", "offset", "timestamp", F.explode(_found_words()).alias("word"))
        counts = words.groupBy("partition", "offset", "timestamp", "word").agg(F.count("*").alias("count"))
        due = F.unix_millis("timestamp")
        return counts.select(due.alias("start_ms"), due.alias("end_ms"), _key().alias("key"), _value())
    slide_ms, panes = spec.slide_ms, spec.window_ms // spec.slide_ms
    key = _prefix(spec.depth, spec.depth) if spec.depth > 1 else F.col("key")
    pane = F.floor(F.unix_millis("timestamp") / slide_ms)
    words = records.select(pane.alias("pane"), F.explode(_found_words()).alias("key"))
    by_pane = words.groupBy("pane", key.alias("key")).agg(F.count("*").alias("count"))
    first = F.explode(F.sequence(F.col("pane") - (panes - 1), F.col("pane")))
    by_window = by_pane.select(first.alias("first"), "key", "count").groupBy("first", "key")
    start = F.col("first") * slide_ms
    return by_window.agg(F.sum("count").alias("count")).select(
        start.alias("start_ms"), (start + panes * slide_ms).alias("end_ms"), "key", _value()
    )


def _by_record(records: DataFrame) -> DataFrame:
    """The words of every record by themselves: one row per distinct word; its window is the moment of the due time."""
    words = records.select("partition", "offset", "timestamp", _words().alias("words"))
    each = words.select("*", F.explode(F.array_distinct("words")).alias("word"))
    count = F.size("words") - F.size(F.array_remove("words", F.col("word")))
    due = F.unix_millis("timestamp")
    return each.select(due.alias("start_ms"), due.alias("end_ms"), _key().alias("key"), _value(count))


def _value(count: Column | None = None) -> Column:
    return (F.col("count") if count is None else count).cast("string").alias("value")


def _key() -> Column:
    """A key that no other input record shares."""
    return F.concat_ws(results.WITHIN, results.place(), "word")


def _found_words() -> Column:
    """The same words as `_words` has, found rather than left over."""
    return F.regexp_extract_all(_text(values()), F.lit(f"[a-z]{{{SHORTEST_WORD},}}"), F.lit(0))


def _words() -> Column:
    words = F.split(_text(F.col("value")), "[^a-z]+")
    return F.filter(words, lambda word: F.length(word) >= SHORTEST_WORD)


def _text(value: Column) -> Column:
    return F.lower(value.cast("string"))


def _prefix(level: int, depth: int) -> Column:
    return F.substring("key", 1, depth - level + 1)
