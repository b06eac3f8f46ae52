"""Persons, auctions and bids as DataFrames, and how results are made of them."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from experiments.workloads.catalogue import NexmarkSpec
from workloads import results
from workloads.checked_events import types_of
from workloads.json_records import opening

LATENESS_S = 2.0  # the generator sends records of all partitions in the order in which they are due
FIELDS = {
    "person": "id LONG, name STRING, email STRING, credit_card LONG, city STRING, state STRING, extra STRING",
    "auction": "id LONG, item STRING, description STRING, initial_bid LONG, reserve LONG, expires LONG, seller LONG, "
    "category LONG, extra STRING",
    "bid": "auction LONG, bidder LONG, price LONG, channel STRING, url STRING, extra STRING",
}


class NexmarkEvents:
    """Persons, auctions and bids, read from the topic that has them all."""

    def __init__(self, records: DataFrame, spec: NexmarkSpec) -> None:
        self.records, self.spec = records, spec

    def persons(self, *fields: str) -> DataFrame:
        """People who register: these fields of theirs, and the columns common to all events (`_of_kind`)."""
        return self._of_kind("person", fields)

    def auctions(self, *fields: str) -> DataFrame:
        """Auctions that open: these fields of theirs, and the columns common to all events (`_of_kind`)."""
        return self._of_kind("auction", fields)

    def bids(self, *fields: str) -> DataFrame:
        """Bids: these fields of theirs, and the columns common to all events (`_of_kind`)."""
        return self._of_kind("bid", fields)

    def windowed_bids(self, *fields: str) -> DataFrame:
        """Bids with the tumbling `window` of each."""
        return timely(self.bids(*fields)).withColumn("window", self.tumbling)

    @property
    def tumbling(self) -> Column:
        """The tumbling window of `window_s` in which an event was due, by `date_time`."""
        return F.window("date_time", f"{self.spec.window_ms} milliseconds")

    def _of_kind(self, kind: str, fields: Sequence[str]) -> DataFrame:
        """`place`, `partition` and `offset` of the record, `date_time` and `due_ms` (when it was due), and these of
        `FIELDS[kind]`. Spark parses no others: it would parse all that a schema names, whether used or not.

        Each column is a new one, even if it has the same name: with a column in common, a join of two kinds would make
        Spark read the topic as two sources, whose offsets need not agree.
        """
        text = F.col("value").cast("string")
        types = types_of(FIELDS[kind])
        schema = ", ".join(f"{name} {types[name]}" for name in fields)
        common = [F.col(name).alias(name) for name in ("partition", "offset")]
        read = self.records.where(text.startswith(opening(kind))).select(
            results.place().alias("place"),
            *common,
            F.col("timestamp").alias("date_time"),
            F.unix_millis("timestamp").alias("due_ms"),
            F.from_json(text, schema).alias("event"),
        )
        return read.select("place", "partition", "offset", "date_time", "due_ms", "event.*")


def timely(events: DataFrame, column: str = "date_time") -> DataFrame:
    """Events under a watermark: one that lags by more than `LATENESS_S` on this column of time is late."""
    return events.withWatermark(column, f"{LATENESS_S} seconds")


def by_record(events: DataFrame, *values: Column | str) -> DataFrame:
    """Results that each belong to one event: known by its place, without length at the moment it was due."""
    due = F.col("due_ms")
    return events.select(due.alias("start_ms"), due.alias("end_ms"), F.col("place").alias("key"), *values)


def by_join(pairs: DataFrame, left: str, right: str, *values: Column | str) -> DataFrame:
    """Results of a join, known by both records, at the time of the later one."""
    due = F.greatest(f"{left}.due_ms", f"{right}.due_ms")
    key = F.concat_ws(results.BETWEEN, f"{left}.place", f"{right}.place")
    return pairs.select(due.alias("start_ms"), due.alias("end_ms"), key.alias("key"), *values)


def by_window(grouped: DataFrame, key: Column, *values: Column | str) -> DataFrame:
    """Results of a grouping with a column `window`: known by window and key."""
    start, end = F.unix_millis("window.start"), F.unix_millis("window.end")
    return grouped.select(start.alias("start_ms"), end.alias("end_ms"), key.cast("string").alias("key"), *values)


def in_euros() -> Column:
    """The price in another currency; as a decimal, which is exact by any order of operations."""
    return (F.col("price") * F.lit("0.908").cast("decimal(4,3)")).alias("euros")
