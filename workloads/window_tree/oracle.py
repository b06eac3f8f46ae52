"""The exact results of the window tree on a finite input, in plain SQL: level by level, sums by window functions.

Shares the meaning of marks and values with the testbed's operators (`workloads.window_tree.input`), and nothing else.
"""

from __future__ import annotations

from itertools import pairwise
from string import Template

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from experiments.workloads.window_tree import WindowTreeSpec
from workloads import results
from workloads.checked_events import events
from workloads.window_tree.input import FACTOR, MARKS, TUPLE, VALUES, limit

FIELDS = {TUPLE: "mark LONG, value LONG"}
# A tuple is in the window that ends with the slide in which it is due, and in the earlier ones of later results.
LEVEL = Template("""
    SELECT task, slide, key, mark * $factor % $marks AS mark, (value + total) % $values AS value
    FROM (
        SELECT *, sum(value) OVER (
            PARTITION BY task ORDER BY slide RANGE BETWEEN $earlier PRECEDING AND CURRENT ROW) AS total
        FROM (SELECT task * $here DIV $before AS task, slide, key, mark, value FROM {tuples})
    )
    WHERE mark < $limit""")


def oracle(records: DataFrame, spec: WindowTreeSpec) -> DataFrame:
    """The results of the last operator, as in `workloads.results`; partition i of the topic is task i of the source.

    A result is known by where its tuple is in the input, and belongs to the window that ends with the tuple's slide.
    """
    slide = F.floor(F.unix_millis("timestamp") / spec.slide_ms).alias("slide")
    task, key = F.col("partition").cast("long").alias("task"), results.place().alias("key")
    found = events(records, FIELDS).select(task, slide, key, "event.mark", "event.value")
    numbers = {"factor": FACTOR, "marks": MARKS, "values": VALUES, "limit": limit(spec)}
    earlier = spec.window_ms // spec.slide_ms - 1
    for before, here in pairwise(spec.parallelism):
        level = LEVEL.substitute(numbers, before=before, here=here, earlier=earlier)
        found = records.sparkSession.sql(level, tuples=found)
    end = (F.col("slide") + 1) * spec.slide_ms
    start = (end - spec.window_ms).alias("start_ms")
    return results.packed(found.select(start, end.alias("end_ms"), "key", "value"))
