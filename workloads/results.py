"""The form of every query's results, so that one sink, one oracle format and one comparison serve all.

    start_ms, end_ms   the window that the result belongs to; of single records, when the last of them was due
    key                names the result within its window; of single records, it begins with where they are in the input
    value              the result itself, as JSON text

A message has them as one JSON object, in this order and with `value` as it is: quoted as a string, it would be made
and read twice.

Where a record is in the input is `partition:offset`, of records that meet in a join one after the other with a comma.
"""

from __future__ import annotations

import json

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

COLUMNS = ("start_ms", "end_ms", "key", "value")
SCHEMA = "start_ms LONG, end_ms LONG, key STRING"  # of a message, without its value
VALUE = ',"value":'  # no key has it: there its quotes are escaped
WITHIN, BETWEEN = ":", ","  # no key has them in its own words


def place(partition: str = "partition", offset: str = "offset") -> Column:
    """Where a record is in the input."""
    return F.concat_ws(WITHIN, partition, offset)


def position(key: str) -> tuple[Column, Column]:
    """Partition and offset (as strings) of the first input record that a result belongs to; null if it tells none."""
    parts = F.split(key, f"[{WITHIN}{BETWEEN}]")
    return F.get(parts, 0), F.get(parts, 1)


def committed(key: str, offsets: dict[str, int]) -> Column:
    """Whether every input record of a result lies before the end offset of its partition.

    So is that of a result that does not tell its records: whatever is read later, it cannot be right.
    """
    ends = F.from_json(F.lit(json.dumps(offsets)), "MAP<STRING, LONG>")

    def before_the_end(record: Column) -> Column:
        parts = F.split(record, WITHIN)
        offset = F.get(parts, 1).try_cast("long")
        return offset.isNull() | (offset < F.coalesce(ends[parts[0]], F.lit(0)))

    return F.forall(F.split(key, BETWEEN), before_the_end)


def packed(results: DataFrame) -> DataFrame:
    """All columns but the first three (start_ms, end_ms, key) as one JSON object in `value`."""
    return results.select("start_ms", "end_ms", "key", F.to_json(F.struct(*results.columns[3:])).alias("value"))


def messages(results: DataFrame) -> DataFrame:
    """`key` and `value` of the Kafka message of each result."""
    key = F.concat_ws("|", "start_ms", "key").alias("key")
    head = F.rtrim(F.to_json(F.struct(*COLUMNS[:3])), F.lit("}"))
    return results.select(key, F.concat(head, F.lit(VALUE), "value", F.lit("}")).alias("value"))


def read(messages: DataFrame, *more: Column, schema: str = SCHEMA) -> DataFrame:
    """The fields of `schema` and the `value` of each message, from its column `value` with its bytes, and `more` of it.

    The value is cut out, not parsed: Spark would write its numbers anew, 12.30 as 12.3. With one `select` instead of
    two, Spark would parse each message once for every field.
    """
    text = F.col("value").cast("string")
    value = F.regexp_extract(text, f"(?s){VALUE}(.*)}}$", 1).alias("value")
    parsed = messages.select(F.from_json(text, schema).alias("fields"), value, *more)
    return parsed.select("fields.*", *parsed.columns[1:])
