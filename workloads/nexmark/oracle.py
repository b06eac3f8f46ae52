"""The exact results of NexMark's queries on a finite input, in plain SQL with the means that a stream does not have.

Window functions, joins of anything with anything, exact distinct counts; windows by arithmetic on the due time in
milliseconds (`ms`), so that neither Spark's window functions nor its state is shared with `queries`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from string import Template

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from experiments.workloads.catalogue import NexmarkQuery, NexmarkSpec
from workloads import results
from workloads.checked_events import events
from workloads.nexmark.feed import FIELDS

COLUMNS = {
    "person": ("id", "name", "city", "state"),
    "auction": ("id", "item", "expires", "seller", "category"),
    "bid": ("auction", "bidder", "price", "channel", "url", "extra"),
}
ONE_RECORD = "SELECT ms AS start_ms, ms AS end_ms, place AS key"
LATER = "greatest(x.ms, y.ms)"
BOTH_RECORDS = f"SELECT {LATER} AS start_ms, {LATER} AS end_ms, concat(x.place, ',', y.place)"
TUMBLING = "ms DIV $window_ms * $window_ms"
ONE_WINDOW = f"SELECT {TUMBLING} AS start_ms, {TUMBLING} + $window_ms AS end_ms"
COUNTS = """
count(*) AS all_bids,
count(*) FILTER (WHERE price < 10000) AS low_bids,
count(*) FILTER (WHERE price BETWEEN 10000 AND 999999) AS middle_bids,
count(*) FILTER (WHERE price > 999999) AS high_bids"""
DISTINCT = """
count(DISTINCT {0}) AS all_{0}s,
count(DISTINCT {0}) FILTER (WHERE price < 10000) AS low_{0}s,
count(DISTINCT {0}) FILTER (WHERE price BETWEEN 10000 AND 999999) AS middle_{0}s,
count(DISTINCT {0}) FILTER (WHERE price > 999999) AS high_{0}s"""
WINNING = """WITH winning AS (
    SELECT a.id AS auction, a.ms AS opens, a.expires AS closes, a.seller, a.category, b.bidder, b.price,
        row_number() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.ms, b.offset, b.partition) AS rank
    FROM {auction} a, {bid} b WHERE b.auction = a.id AND b.ms BETWEEN a.ms AND a.expires
)"""
STATISTICS = f"{COUNTS}, {DISTINCT.format('bidder')}, {DISTINCT.format('auction')} FROM {{bid}}"

Q = NexmarkQuery
SQL = {
    Q.Q0: f"{ONE_RECORD}, auction, bidder, price, channel, url, extra FROM {{bid}}",
    Q.Q1: f"{ONE_RECORD}, auction, bidder, price * 0.908 AS euros, extra FROM {{bid}}",
    Q.Q2: f"{ONE_RECORD}, auction, price FROM {{bid}} WHERE auction - auction DIV 123 * 123 = 0",
    Q.Q3: f"""{BOTH_RECORDS} AS key, y.name, y.city, y.state, x.id AS auction FROM {{auction}} x, {{person}} y
        WHERE x.category = 10 AND (y.state = 'OR' OR y.state = 'ID' OR y.state = 'CA') AND y.id = x.seller""",
    Q.Q4: f"""{WINNING} SELECT closes DIV $window_ms * $window_ms AS start_ms,
            closes DIV $window_ms * $window_ms + $window_ms AS end_ms, string(category) AS key,
            sum(price) / count(price) AS average
        FROM winning WHERE rank = 1 GROUP BY 1, 2, 3""",
    Q.Q5: """WITH counts AS (
            SELECT pane * $slide_ms AS start_ms, auction
            FROM {bid} LATERAL VIEW explode(sequence(ms DIV $slide_ms - $panes + 1, ms DIV $slide_ms)) AS pane
        ), ranked AS (
            SELECT start_ms, auction, count(*) AS bids,
                rank() OVER (PARTITION BY start_ms ORDER BY count(*) DESC) AS rank
            FROM counts GROUP BY start_ms, auction
        )
        SELECT start_ms, start_ms + $window_ms AS end_ms, string(auction) AS key, bids FROM ranked WHERE rank = 1""",
    Q.Q6: f"""{WINNING}, latest AS (
            SELECT closes DIV $window_ms * $window_ms AS start_ms, seller, price,
                row_number() OVER (
                    PARTITION BY seller, closes DIV $window_ms ORDER BY closes DESC, auction DESC) AS age
            FROM winning WHERE rank = 1
        )
        SELECT start_ms, start_ms + $window_ms AS end_ms, string(seller) AS key, sum(price) / count(price) AS average
        FROM latest WHERE age <= 10 GROUP BY 1, 2, 3""",
    Q.Q7: f"""WITH ranked AS (
            SELECT *, rank() OVER (PARTITION BY {TUMBLING} ORDER BY price DESC) AS rank FROM {{bid}}
        ) {ONE_WINDOW}, place AS key, auction, bidder, price FROM ranked WHERE rank = 1""",
    Q.Q8: f"""{BOTH_RECORDS} AS key, y.id AS person, y.name, x.id AS auction FROM {{auction}} x, {{person}} y
        WHERE x.seller = y.id AND x.ms DIV $window_ms = y.ms DIV $window_ms""",
    Q.Q9: f"""{WINNING} SELECT opens AS start_ms, closes AS end_ms, string(auction) AS key, bidder, price
        FROM winning WHERE rank = 1""",
    Q.Q10: f"""{ONE_RECORD}, auction, bidder, price, left(string(due), 10) AS day, substr(string(due), 12, 5) AS minute
        FROM {{bid}}""",
    Q.Q11: """WITH gaps AS (
            SELECT bidder, ms,
                coalesce(ms - lag(ms) OVER (PARTITION BY bidder ORDER BY ms) > $window_ms, true) AS begins
            FROM {bid}
        ), numbered AS (
            SELECT bidder, ms, count_if(begins) OVER (PARTITION BY bidder ORDER BY ms) AS session FROM gaps
        )
        SELECT min(ms) AS start_ms, max(ms) + $window_ms AS end_ms, string(bidder) AS key, count(*) AS bids
        FROM numbered GROUP BY bidder, session""",
    Q.Q12: f"{ONE_WINDOW}, string(bidder) AS key, count(*) AS bids FROM {{bid}} GROUP BY 1, 2, 3",
    Q.Q13: f"{ONE_RECORD}, auction, bidder, price, concat('side-', auction % 10000) AS found FROM {{bid}}",
    Q.Q14: f"""WITH timed AS (SELECT *, hour(due) AS hour, price * 0.908 AS euros FROM {{bid}})
        {ONE_RECORD}, auction, bidder, euros,
            CASE WHEN hour IN (7, 19) THEN 'other' WHEN hour BETWEEN 8 AND 18 THEN 'day' ELSE 'night' END AS day_time,
            bigint(length(extra) - length(replace(extra, 'c', ''))) AS letters
        FROM timed WHERE euros >= 1000000 AND euros <= 50000000""",
    Q.Q15: f"{ONE_WINDOW}, 'all' AS key, {STATISTICS} GROUP BY 1, 2",
    Q.Q16: f"{ONE_WINDOW}, channel AS key, {STATISTICS} GROUP BY 1, 2, channel",
    Q.Q17: f"""{ONE_WINDOW}, string(auction) AS key, {COUNTS},
        min(price) AS lowest, max(price) AS highest, sum(price) / count(price) AS average, sum(price) AS total
        FROM {{bid}} GROUP BY 1, 2, 3""",
    Q.Q18: f"""WITH ranked AS (
            SELECT *, row_number() OVER (
                PARTITION BY {TUMBLING}, bidder, auction ORDER BY ms DESC, offset DESC, partition DESC) AS rank
            FROM {{bid}}
        ) {ONE_WINDOW}, concat(bidder, ':', auction) AS key, price, channel, url FROM ranked WHERE rank = 1""",
    Q.Q19: f"""WITH ranked AS (
            SELECT *, row_number() OVER (
                PARTITION BY {TUMBLING}, auction ORDER BY price DESC, ms, offset, partition) AS rank
            FROM {{bid}}
        ) {ONE_WINDOW}, concat(auction, ':', rank) AS key, bidder, price FROM ranked WHERE rank <= 10""",
    Q.Q20: f"""{BOTH_RECORDS} AS key, x.auction, x.bidder, x.price, y.item, y.seller, y.expires
        FROM {{bid}} x, {{auction}} y WHERE x.auction = y.id AND y.category = 10""",
    Q.Q21: f"""WITH known AS (
            SELECT stack(4, 'Apple', '0', 'Google', '1', 'Facebook', '2', 'Baidu', '3') AS (channel, id)
        ) {ONE_RECORD}, auction, bidder, price, channel,
            coalesce(id, substring_index(url, 'channel_id=', -1)) AS channel_id
        FROM {{bid}} LEFT JOIN known USING (channel)""",
    Q.Q22: f"""{ONE_RECORD}, auction, bidder, price, channel, split_part(url, '/', 4) AS folder_1,
        split_part(url, '/', 5) AS folder_2, split_part(url, '/', 6) AS folder_3 FROM {{bid}}""",
}


def oracle(records: DataFrame, spec: NexmarkSpec) -> DataFrame:
    """The exact results of `queries.query` on the same records, as in `workloads.results`."""
    sql = SQL[spec.query]
    columns = columns_in(sql)
    read = _events(records, columns)
    if len(columns) > 1:
        read = read.persist()  # a join would read and parse the topic once for each kind
    panes = spec.window_ms // spec.slide_ms
    numbers = {"window_ms": spec.window_ms, "slide_ms": spec.slide_ms, "panes": panes}
    tables = {kind: _table(read, kind, of_kind) for kind, of_kind in columns.items()}
    return results.packed(records.sparkSession.sql(Template(sql).substitute(numbers), args=None, **tables))


def columns_in(sql: str) -> dict[str, list[str]]:
    """The kinds of events that a query reads, and their fields of which it has the name: what is kept has no others."""
    kinds = [kind for kind in COLUMNS if f"{{{kind}}}" in sql]
    return {kind: [name for name in COLUMNS[kind] if re.search(rf"\b{name}\b", sql)] for kind in kinds}


def _events(records: DataFrame, columns: Mapping[str, Sequence[str]]) -> DataFrame:
    """Events of these kinds, with `partition`, `offset` and `timestamp` of the record; all records are checked."""
    names = dict.fromkeys(name for of_kind in columns.values() for name in of_kind)
    fields = [F.col(f"event.{name}").alias(name) for name in ("kind", *names)]
    read = events(records, FIELDS).select("partition", "offset", "timestamp", *fields)
    return read.where(F.col("kind").isin(list(columns)))


def _table(read: DataFrame, kind: str, names: Sequence[str]) -> DataFrame:
    """Events of a kind, with `place`, `partition` and `offset` of the record, and `due` in UTC and as `ms`."""
    ms = F.unix_millis("timestamp")
    # Not by the session's own clock: where that is set back, an hour of it stands for two.
    due = F.timestamp_add("MILLISECOND", ms, F.lit("1970-01-01").cast("timestamp_ntz"))
    place = F.format_string("%s:%s", F.col("partition").cast("string"), F.col("offset").cast("string"))
    derived = (place.alias("place"), "partition", "offset", ms.alias("ms"), due.alias("due"))
    return read.where(F.col("kind") == kind).select(*derived, *names)
