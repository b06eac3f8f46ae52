"""A workload: page views, counted by page and window. Its spec, its input, its query, and the oracle of the query."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Literal

from pydantic import Field
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from experiments.workloads.base import Milliseconds, Windowed
from workloads import results
from workloads.checked_events import events
from workloads.schedule import Schedule

LATENESS_S = 2.0
KIND, VIEW = "view", "page STRING, seconds INT"


class PageViewsSpec(Windowed):
    """Views of `pages` pages, of which the first ones are seen most."""

    name: Literal["page-views"] = "page-views"
    pages: Annotated[int, Field(ge=1, le=1_000_000, description="page-views: how many pages there are")] = 1000
    window_s: Milliseconds = 10.0
    slide_s: Milliseconds = 10.0

    @property
    def title(self) -> str:
        return self.name

    @property
    def depth(self) -> int:
        return 1  # one stateful operator

    @property
    def by_record(self) -> bool:
        return False  # results belong to windows

    @property
    def settling_ms(self) -> int:
        return 0  # they are final once the watermark has passed the end of their window


def records(spec: PageViewsSpec, _schedule: Schedule) -> Callable[[int, int], list[bytes]]:
    """Values by position. The same positions always have the same values, in calls for any range."""
    return lambda start, stop: [_view(spec, position) for position in range(start, stop)]


def _view(spec: PageViewsSpec, position: int) -> bytes:
    scattered = position * 2_654_435_761 % 2**32 / 2**32  # Knuth's multiplicative hash, from 0 to 1
    page = int(spec.pages * scattered**2)
    return json.dumps({"kind": KIND, "page": f"/page/{page}", "seconds": position % 60}).encode()


def query(views: DataFrame, spec: PageViewsSpec) -> DataFrame:
    """A streaming DataFrame with value, timestamp, partition and offset into one of `results.COLUMNS`."""
    window = F.window("timestamp", f"{spec.window_ms} milliseconds", f"{spec.slide_ms} milliseconds")
    counted = _parsed(views.withWatermark("timestamp", f"{LATENESS_S} seconds")).groupBy(window, "page")
    start, end = F.unix_millis("window.start"), F.unix_millis("window.end")
    rows = counted.agg(F.count("*").alias("views"), F.sum("seconds").alias("seconds"))
    return results.packed(
        rows.select(start.alias("start_ms"), end.alias("end_ms"), F.col("page").alias("key"), "views", "seconds")
    )


def oracle(views: DataFrame, spec: PageViewsSpec) -> DataFrame:
    """The same results, computed in another way: the windows of a view follow from its time."""
    slide_ms, windows = spec.slide_ms, spec.window_ms // spec.slide_ms
    newest = F.floor(F.unix_millis("timestamp") / slide_ms) * slide_ms
    starts = F.transform(F.sequence(F.lit(0), F.lit(windows - 1)), lambda back: newest - back * slide_ms)
    parsed = events(views, {KIND: VIEW})  # which fails for a record that is no view, where `from_json` gives null
    each = parsed.select(F.explode(starts).alias("start_ms"), F.col("event.page").alias("key"), "event.seconds")
    rows = each.groupBy("start_ms", "key").agg(F.count("*").alias("views"), F.sum("seconds").alias("seconds"))
    end = (F.col("start_ms") + spec.window_ms).alias("end_ms")
    return results.packed(rows.select("start_ms", end, "key", "views", "seconds"))


def _parsed(views: DataFrame) -> DataFrame:
    return views.select("timestamp", F.from_json(F.col("value").cast("string"), VIEW).alias("view")).select(
        "timestamp", "view.*"
    )
