"""The exact results of the queries over hashtags on a finite input, in plain SQL: query by query, as `READS` says.

Shares with the testbed's operators who reads whom and the modulus of totals, and nothing else.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from experiments.hashtags import WINDOW, HashtagsSpec
from workloads import results
from workloads.hashtags import TOTALS

# A hashtag is in the windows that end with the slide in which it is due, and with the slides after it.
COUNTED = """
    SELECT tag, slide + later AS slide, count(*) AS count
    FROM (SELECT tag, slide, explode(sequence(0, {slides} - 1)) AS later FROM {tags})
    GROUP BY ALL"""
TOTALLED = """
    SELECT tag, slide, sum(arrived) OVER (PARTITION BY tag ORDER BY slide) % {totals} AS count
    FROM (SELECT tag, slide, sum(count) AS arrived FROM {given} GROUP BY tag, slide)"""


def oracle(records: DataFrame, spec: HashtagsSpec) -> DataFrame:
    """The results of all queries, as in `workloads.results`; which query gave a result is the first word of its key."""
    sql = records.sparkSession.sql
    text = F.from_json(F.col("value").cast("string"), "text STRING")["text"]
    slide = F.floor(F.unix_millis("timestamp") / spec.slide_ms).alias("slide")
    words = records.select(slide, F.explode(F.split(text, " ")).alias("word"))
    tags = words.select("slide", F.substring_index("word", "#", -1).alias("tag"))
    queries: list[DataFrame] = []
    for query, read in enumerate(spec.reads):
        if read == WINDOW:
            queries.append(sql(COUNTED, tags=tags, slides=spec.window_of(query) // spec.slide_ms))
        else:
            given = reduce(DataFrame.unionByName, (queries[each] for each in read))
            # Without this, Spark 4.2 leaves equal hashtags of two totals apart: each is partitioned by hashtag already.
            queries.append(sql(TOTALLED, given=given.repartition("tag"), totals=TOTALS))
    return reduce(DataFrame.unionByName, (_packed(found, spec, query) for query, found in enumerate(queries)))


def _packed(found: DataFrame, spec: HashtagsSpec, query: int) -> DataFrame:
    length_ms = spec.window_of(query) if spec.reads[query] == WINDOW else spec.slide_ms
    end = (F.col("slide") + 1) * spec.slide_ms
    key = F.concat(F.lit(f"q{query} "), "tag").alias("key")
    return results.packed(found.select((end - length_ms).alias("start_ms"), end.alias("end_ms"), key, "count"))
