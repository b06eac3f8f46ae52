"""Sessions of NexMark's Q11 at their edges, which are too rare in generated events to be met."""

from __future__ import annotations

from datetime import UTC, datetime

from pyspark.sql import SparkSession

from experiments.workloads.catalogue import NexmarkQuery, NexmarkSpec
from tests.integration.input_topics import SCHEMA
from workloads.queries import oracle, query

BEGIN_MS, GAP_MS = 1_795_173_799_675, 4_000
BID = '{"kind":"bid","auction":1,"bidder":%d,"price":100,"channel":"c","url":"u","extra":"e"}'


def test_a_bid_at_the_very_end_of_a_session_belongs_to_it(spark: SparkSession) -> None:
    spec = NexmarkSpec(query=NexmarkQuery.Q11, window_s=GAP_MS / 1000)
    second_ms = {1: GAP_MS - 1, 2: GAP_MS, 3: GAP_MS + 1}  # by bidder, after the first bid
    at_ms = [(bidder, ms) for bidder, after in second_ms.items() for ms in (BEGIN_MS, BEGIN_MS + after)]
    rows = [
        ((BID % bidder).encode(), 0, offset, datetime.fromtimestamp(ms / 1000, UTC))
        for offset, (bidder, ms) in enumerate(at_ms)
    ]
    records = spark.createDataFrame(rows, SCHEMA)
    given, exact = (sorted(map(tuple, of(records, spec).collect())) for of in (query, oracle))
    assert given == exact
    assert sorted(key for _, _, key, _ in exact) == ["1", "2", "3", "3"]
