"""The queries that join two kinds of events: each pair as soon as both are there."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from workloads.nexmark.feed import NexmarkEvents, by_join, timely

CATEGORY, NEAR_STATES = 10, ("OR", "ID", "CA")


def q3(feed: NexmarkEvents) -> DataFrame:
    """Local item suggestion: auctions of one category with their sellers in three states."""
    auctions = feed.auctions("id", "category", "seller").where(F.col("category") == CATEGORY).alias("a")
    persons = feed.persons("id", "name", "city", "state").where(F.col("state").isin(*NEAR_STATES)).alias("p")
    pairs = auctions.join(persons, F.expr("a.seller = p.id"))
    return by_join(pairs, "a", "p", "p.name", "p.city", "p.state", F.col("a.id").alias("auction"))


def q8(feed: NexmarkEvents) -> DataFrame:
    """Every auction of a person who is new in the same window, as soon as both are there."""
    auctions, persons = (
        timely(events).withColumn("window", feed.tumbling).drop("date_time").alias(name)
        for events, name in ((feed.auctions("id", "seller"), "a"), (feed.persons("id", "name"), "p"))
    )
    pairs = auctions.join(persons, F.expr("a.seller = p.id AND a.window = p.window"))
    return by_join(pairs, "a", "p", F.col("p.id").alias("person"), "p.name", F.col("a.id").alias("auction"))


def q20(feed: NexmarkEvents) -> DataFrame:
    """Bids on auctions of one category, with what is auctioned."""
    bids = feed.bids("auction", "bidder", "price").alias("b")
    auctions = feed.auctions("id", "item", "expires", "seller", "category")
    auctions = auctions.where(F.col("category") == CATEGORY).alias("a")
    pairs = bids.join(auctions, F.expr("b.auction = a.id"))
    return by_join(pairs, "b", "a", "b.auction", "b.bidder", "b.price", "a.item", "a.seller", "a.expires")
