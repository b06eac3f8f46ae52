"""The queries without state, which process each bid alone."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from workloads.nexmark.feed import NexmarkEvents, by_record, in_euros

BID = ("auction", "bidder", "price", "channel", "url", "extra")
DIVISOR, SIDE_ROWS = 123, 10_000


def q0(feed: NexmarkEvents) -> DataFrame:
    """Pass through: bids as they are, which measures everything but a query."""
    return by_record(feed.bids(*BID), *BID)


def q1(feed: NexmarkEvents) -> DataFrame:
    """Currency conversion: bids with their price in euros."""
    return by_record(feed.bids("auction", "bidder", "price", "extra"), "auction", "bidder", in_euros(), "extra")


def q2(feed: NexmarkEvents) -> DataFrame:
    """Selection: bids on the auctions whose number `DIVISOR` divides."""
    return by_record(feed.bids("auction", "price").where(F.col("auction") % DIVISOR == 0), "auction", "price")


def q10(feed: NexmarkEvents) -> DataFrame:
    """Bids with the day and the minute (UTC) by which a file sink would part them."""
    minute = (F.col("due_ms") / 60_000).cast("long")
    day = F.date_from_unix_date((minute / 1440).cast("int")).cast("string")
    clock = F.format_string("%02d:%02d", (minute / 60).cast("long") % 24, minute % 60)
    return by_record(
        feed.bids("auction", "bidder", "price"),
        "auction",
        "bidder",
        "price",
        day.alias("day"),
        clock.alias("minute"),
    )


def q13(feed: NexmarkEvents) -> DataFrame:
    """Bids joined with a bounded side input: a static table of `SIDE_ROWS` rows."""
    session = feed.records.sparkSession
    side = session.range(SIDE_ROWS).select(F.col("id").alias("side"), F.concat(F.lit("side-"), "id").alias("found"))
    bids = feed.bids("auction", "bidder", "price").withColumn("side", F.col("auction") % SIDE_ROWS)
    return by_record(bids.join(F.broadcast(side), "side"), "auction", "bidder", "price", "found")


def q14(feed: NexmarkEvents) -> DataFrame:
    """Calculation: bids of 1 to 50 million euro cents, with the part of the day (UTC) and a count of the letter c."""
    hour = (F.col("due_ms") / 3_600_000).cast("long") % 24
    day_time = F.when((hour >= 8) & (hour <= 18), "day").when((hour <= 6) | (hour >= 20), "night").otherwise("other")
    letters = F.regexp_count("extra", F.lit("c")).cast("long").alias("letters")
    bids = (
        feed.bids("auction", "bidder", "price", "extra")
        .withColumn("euros", in_euros())
        .where(F.col("euros").between(1_000_000, 50_000_000))
    )
    return by_record(bids, "auction", "bidder", "euros", day_time.alias("day_time"), letters)


def q21(feed: NexmarkEvents) -> DataFrame:
    """Bids with the number of their channel: of a well-known one from a list, of others from the address."""
    channel = F.lower("channel")
    known = F.when(channel == "apple", "0").when(channel == "google", "1")
    known = known.when(channel == "facebook", "2").when(channel == "baidu", "3")
    named = F.regexp_extract("url", r"[&?]channel_id=([^&]*)", 1)
    bids = (
        feed.bids("auction", "bidder", "price", "channel", "url")
        .withColumn("channel_id", known.otherwise(named))
        .where(F.col("channel_id") != "")
    )
    return by_record(bids, "auction", "bidder", "price", "channel", "channel_id")


def q22(feed: NexmarkEvents) -> DataFrame:
    """Bids with the first three folders of their address."""
    folders = F.split("url", "/")
    parts = [folders[3 + i].alias(f"folder_{i + 1}") for i in range(3)]
    return by_record(
        feed.bids("auction", "bidder", "price", "channel", "url"), "auction", "bidder", "price", "channel", *parts
    )
