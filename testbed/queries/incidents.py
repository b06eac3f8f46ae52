"""The incident query (`ppa`, section VI-B, Q2): speeds of segments joined with incidents, and which of them make jams.

From the paper are the operators: the average speed of each segment and second (`speeds`), reports combined into
distinct incidents (`distinct`), their join (`jams`), and all jams together (`all-jams`). Speeds are passed on as sum
and number, so that averages of averages stay exact. `workloads.incidents.input` says what a jam is.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from experiments.workloads.ppa_queries import SECOND_MS, IncidentsSpec
from testbed.core.dataflow.graph import Dataflow
from testbed.operators import Aggregation, Delivery, sliding, tumbling
from testbed.operators.by_slide import BySlide, SlideTotals, window_of
from workloads.incidents.input import EVENTS, JAM_BELOW_KMH
from workloads.schedule import NS_PER_MS

SPEEDS = (Aggregation("total", "sum", "speed"), Aggregation("measured", "count"))
REPORTS = (Aggregation("reports", "count"),)
JAMS = pa.schema([(name, pa.int64()) for name in ("at_ns", "incident", "segment", "reports", "mean_kmh")])
Since = dict[tuple[int, int], tuple[int, int]]


class Jams(BySlide):
    """At the end of a slide, the incidents of the window on whose segment traffic is jammed.

    It is if the mean speed is too low from the first slide of the window with a report of the incident to the last. An
    incident is judged only if a speed was measured on its segment in the slide that ends.
    """

    joins = True

    def schema(self, *inputs: pa.Schema) -> pa.Schema:
        return JAMS

    def ended(self, end: int) -> pa.RecordBatch:
        measured = {segment for rows in self.slide(end) for segment in rows.column("segment").to_pylist()}
        incidents = {each: found for each, found in self._incidents(end).items() if each[1] in measured}
        speeds = self._speeds(end, {segment for _, segment in incidents})
        rows = []
        for (incident, segment), (since, reports) in sorted(incidents.items()):
            totals = [speed for start, speed in speeds[segment] if start >= since]
            total, count = (sum(each) for each in zip(*totals, strict=True))
            if total < JAM_BELOW_KMH * count:
                rows.append((end - 1, incident, segment, reports, total // count))
        columns = zip(*rows, strict=True) if rows else [[]] * len(JAMS)
        return pa.RecordBatch.from_arrays([pa.array(column, pa.int64()) for column in columns], schema=JAMS)

    def _incidents(self, end: int) -> Since:
        """By incident and segment the first slide of the window with a report, and the number of reports."""
        found: Since = {}
        for start, rows in self.window(end, port=1):
            columns = (rows.column(name).to_pylist() for name in ("incident", "segment", "reports"))
            for incident, segment, reports in zip(*columns, strict=True):
                since, before = found.get((incident, segment), (start, 0))
                found[incident, segment] = (since, before + reports)
        return found

    def _speeds(self, end: int, segments: set[int]) -> dict[int, list[tuple[int, tuple[int, int]]]]:
        """For each of these segments the slides of the window, each with the sum and the number of speeds."""
        found: dict[int, list[tuple[int, tuple[int, int]]]] = {segment: [] for segment in segments}
        wanted = pa.array(sorted(segments), pa.int64())
        for start, rows in self.window(end):
            chosen = rows.filter(pc.is_in(rows.column("segment"), wanted))
            columns = (chosen.column(name).to_pylist() for name in ("segment", "total", "measured"))
            for segment, total, measured in zip(*columns, strict=True):
                found[segment].append((start, (total, measured)))
        return found


class AllJams(BySlide):
    """The jams of all regions at the end of a slide, in the order of the incidents' numbers."""

    def schema(self, *inputs: pa.Schema) -> pa.Schema:
        return JAMS

    def ended(self, end: int) -> pa.RecordBatch:
        return pa.concat_batches(self.slide(end)).sort_by("incident")


def incidents(spec: IncidentsSpec, delivery: Delivery) -> Dataflow:
    """A source `events`, then `speeds` and `distinct` beside each other, `jams`, and `all-jams` in one partition."""
    flow, (sources, regions, joined) = Dataflow(spec.name), spec.parallelism
    second, slide_ns = tumbling("at_ns", SECOND_MS * NS_PER_MS), spec.slide_ms * NS_PER_MS
    events = flow.source("events", EVENTS, sources, time="at_ns")
    by_segment = SlideTotals(second, ("segment",), SPEEDS, lambda batch: pc.greater_equal(batch.column("speed"), 0))
    speeds = flow.operator("speeds", by_segment, events, parallelism=regions)
    by_incident = SlideTotals(
        second, ("incident", "segment"), REPORTS, lambda batch: pc.greater_equal(batch.column("incident"), 0)
    )
    distinct = flow.operator("distinct", by_incident, events, parallelism=regions)
    window = Jams(sliding("at_ns", spec.window_ms * NS_PER_MS, slide_ns), ("speeds", "incidents"))
    jams = flow.operator("jams", window, speeds, distinct, parallelism=joined)
    flow.operator("all-jams", AllJams(tumbling("at_ns", slide_ns)), jams, parallelism=1).sink("out", delivery)
    return flow


def packed_incidents(results: pa.RecordBatch, window_ms: int) -> Iterator[tuple[int, int, str, str]]:
    """For each result: start_ms and end_ms of its window, the incident, and what is known of it."""
    columns = (results.column(name).to_pylist() for name in JAMS.names)
    for at_ns, incident, segment, reports, mean_kmh in zip(*columns, strict=True):
        value = f'{{"segment":{segment},"reports":{reports},"mean_kmh":{mean_kmh}}}'
        yield *window_of(at_ns, window_ms), str(incident), value
