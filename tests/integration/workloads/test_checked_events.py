"""Every oracle fails with the place of a record that is no event, whichever filter Spark evaluates first."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession

from experiments.workloads.catalogue import NexmarkQuery, NexmarkSpec, ReachabilitySpec, WordCountSpec, WorkloadSpec
from experiments.workloads.cec_prices import CecPricesSpec
from experiments.workloads.hashtags import HashtagsSpec
from experiments.workloads.ppa_queries import IncidentsSpec, Top100Spec
from experiments.workloads.window_tree import WindowTreeSpec
from spark_jobs.tables.bad_messages import bad_message
from tests.integration.input_topics import topic
from workloads.checked_events import NO_EVENT, NO_VALUE
from workloads.inputs import records
from workloads.queries import oracle
from workloads.schedule import Schedule

pytestmark = pytest.mark.extended

EVENTS, BAD = 400, 101  # the position of an event of NexMark's first auctions
SCHEDULE = Schedule(1_795_173_799_675_000_000, 200.0, 4)
PLACE = f"the topic input, partition {BAD % SCHEDULE.partitions}, offset {BAD // SCHEDULE.partitions}"
BID = '{"kind":"bid","auction":1000,"bidder":1000,"price":100,"channel":"c","url":"u","date_time":1,"extra":"e"}'
Q1, Q8 = NexmarkSpec(query=NexmarkQuery.Q1), NexmarkSpec(query=NexmarkQuery.Q8)
SPECS: dict[str, WorkloadSpec] = {
    "q1": Q1,
    "q2": NexmarkSpec(query=NexmarkQuery.Q2),
    "q8": Q8,
    "q12": NexmarkSpec(query=NexmarkQuery.Q12),
    "reachability": ReachabilitySpec(),
    "hashtags": HashtagsSpec(),
    "cec-prices": CecPricesSpec(),
    "incidents": IncidentsSpec(),
    "top-100": Top100Spec(),
    "window-tree": WindowTreeSpec(),
}


def planted_in(spark: SparkSession, spec: WorkloadSpec, planted: bytes | None) -> DataFrame:
    """The input, with this value in the place of one event."""
    values: list[bytes | None] = list(records(spec, SCHEDULE)(0, EVENTS))
    values[BAD] = planted
    return topic(spark, values, SCHEDULE)


def told(spark: SparkSession, spec: WorkloadSpec, planted: bytes | None) -> str | None:
    with pytest.raises(Exception, match="the topic input") as failure:  # Spark has several that may carry it
        oracle(planted_in(spark, spec, planted), spec).collect()
    return bad_message(str(failure.value))


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_what_is_no_event_is_named(spark: SparkSession, spec: WorkloadSpec) -> None:
    assert told(spark, spec, b"hello") == f"{PLACE}: {NO_EVENT}"


@pytest.mark.parametrize("planted", [b'{"kind":"tweets"}', b"", None], ids=["kind", "empty", "null"])
def test_whatever_else_is_no_event_is_named(spark: SparkSession, planted: bytes | None) -> None:
    assert told(spark, Q1, planted) == f"{PLACE}: {NO_EVENT}"


@pytest.mark.parametrize(
    "planted",
    [BID[:-1], BID.replace("100,", "null,"), BID.replace('"price":100,', ""), BID.replace("100,", '"x",')],
    ids=["cut-off", "null", "lacks-price", "text-for-number"],
)
def test_an_event_without_one_of_its_fields_is_named(spark: SparkSession, planted: str) -> None:
    assert told(spark, Q1, planted.encode()) == f"{PLACE}: {NO_EVENT}"


@pytest.mark.parametrize(("spec", "planted"), [(Q1, b'{"kind":"person",rubbish'), (Q8, BID[:-1].encode())])
def test_an_event_of_a_kind_that_nothing_reads_is_named(spark: SparkSession, spec: NexmarkSpec, planted: bytes) -> None:
    """Sources of the testbed look at the beginning of such an event only."""
    assert told(spark, spec, planted) == f"{PLACE}: {NO_EVENT}"


def test_a_whole_event_in_its_place_is_read(spark: SparkSession) -> None:
    exact = oracle(planted_in(spark, Q1, BID.encode()), Q1).collect()
    place = PLACE.split()[4].rstrip(",") + ":" + PLACE.split()[6]
    assert [row.value for row in exact if row.key == place] == [
        '{"auction":1000,"bidder":1000,"euros":90.800,"extra":"e"}'
    ]


@pytest.mark.parametrize("depth", [0, 1])
def test_a_text_that_is_missing_is_named(spark: SparkSession, depth: int) -> None:
    spec = WordCountSpec(depth=depth)
    assert told(spark, spec, None) == f"{PLACE}: {NO_VALUE}"
