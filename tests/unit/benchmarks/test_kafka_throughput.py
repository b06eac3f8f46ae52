"""Throughput that is counted at the output: how many records were read when a number of results was out."""

import json

import pyarrow as pa
import pytest
from confluent_kafka import Producer

from benchmarks.testbed import record_path
from benchmarks.testbed.in_process_broker import InProcessBroker
from benchmarks.testbed.kafka_throughput import (
    FIGURES,
    OutputCount,
    Seen,
    Throughput,
    line,
    middle,
    read_cpu_and_idle,
    records_in_window,
    window_of,
)
from benchmarks.testbed.nexmark_results import ExpectedResults
from benchmarks.testbed.record_path import STAGES, Clock, Ends, measured
from benchmarks.testbed.through_kafka import kafka_job, shares
from experiments.errors import BadInput, EnvironmentFailure
from experiments.workloads.catalogue import NexmarkQuery, NexmarkSpec
from infra.cluster import Handle
from testbed.operators import Delivery
from testbed.queries import as_messages
from testbed.queries.nexmark import CATEGORY, NEAR_STATES
from testbed.runtime.connectors.sources import stream_of
from workloads.nexmark.stream import CYCLE, events
from workloads.schedule import Schedule

SCHEDULE, EVENTS, WINDOW_MS = Schedule(1_700_000_000 * 10**9, 1000.0, 2), 12_000, 500
BIDS, OTHERS = (CYCLE - 4) / CYCLE, 4 / CYCLE


def spec(query):
    return NexmarkSpec(query=query, window_s=WINDOW_MS / 1000, slide_s=WINDOW_MS / 1000)


def rows(query, kind):
    return getattr(events(stream_of(spec(query), SCHEDULE), 0, EVENTS), kind).to_pylist()


def pairs(query, belong):
    persons = {each["id"]: each for each in rows(query, "persons")}
    found = [(each, persons[each["seller"]]) for each in rows(query, "auctions")]
    return sorted(max(a["position"], p["position"]) for a, p in found if belong(a, p))


def window(event):
    return event["date_time"] // WINDOW_MS


def test_bids_and_pairs_are_complete_with_their_last_record():
    q1, q3, q8 = (
        ExpectedResults(spec(q), SCHEDULE, EVENTS) for q in (NexmarkQuery.Q1, NexmarkQuery.Q3, NexmarkQuery.Q8)
    )
    assert q1.complete.tolist() == [each["position"] for each in rows(NexmarkQuery.Q1, "bids")]
    near = NEAR_STATES.to_pylist()
    wanted = pairs(NexmarkQuery.Q3, lambda a, p: a["category"] == CATEGORY and p["state"] in near)
    assert len(wanted) > 5
    assert q3.complete.tolist() == wanted
    wanted = pairs(NexmarkQuery.Q8, lambda a, p: window(a) == window(p))
    assert len(wanted) > 5
    assert q8.complete.tolist() == wanted


def test_counts_are_complete_when_their_window_is_over():
    bids = rows(NexmarkQuery.Q12, "bids")
    first_after = {}
    for position in range(EVENTS):
        first_after.setdefault(SCHEDULE.due_ms(position) // WINDOW_MS, position)
    wanted = sorted(first_after[w + 1] for w, _ in {(window(b), b["bidder"]) for b in bids} if w + 1 in first_after)
    assert len(set(wanted)) > 5
    assert ExpectedResults(spec(NexmarkQuery.Q12), SCHEDULE, EVENTS).complete.tolist() == wanted


@pytest.mark.parametrize(("query", "share"), [(NexmarkQuery.Q1, BIDS), (NexmarkQuery.Q8, OTHERS)])
def test_only_records_of_the_kinds_that_are_read_count(query, share):
    expected = ExpectedResults(spec(query), SCHEDULE, EVENTS)
    assert expected.records_read(0) == 0
    half = len(expected.complete) // 2
    assert expected.records_read(half) == pytest.approx((expected.complete[half - 1] + 1) * share)
    everything = expected.records_read(len(expected.complete))
    assert everything == pytest.approx((expected.complete[-1] + 1) * share)
    assert expected.records_read(len(expected.complete) + 99) == everything, "marks of transactions are no results"


def seen(*results):
    return [Seen(at_ns, found) for at_ns, found in enumerate(results)]


def test_a_window_begins_and_ends_with_a_commit():
    looks = seen(0, 0, 5, 9, 9, 9, 20, 20, 20, 28, 31, 31)
    assert window_of(looks, 0) == (looks[3], looks[10])
    assert window_of(looks, 4) == (looks[6], looks[10])
    steady = seen(0, 1, 2, 3, 4, 5)
    assert window_of(steady, 2) == (steady[2], steady[5])


def test_each_partition_counts_from_its_own_commit_to_its_own():
    """One commits right after the other: a common window would have four commits of one and five of the other."""
    second, expected = 10**9, ExpectedResults(spec(NexmarkQuery.Q1), SCHEDULE, EVENTS)
    looks = [
        tuple(Seen(tenth * second // 10, 500 * ((tenth + late) // 50)) for late in (0, -6)) for tenth in range(270)
    ]
    rate, begin_ns, end_ns = records_in_window(looks, 6 * second, expected)
    assert rate == pytest.approx(200, rel=1e-3)
    assert (begin_ns / second, end_ns / second) == (10, 25.6)


def test_an_input_that_was_used_up_is_told():
    expected = ExpectedResults(spec(NexmarkQuery.Q1), SCHEDULE, EVENTS)
    looks = [(Seen(at_ns, 100 * at_ns), Seen(at_ns, len(expected.complete) // 2)) for at_ns in range(70)]
    with pytest.raises(EnvironmentFailure, match="the input was used up"):
        records_in_window(looks, 0, expected)


def test_results_in_batches_are_counted_by_what_is_in_their_messages():
    server = InProcessBroker()
    producer, seen = Producer(server.reach.for_librdkafka()), OutputCount(server.reach, "output", 2)
    for partition, sizes in ((0, (3, 5)), (1, (2,))):
        for size in sizes:
            batch = pa.RecordBatch.from_pydict({"bids": range(size)})
            (value,) = (each for _, each in as_messages(spec(NexmarkQuery.Q12), batch, 2, 10))
            producer.produce("output", value, partition=partition)
    producer.flush()
    at_end = seen.look()
    assert [each.results for each in at_end] == [2, 1], "messages"
    looks = [tuple(Seen(1, messages) for messages in each) for each in ((0, 0), (1, 0), (1, 1))]
    found = [[each.results for each in look] for look in seen.in_results([*looks, at_end])]
    assert found == [[0, 0], [3, 0], [3, 2], [8, 2]]
    seen.close()


@pytest.mark.parametrize("results", [[], [0, 0, 0], [0, 5, 5, 5]])
def test_a_window_without_two_commits_is_none(results):
    with pytest.raises(EnvironmentFailure, match="no window to measure in"):
        window_of(seen(*results), 0)


def test_a_job_reads_and_writes_topics_exactly_once_where_that_is_possible():
    handle = Handle("run", "local", "token", "root", broker="127.0.0.1:9092")
    jobs = [kafka_job(handle, 2, f"q1-{name}", "q1", name, 1) for name in ("none", "coordinated")]
    assert [job.output.delivery for job in jobs] == [Delivery.PLAIN, Delivery.EXACTLY_ONCE]
    assert len({job.output.topic for job in jobs}) == 2
    assert {job.input.broker for job in jobs} == {handle.kafka}
    assert not jobs[0].chaining


def test_a_line_has_the_medians_and_shares():
    rates = [Throughput(wall, 0.9 * wall, 2 * wall, 0.25, 30.0, 7, 1.0) for wall in (100.0, 300.0, 200.0)]
    handle = Handle("run", "local", "token", "root", broker="127.0.0.1:9092")
    job = kafka_job(handle, 2, "q1", "q1", "coordinated", 1024)
    assert middle(rates) == rates[2]
    assert line(job, rates[0], middle(rates)).split()[:7] == ["q1", "coordinated", "1024", "100", "50%", "90", "200"]


def test_what_sources_read_cpu_and_idle_time_are_those_of_the_window(tmp_path):
    progress = [
        {"event": "progress", "at_ns": at * 10**9, "positions": {"bids.0": 100 * at, "bids.1": at}, "cpu_s": at**2}
        | {"idle_s": at / 2}
        for at in range(10)
    ]
    journal = tmp_path / "journal.jsonl"
    journal.write_text("".join(f"{json.dumps(each)}\n" for each in [*progress, {"event": "ready", "at_ns": 0}]))
    assert read_cpu_and_idle(journal, 2 * 10**9, 5 * 10**9 + 1) == (101, (25 - 4) / 3, 0.5)
    with pytest.raises(EnvironmentFailure, match="fewer than two reports"):
        read_cpu_and_idle(journal, 2 * 10**9, 2 * 10**9 + 1)


def test_shares_are_of_the_same_turn():
    none, logged = ((100.0, 400.0), (200.0, 500.0)), ((90.0, 200.0), (180.0, 250.0))
    runs = {
        name: [Throughput(wall, wall, cpu, 0.25, 30.0, 7, 1.0) for wall, cpu in rates]
        for name, rates in (("none", none), ("uncoordinated", logged))
    }
    by_clock, by_cpu = shares(runs, FIGURES)
    assert by_clock.what == "uncoordinated / none, records/s"
    assert (by_clock.ratio, by_clock.low, by_clock.high) == pytest.approx((0.9, 0.9, 0.9))
    assert (by_cpu.what, by_cpu.ratio) == ("uncoordinated / none, records/CPU s", pytest.approx(0.5))


@pytest.mark.parametrize("batch", [None, 50])
def test_a_record_goes_all_the_way_between_two_topics(batch):
    found = measured("q1", "uncoordinated", 16, 200, batch)
    assert found.events == found.results == 200 * (CYCLE - 4) // CYCLE
    assert tuple(found.us) == STAGES
    assert all(found.us[stage] > 0 for stage in STAGES)


def test_a_path_ends_if_the_test_broker_brings_less_than_was_sent(monkeypatch):
    monkeypatch.setattr(record_path, "PATIENCE_S", 0.5)
    ends = Ends(Clock())
    ends.fill(spec(NexmarkQuery.Q1), 100, None)
    with pytest.raises(EnvironmentFailure, match="brought 100 of 101 events"):
        list(ends.polls(spec(NexmarkQuery.Q1), 101, None))


@pytest.mark.parametrize(
    ("events", "batch", "allowed"), [(100, 30, "a multiple of --batch, 30"), (1, None, "at least 50")]
)
def test_events_that_make_no_path_are_refused(events, batch, allowed):
    with pytest.raises(BadInput, match=f"--events: {events} is not usable; allowed: {allowed}"):
        measured("q1", "none", 16, events, batch)
