"""The latency of each query relative to its mean before the first loss.

Source: `incremental`, section 7.2. The latency of a query is the mean time from when its input was due until what it
makes of it is published. It is taken slide by slide: the input of a slide is due, on average, in the middle of it, and
comes into the output with the results of the first window that ends with it. The paper calls a query available as soon
as its relative latency, over an interval whose length it does not give, is below 1.2.

Only workload `hashtags` names the query in each result. That is the query of a sink: of several partitions, together.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import NamedTuple, cast

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from experiments.spec import Experiment
from experiments.workloads.hashtags import HashtagsSpec
from results.summary.availability import NORMAL, NORMAL_S, next_losses
from results.tables.columns import Row

NS_PER_MS = 1_000_000


class Slide(NamedTuple):
    """When the results of a query for one slide came to the sink, on average, and when that slide ended."""

    query: str
    end_ns: int
    arrived_ns: int


def slides(sink: DataFrame) -> list[Slide]:
    """Those of all results that came in time order; the last ones come before their slides end, as the run ends."""
    query = F.substring_index("key", " ", 1).alias("query")
    means = sink.groupBy(query, "end_ms").agg(F.avg("arrived_ms").alias("arrived_ms"))
    found = (Slide(row.query, row.end_ms * NS_PER_MS, round(row.arrived_ms * NS_PER_MS)) for row in means.collect())
    return sorted(each for each in found if each.arrived_ns >= each.end_ns)


def query_latencies(
    experiment: Experiment, found: Iterable[Slide], start_ns: int, first_loss_ns: int | None
) -> list[Row]:
    """A row for each query and slide from the start of the window on; usual is the mean before the first loss."""
    half_ns = _slide_ms(experiment) * NS_PER_MS // 2
    listed = [each for each in found if each.end_ns - half_ns >= start_ns]
    before: dict[str, list[int]] = {}
    for each in listed:
        if first_loss_ns is None or each.arrived_ns < first_loss_ns:
            before.setdefault(each.query, []).append(each.arrived_ns - each.end_ns + half_ns)
    usual_ns = {query: fmean(latencies) for query, latencies in before.items()}
    return [_row(each, half_ns, usual_ns.get(each.query)) for each in listed]


def _row(slide: Slide, half_ns: int, usual_ns: float | None) -> Row:
    due_ns = slide.end_ns - half_ns
    latency_ns = slide.arrived_ns - due_ns
    return {
        "query": slide.query,
        "due_ns": due_ns,
        "arrived_ns": slide.arrived_ns,
        "latency_s": latency_ns / 1e9,
        "relative_latency": latency_ns / usual_ns if usual_ns else None,
    }


def with_normal(experiment: Experiment, recovered: Sequence[Row], latencies: Sequence[Row]) -> list[Row]:
    """Rows of `query_recoveries` with `normal_ns`: from when on a query's relative latency was normal.

    That is the arrival of the first slide after its recovery was planned from which on the mean over `NORMAL_S` is
    below `NORMAL`, if all slides of that interval came before the query was lost again. Null if sinks have several
    partitions, of which each is a query that is restored by itself.
    """
    if experiment.engine.partitions > 1:
        return list(recovered)
    count = max(1, math.ceil(NORMAL_S * 1000 / _slide_ms(experiment)))
    queries, deaths_ns = ([row[name] for row in recovered] for name in ("query", "death_ns"))
    again_ns = next_losses(cast(Sequence[str], queries), cast(Sequence[int], deaths_ns))
    return [
        row | {"normal_ns": _normal_ns(row, until_ns, latencies, count)}
        for row, until_ns in zip(recovered, again_ns, strict=True)
    ]


def _normal_ns(row: Row, until_ns: float, latencies: Sequence[Row], count: int) -> int | None:
    planned_ns = cast("int | None", row["planned_ns"])
    if planned_ns is None:
        return None
    sink = cast(str, row["query"]).rpartition(".")[0]
    seen = [
        (arrived_ns, cast(float, each["relative_latency"]))
        for each in latencies
        if each["query"] == sink and each["relative_latency"] is not None
        if planned_ns <= (arrived_ns := cast(int, each["arrived_ns"])) < until_ns
    ]
    for first in range(len(seen) - count + 1):
        if fmean(relative for _, relative in seen[first : first + count]) < NORMAL:
            return seen[first][0]
    return None


def _slide_ms(experiment: Experiment) -> int:
    return cast(HashtagsSpec, experiment.workload).slide_ms
