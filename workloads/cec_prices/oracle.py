"""The exact average prices of a finite input, in plain SQL. Shares nothing with the testbed's operators."""

from __future__ import annotations

from string import Template

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from experiments.workloads.cec_prices import CecPricesSpec
from workloads import results
from workloads.cec_prices.input import PRICE
from workloads.checked_events import events

FIELDS = {PRICE: "item LONG, price LONG"}
QUERY = Template("""
    WITH numbered AS (
        SELECT *, row_number() OVER (PARTITION BY item ORDER BY partition, offset) - 1 AS number
        FROM {purchases} WHERE price >= $least_price
    ),
    windows AS (
        SELECT item, sum(price) AS total, count(*) AS records,
            max_by(struct(at_ms, partition, offset), number) AS last
        FROM numbered GROUP BY item, number DIV $size
    )
    SELECT last.at_ms AS start_ms, last.at_ms AS end_ms, last.partition, last.offset,
        item, total * 1000 DIV $size AS average_milli
    FROM windows WHERE records = $size""")


def oracle(records: DataFrame, spec: CecPricesSpec) -> DataFrame:
    """The average of each window that is complete, as in `workloads.results`: known by the record that closes it."""
    at_ms = F.unix_millis("timestamp").alias("at_ms")
    found = events(records, FIELDS).select("partition", "offset", at_ms, "event.item", "event.price")
    query = QUERY.substitute(least_price=spec.least_price, size=spec.window_records)
    windows = records.sparkSession.sql(query, purchases=found)
    key = results.place().alias("key")
    return results.packed(windows.select("start_ms", "end_ms", key, "item", "average_milli"))
