"""The queries of winning bids: the highest bid of each auction while it is open, alone or as part of an average."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from workloads.nexmark.feed import NexmarkEvents, by_window, timely

LAST = 10  # auctions of a seller that Q6 averages


def q4(feed: NexmarkEvents) -> DataFrame:
    """The average of the winning bids of each category, over the auctions that close in the same window."""
    won = _winning(feed, "category").withColumn("price", F.col("won.price"))
    average = won.groupBy(_of_closing(feed), "category").agg(F.avg("price").alias("average"))
    return by_window(average, F.col("category"), "average")


def q6(feed: NexmarkEvents) -> DataFrame:
    """The average of the winning bids of each seller's last ten auctions among those that close in the same window."""
    sold = F.struct("closes", "auction", F.col("won.price").alias("price"))
    by_seller = _winning(feed, "seller").select("closes", "seller", sold.alias("sold"))
    all_sold = by_seller.groupBy(_of_closing(feed), "seller").agg(F.collect_list("sold").alias("sold"))
    last = all_sold.withColumn("last", F.slice(F.sort_array("sold", asc=False), 1, LAST))
    total = F.aggregate("last", F.lit(0).cast("long"), lambda added, auction: added + auction["price"])
    return by_window(last.withColumn("average", total / F.size("last")), F.col("seller"), "average")


def q9(feed: NexmarkEvents) -> DataFrame:
    """The highest bid of each auction while it is open, the earliest of equal ones; no auction outlasts a window."""
    window = F.struct(F.col("opens").alias("start"), F.col("closes").alias("end"))
    return by_window(_winning(feed).withColumn("window", window), F.col("auction"), "won.bidder", "won.price")


def _winning(feed: NexmarkEvents, *of_auction: str) -> DataFrame:
    """`won` (bidder, price) of each auction that has a bid, when it `opens` and `closes`, and these columns of it.

    `closes` is the column of the watermark.
    """
    opened = feed.auctions("id", "expires", *of_auction).withColumn("closes", F.timestamp_millis("expires"))
    auctions = timely(opened, "closes").alias("a")
    bids = timely(feed.bids("auction", "bidder", "price")).alias("b")
    longest = F.expr(f"INTERVAL {feed.spec.window_ms} MILLISECONDS")
    while_open = (
        (F.col("b.auction") == F.col("a.id"))
        & F.col("b.date_time").between(F.col("a.date_time"), F.col("a.closes"))
        & (F.col("b.date_time") >= F.col("a.closes") - longest)
    )
    pairs = auctions.join(bids, while_open).select(
        F.col("a.id").alias("auction"),
        F.col("a.date_time").alias("opens"),
        "a.closes",
        *(f"a.{name}" for name in of_auction),
        "b.bidder",
        "b.price",
        F.struct("b.price", -F.col("b.due_ms"), -F.col("b.offset"), -F.col("b.partition")).alias("rank"),
    )
    each = pairs.groupBy("auction", "opens", "closes", *of_auction)
    return each.agg(F.max_by(F.struct("bidder", "price"), "rank").alias("won"))


def _of_closing(feed: NexmarkEvents) -> Column:
    """The tumbling window in which an auction closes."""
    return F.window("closes", f"{feed.spec.window_ms} milliseconds").alias("window")
