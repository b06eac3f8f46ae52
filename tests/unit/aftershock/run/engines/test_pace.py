"""How far a query has come, by the journal of either engine, taken in event by event."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aftershock.run.engines.dataflow import DataflowPace
from aftershock.run.engines.engine import Pace
from aftershock.run.engines.structured_streaming import BatchCommits, BatchPace
from journal.event import Event
from journal.events.common import ExecutorsLost
from journal.events.testbed import Committed, RunPhase
from tests.unit import example_events
from tests.unit.example_events import batch_committed


def taken(pace: Pace, *events: Event) -> Pace:
    for event in events:
        pace.take(event)
    return pace


def batch(number: int, *ends: dict[str, dict[str, int]], rate: float | None = 250.0) -> Event:
    sources = [{"startOffset": None, "endOffset": end} for end in ends]
    told = {} if rate is None else {"processedRowsPerSecond": rate}
    return batch_committed(batchId=number, numInputRows=99, sources=sources, **told)


def report(second: float, read: int, epoch: int = 1, phase: RunPhase = RunPhase.RUNNING) -> Event:
    positions = {"persons.0": read, "auctions.0": read + 50} if read else {}
    return example_events.report(round(second * 1e9), phase=phase, epoch=epoch, positions=positions)


def test_of_batches_the_last_says_all_that_was_committed():
    found = [batch(0, {"input": {"0": 10, "1": 20}}), batch(4, {"input": {"0": 70, "1": 80}})]
    pace = taken(BatchPace(("input",)), *found)
    assert (pace.committed_records, str(pace)) == (150, "batch 4 committed, 250 records/s")
    slow = taken(BatchPace(("input",)), batch(0, {"input": {"0": 1}}, rate=0.425))
    assert str(slow) == "batch 0 committed, 0.425 records/s"


def test_a_topic_that_a_join_reads_twice_counts_once_and_topics_of_calibration_not_at_all():
    both = {"input": {"0": 40}}
    pace = taken(BatchPace(("input",)), batch(0, both, both, {"calibration-1": {"0": 1000}}))
    assert pace.committed_records == 40


def test_a_loss_shows_until_the_next_batch():
    pace = taken(BatchPace(("input",)), batch(0, {"input": {"0": 10}}), ExecutorsLost(("1",)))
    assert (pace.committed_records, str(pace)) == (10, "recovering")
    assert str(taken(pace, batch(1, {"input": {"0": 12}}, rate=None))) == "batch 1 committed"


def test_a_report_that_the_next_driver_made_up_counts_and_shows_no_work():
    unreported = batch(1, {"input": {"0": 12}})
    unreported = replace(unreported, progress={**unreported.progress, "madeUp": True})
    pace = taken(BatchPace(("input",)), batch(0, {"input": {"0": 10}}), ExecutorsLost(("1",)), unreported)
    assert (pace.committed_records, str(pace)) == (12, "recovering")
    commits = BatchCommits()
    for each in (unreported, batch(2, {"input": {"0": 14}})):
        commits.take(each)
    assert commits.since(-1) == 1


def test_before_anything_is_known_a_query_is_starting():
    for pace in (BatchPace(("input",)), DataflowPace(commits=True)):
        assert (pace.committed_records, pace.records_per_s, str(pace)) == (None, None, "starting")


@pytest.mark.parametrize(("commits", "committed"), [(True, 300), (False, 900)])
def test_of_the_testbed_what_is_out_counts_or_what_was_read_where_nothing_is_ever_committed(commits, committed):
    pace = taken(
        DataflowPace(commits=commits),
        report(1, 400),
        Committed({"bids.0": 300}),
        report(2, 900),
    )
    assert (pace.committed_records, str(pace)) == (committed, "epoch 1, 500 records/s")


def test_the_rate_of_the_testbed_is_of_the_last_seconds_and_of_one_epoch():
    pace = taken(DataflowPace(commits=True), *(report(second / 2, 100 * second) for second in range(1, 40)))
    assert pace.records_per_s == pytest.approx(200)
    taken(pace, report(20, 0, epoch=2, phase=RunPhase.RESTORING))
    assert (pace.records_per_s, str(pace)) == (None, "recovering")
    assert taken(pace, report(21, 500, epoch=2)).records_per_s is None
    assert str(taken(pace, report(22, 800, epoch=2))) == "epoch 2, 300 records/s"


def test_the_testbed_that_waits_for_its_first_workers_is_starting():
    assert str(taken(DataflowPace(commits=True), report(1, 0, epoch=0, phase=RunPhase.WAITING))) == "starting"
