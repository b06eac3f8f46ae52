"""The queries that aggregate: each window once, when the watermark passes its end."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from workloads import results
from workloads.nexmark.feed import NexmarkEvents, by_window, timely

LOW_PRICE, HIGH_PRICE = 10_000, 1_000_000  # between the three ranks of prices
TOP = 10


def q5(feed: NexmarkEvents) -> DataFrame:
    """Hot items: the auctions with the most bids in each sliding window, with that count; all that share it."""
    hopping = F.window("date_time", f"{feed.spec.window_ms} milliseconds", f"{feed.spec.slide_ms} milliseconds")
    counts = timely(feed.bids("auction")).groupBy(hopping, "auction").agg(F.count("*").alias("bids"))
    each = counts.groupBy("window").agg(
        F.max("bids").alias("bids"), F.collect_list(F.struct("auction", "bids")).alias("c")
    )
    hottest = F.explode(F.filter("c", lambda auction: auction["bids"] == F.col("bids")))
    hot = each.select("window", "bids", hottest.alias("hot"))
    return by_window(hot, F.col("hot.auction"), F.col("bids"))


def q7(feed: NexmarkEvents) -> DataFrame:
    """All bids at the highest price of each window."""
    bid = F.struct("place", "auction", "bidder", "price")
    by_price = (
        feed.windowed_bids("auction", "bidder", "price")
        .groupBy("window", "price")
        .agg(F.collect_list(bid).alias("bids"))
    )
    highest = by_price.groupBy("window").agg(F.max_by("bids", "price").alias("bids"))
    return by_window(
        highest.select("window", F.explode("bids").alias("bid")),
        F.col("bid.place"),
        "bid.auction",
        "bid.bidder",
        "bid.price",
    )


def q11(feed: NexmarkEvents) -> DataFrame:
    """Bids of each bidder in each session, which ends after `window_s` without a bid.

    A bid at that very moment still belongs to it: Spark merges sessions that only touch, as no other kind of windows.
    """
    session = F.session_window("date_time", f"{feed.spec.window_ms} milliseconds").alias("window")
    bids = timely(feed.bids("bidder")).groupBy(session, "bidder").agg(F.count("*").alias("bids"))
    return by_window(bids, F.col("bidder"), "bids")


def q12(feed: NexmarkEvents) -> DataFrame:
    """Bids of each bidder in each tumbling window, of the time at which they were due."""
    bids = feed.windowed_bids("bidder").groupBy("window", "bidder").agg(F.count("*").alias("bids"))
    return by_window(bids, F.col("bidder"), "bids")


def q15(feed: NexmarkEvents) -> DataFrame:
    """Counts of bids, distinct bidders and distinct auctions in each window, in all and by rank of price."""
    return _statistics(feed, F.lit("all"))


def q16(feed: NexmarkEvents) -> DataFrame:
    """The counts of `q15` for each channel."""
    return _statistics(feed, F.col("channel"), "channel")


def _statistics(feed: NexmarkEvents, group: Column, *fields: str) -> DataFrame:
    """Bids, and distinct bidders and auctions, in all and by rank of price; by two counts in a row. `fields` are those
    of `group`.

    Structured Streaming has no exact distinct aggregate: the first count finds the bidders and auctions of a window,
    the second counts them.
    """
    who = F.explode(
        F.array(*(F.struct(F.lit(kind).alias("kind"), F.col(kind).alias("id")) for kind in ("bidder", "auction")))
    )
    bids = feed.windowed_bids("auction", "bidder", "price", *fields).select(
        "window", group.alias("group"), "price", who.alias("who")
    )
    counts = [F.count("*").alias("all"), *(F.count_if(rank).alias(name) for name, rank in ranks().items())]
    each = bids.groupBy("window", "group", "who").agg(*counts)
    bidder, names = F.col("who.kind") == "bidder", ("all", *ranks())
    totals = [F.sum(F.when(bidder, F.col(name)).otherwise(0)).alias(f"{name}_bids") for name in names]
    kinds = (("bidders", bidder), ("auctions", ~bidder))
    distinct = [
        F.count_if(kind & (F.col(name) > 0)).alias(f"{name}_{label}") for label, kind in kinds for name in names
    ]
    return by_window(
        each.groupBy("window", "group").agg(*totals, *distinct), F.col("group"), *_names(totals + distinct)
    )


def _names(columns: list[Column]) -> list[str]:
    labels = ("bids", "bidders", "auctions")
    return [f"{name}_{label}" for label in labels for name in ("all", *ranks())][: len(columns)]


def q17(feed: NexmarkEvents) -> DataFrame:
    """For each auction in a window: bids in all and by rank of price; lowest, highest, average and total price."""
    counts = [
        F.count("*").alias("all_bids"),
        *(F.count_if(rank).alias(f"{name}_bids") for name, rank in ranks().items()),
    ]
    prices = [aggregate("price").alias(name) for name, aggregate in _price_figures().items()]
    bids = feed.windowed_bids("auction", "price").groupBy("window", "auction").agg(*counts, *prices)
    return by_window(bids, F.col("auction"), *(name for name in bids.columns if name not in ("window", "auction")))


def _price_figures() -> dict[str, Callable[[str], Column]]:
    return {"lowest": F.min, "highest": F.max, "average": F.avg, "total": F.sum}


def q18(feed: NexmarkEvents) -> DataFrame:
    """Each bidder's last bid on each auction in a window."""
    bid = F.struct("price", "channel", "url")
    newest = F.struct("due_ms", "offset", "partition")
    bids = feed.windowed_bids("auction", "bidder", "price", "channel", "url")
    last = bids.groupBy("window", "bidder", "auction").agg(F.max_by(bid, newest).alias("bid"))
    return by_window(last, F.concat_ws(results.WITHIN, "bidder", "auction"), "bid.*")


def q19(feed: NexmarkEvents) -> DataFrame:
    """The ten highest bids on each auction in a window, the earlier of equal ones first."""
    bid = F.struct("price", earliest().alias("earliest"), "bidder")
    by_auction = feed.windowed_bids("auction", "bidder", "price").groupBy("window", "auction")
    bids = by_auction.agg(F.collect_list(bid).alias("bids"))
    best = F.posexplode(F.slice(F.sort_array("bids", asc=False), 1, TOP))
    top = bids.select("window", "auction", best.alias("rank", "bid"))
    return by_window(top, F.concat_ws(results.WITHIN, "auction", F.col("rank") + 1), "bid.bidder", "bid.price")


def earliest() -> Column:
    """Greater for an event that came earlier."""
    return F.struct(-F.col("due_ms"), -F.col("offset"), -F.col("partition"))


def ranks() -> dict[str, Column]:
    """Three conditions on the price [cents], by name; each bid meets exactly one."""
    price = F.col("price")
    return {
        "low": price < LOW_PRICE,
        "middle": (price >= LOW_PRICE) & (price < HIGH_PRICE),
        "high": price >= HIGH_PRICE,
    }
