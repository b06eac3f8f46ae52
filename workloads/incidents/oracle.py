"""The exact results of the incident query on a finite input, in plain SQL.

Shares the meaning of speeds with the testbed's operators (`workloads.incidents.input`), and nothing else.
"""

from __future__ import annotations

from string import Template

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from experiments.workloads.ppa_queries import IncidentsSpec
from workloads import results
from workloads.checked_events import events
from workloads.incidents.input import EVENT, JAM_BELOW_KMH

FIELDS = {EVENT: "segment LONG, speed LONG, incident LONG"}
# An incident is judged at the end of each slide in which somebody measured the speed on its segment.
QUERY = Template("""
    WITH speeds AS (
        SELECT segment, slide, sum(speed) AS total, count(*) AS measured FROM {events}
        WHERE speed >= 0 GROUP BY segment, slide
    ),
    reported AS (
        SELECT incident, segment, slide, explode(sequence(slide, slide + $slides - 1)) AS last FROM {events}
        WHERE incident >= 0
    ),
    windows AS (
        SELECT last, incident, segment, min(slide) AS since, count(*) AS reports FROM reported
        GROUP BY last, incident, segment
    ),
    judged AS (
        SELECT windows.* FROM windows LEFT SEMI JOIN speeds
        ON windows.segment = speeds.segment AND windows.last = speeds.slide
    )
    SELECT (last + 1) * $slide_ms - $window_ms AS start_ms, (last + 1) * $slide_ms AS end_ms,
        CAST(incident AS STRING) AS key, segment, reports, sum(total) DIV sum(measured) AS mean_kmh
    FROM judged JOIN speeds USING (segment) WHERE speeds.slide BETWEEN since AND last
    GROUP BY last, incident, segment, reports HAVING sum(total) < $jam * sum(measured)""")


def oracle(records: DataFrame, spec: IncidentsSpec) -> DataFrame:
    """The incidents of each window whose segment is jammed since the first report of them in the window.

    As in `workloads.results`: an incident is known by its number.
    """
    slide = F.floor(F.unix_millis("timestamp") / spec.slide_ms).alias("slide")
    found = events(records, FIELDS).select(slide, "event.segment", "event.speed", "event.incident")
    numbers = {"slides": spec.window_ms // spec.slide_ms, "slide_ms": spec.slide_ms, "window_ms": spec.window_ms}
    query = QUERY.substitute(numbers, jam=JAM_BELOW_KMH)
    return results.packed(records.sparkSession.sql(query, events=found))
