"""What the job should have written, computed in another way: decimals instead of a UDF, arithmetic for windows."""

from pyspark.sql import functions as F

ORDER = "shop STRING, price STRING, ordered_at TIMESTAMP"
TOTAL = "window STRUCT<start: TIMESTAMP, end: TIMESTAMP>, shop STRING, orders LONG, cents LONG"
WINDOW_MS = 5000


def exact(records):
    """From the input: the window in milliseconds, a key, and the value as text."""
    orders = records.select(F.from_json(F.col("value").cast("string"), ORDER).alias("order")).select("order.*")
    start_ms = F.floor(F.unix_millis("ordered_at") / WINDOW_MS) * WINDOW_MS
    totals = orders.groupBy(start_ms.alias("start_ms"), F.col("shop").alias("key")).agg(
        F.count("*").alias("orders"), F.sum(F.col("price").cast("decimal(10, 2)") * 100).cast("long").alias("cents")
    )
    return totals.select("start_ms", (F.col("start_ms") + WINDOW_MS).alias("end_ms"), "key", value().alias("value"))


def results(output):
    """From the output topic: the same four columns."""
    totals = output.select(F.from_json(F.col("value").cast("string"), TOTAL).alias("total")).select("total.*")
    start, end = F.unix_millis("window.start"), F.unix_millis("window.end")
    return totals.select(
        start.alias("start_ms"), end.alias("end_ms"), F.col("shop").alias("key"), value().alias("value")
    )


def value():
    return F.to_json(F.struct("orders", "cents"))
