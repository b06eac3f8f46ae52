"""The exact results of the top-100 query on a finite input, in plain SQL: all requests of a window at once.

Shares the number of entries and the form of a result with the testbed's operators, and nothing else.
"""

from __future__ import annotations

from string import Template

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from experiments.workloads.ppa_queries import Top100Spec
from workloads import results
from workloads.checked_events import events
from workloads.top_100.input import REQUEST, TOP

FIELDS = {REQUEST: "entry LONG"}
# A window has a result if requests came in the slide with which it ends; slides are numbered from the epoch.
QUERY = Template("""
    WITH counted AS (SELECT slide, entry, count(*) AS requests FROM {requests} GROUP BY slide, entry),
    windows AS (SELECT entry, requests, explode(sequence(slide, slide + $slides - 1)) AS last FROM counted),
    totals AS (
        SELECT last, entry, sum(requests) AS requests FROM windows
        WHERE last IN (SELECT slide FROM counted) GROUP BY last, entry
    ),
    ranked AS (SELECT *, row_number() OVER (PARTITION BY last ORDER BY requests DESC, entry) AS place FROM totals)
    SELECT (last + 1) * $slide_ms - $window_ms AS start_ms, (last + 1) * $slide_ms AS end_ms,
        CAST(entry AS STRING) AS key, requests
    FROM ranked WHERE place <= $top""")


def oracle(records: DataFrame, spec: Top100Spec) -> DataFrame:
    """The most requested entries of each window with their requests, as in `workloads.results`."""
    slide = F.floor(F.unix_millis("timestamp") / spec.slide_ms).alias("slide")
    found = events(records, FIELDS).select(slide, "event.entry")
    slides = spec.window_ms // spec.slide_ms
    query = QUERY.substitute(slides=slides, slide_ms=spec.slide_ms, window_ms=spec.window_ms, top=TOP)
    return results.packed(records.sparkSession.sql(query, requests=found))
