"""The exact results of the queries over hashtags on a finite input, in plain SQL: a row for each hashtag and slide.

Shares with the testbed's operators who reads whom and the modulus of totals, and nothing else. All queries stand side
by side in one table. So Spark reads the input once, and not once for each way from a query to the input.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from experiments.workloads.hashtags import WINDOW, HashtagsSpec
from workloads import results
from workloads.checked_events import events
from workloads.hashtags.input import TOTALS, TWEET

# A hashtag is in the windows that end with the slide in which it is due, and with the slides after it.
COUNTED = """
    SELECT tag, slide + later AS slide, {counts}
    FROM (SELECT tag, slide, explode(sequence(0, {longest} - 1)) AS later FROM {{tags}})
    GROUP BY ALL"""
# A query without a result for a hashtag in a slide has NULL there.
COUNT = "nullif(count_if(later < {slides}), 0)"
TOTAL = """
    CASE WHEN coalesce({read}) IS NOT NULL
    THEN sum({arrived}) OVER (PARTITION BY tag ORDER BY slide) % {totals} END"""


def oracle(records: DataFrame, spec: HashtagsSpec) -> DataFrame:
    """The results of all queries, as in `workloads.results`; which query gave a result is the first word of its key."""
    slide = F.floor(F.unix_millis("timestamp") / spec.slide_ms).alias("slide")
    words = events(records, {TWEET: "text STRING"}).select(slide, F.explode(F.split("event.text", " ")).alias("word"))
    tags = words.select("slide", F.substring_index("word", "#", -1).alias("tag"))
    windows = {query: spec.window_of(query) for query, read in enumerate(spec.reads) if read == WINDOW}
    slides = {query: length_ms // spec.slide_ms for query, length_ms in windows.items()}
    counts = ", ".join(f"{COUNT.format(slides=each)} AS q{query}" for query, each in slides.items())
    found = records.sparkSession.sql(COUNTED.format(counts=counts, longest=max(slides.values())), tags=tags)
    for query, read in enumerate(spec.reads):
        if read != WINDOW:
            found = found.withColumn(f"q{query}", F.expr(_total([f"q{each}" for each in read])))
    lengths_ms = [windows.get(query, spec.slide_ms) for query in range(len(spec.reads))]
    return _packed(found, spec.slide_ms, lengths_ms)


def _total(read: list[str]) -> str:
    arrived = " + ".join(f"coalesce({each}, 0)" for each in read)
    return TOTAL.format(read=", ".join(read), arrived=arrived, totals=TOTALS)


def _packed(found: DataFrame, slide_ms: int, lengths_ms: list[int]) -> DataFrame:
    """The results by query, from a row for each hashtag and slide."""
    each = ", ".join(f"'q{query}', {length_ms}, q{query}" for query, length_ms in enumerate(lengths_ms))
    rows = found.selectExpr("tag", "slide", f"stack({len(lengths_ms)}, {each}) AS (query, length_ms, count)")
    end = (F.col("slide") + 1) * slide_ms
    key = F.concat_ws(" ", "query", "tag").alias("key")
    rows = rows.where("count IS NOT NULL")
    return results.packed(rows.select((end - F.col("length_ms")).alias("start_ms"), end.alias("end_ms"), key, "count"))
