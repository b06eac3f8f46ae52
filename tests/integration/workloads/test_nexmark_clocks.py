"""NexMark's queries that name a day, a minute or an hour, on a machine whose own clock is not in UTC."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pyspark.sql import SparkSession

from experiments.workloads.catalogue import NexmarkQuery, NexmarkSpec
from tests.integration.input_topics import SCHEMA
from workloads.queries import oracle, query

BID = b'{"kind":"bid","auction":1,"bidder":1,"price":2000000,"channel":"c","url":"u","extra":"e"}'
# In Chicago it is half past one at both moments: at two the clock is set back to one.
CITY = "America/Chicago"
SUMMER, WINTER = datetime(2026, 11, 1, 6, 30, tzinfo=UTC), datetime(2026, 11, 1, 7, 30, tzinfo=UTC)


@pytest.mark.parametrize("name", [NexmarkQuery.Q10, NexmarkQuery.Q14])
def test_the_hour_that_a_local_clock_has_twice_is_two_hours(spark: SparkSession, name: NexmarkQuery) -> None:
    spec, zone = NexmarkSpec(query=name), "spark.sql.session.timeZone"
    rows = [(BID, 0, offset, at) for offset, at in enumerate((SUMMER, WINTER))]
    before = spark.conf.get(zone)
    spark.conf.set(zone, CITY)
    try:
        records = spark.createDataFrame(rows, SCHEMA)
        given, exact = (sorted(map(tuple, of(records, spec).collect())) for of in (query, oracle))
    finally:
        spark.conf.set(zone, before)
    assert given == exact
    assert len(exact) == len(rows)
