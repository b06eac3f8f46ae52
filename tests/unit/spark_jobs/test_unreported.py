"""The report of a batch that was committed, but whose driver died before it had the report, is made up."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from journal.events.common import DriverStarted
from journal.events.query import QUERY, BatchCommitted, QueryReady
from journal.reader import events
from journal.writer import Journal
from spark_jobs.streaming.progress import MicroBatch, micro_batches
from spark_jobs.streaming.unreported import record_unreported, unreported
from spark_jobs.tables.ledger import ledger
from spark_jobs.tables.outages import Outage
from spark_jobs.tables.streaming.batches import MS, batches
from tests.unit.example_events import batch_committed

NS, START_S = 10**9, 1_795_000_000
OUTSIDE_MS = 700  # of each batch, outside of addBatch


def iso(at_s: float) -> str:
    told = datetime.fromtimestamp(START_S + at_s, UTC).isoformat(timespec="milliseconds")
    return told.replace("+00:00", "Z")


def offset(records: int) -> dict:
    return {"input": {"0": records, "1": 2 * records}}


def reported(number: int, began_s: float, ended_s: float) -> BatchCommitted:
    """1000 records to each 10 s, of two partitions."""
    total_ms = round((ended_s - began_s) * 1000)
    return batch_committed(
        at_ns=round((START_S + ended_s) * NS),
        batchId=number,
        timestamp=iso(began_s),
        durationMs={"triggerExecution": total_ms, "addBatch": total_ms - OUTSIDE_MS, "walCommit": 50},
        eventTime={"watermark": iso(began_s - 10)},
        sources=[{"startOffset": offset(number * 1000), "endOffset": offset(number * 1000 + 1000)}],
        stateOperators=[{"commitTimeMs": 100, "numRowsTotal": 5, "memoryUsedBytes": 9}],
    )


def ready(at_s: float = 0.0) -> QueryReady:
    return QueryReady(("0",), at_ns=round((START_S + at_s) * NS))


def begun(at_s: float) -> DriverStarted:
    return DriverStarted(at_ns=round((START_S + at_s) * NS))


JOURNAL = [ready(), reported(0, 0, 8), reported(1, 10, 18)]


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """Three batches were committed, the last one at 28 s; a fourth one was begun."""
    folder = tmp_path / "checkpoint"
    for name in ("offsets", "commits"):
        (folder / name).mkdir(parents=True)
    (folder / "metadata").write_text('{"id":"a-query"}')
    for number in range(4):
        begin(folder, number, number * 10)
    for number in range(3):
        commit(folder, number, number * 10 + 8)
    (folder / "commits" / ".2.crc").touch()
    return folder


def begin(folder: Path, number: int, at_s: float, version: str = "v1") -> None:
    at_ms = round((START_S + at_s) * 1000)
    metadata = {"batchWatermarkMs": at_ms - 9000, "batchTimestampMs": at_ms, "conf": {}}
    lines = [version, json.dumps(metadata), json.dumps(offset(number * 1000 + 1000))]
    (folder / "offsets" / str(number)).write_text("\n".join(lines))


def commit(folder: Path, number: int, at_s: float) -> None:
    file = folder / "commits" / str(number)
    file.write_text('v1\n{"nextBatchWatermarkMs":0}')
    os.utime(file, ns=(0, round((START_S + at_s) * NS)))


def test_a_batch_that_is_in_the_commit_log_only_is_told_as_spark_would_have(checkpoint: Path) -> None:
    (report,) = unreported(checkpoint, JOURNAL)
    assert report["madeUp"]
    made_up, spark_s = MicroBatch.model_validate(report), MicroBatch.of(reported(2, 20, 28))
    for name in ("id", "batch_id", "timestamp", "total_ms", "offsets", "records_read", "state_operators"):
        assert getattr(made_up, name) == getattr(spark_s, name), name
    assert made_up.checkpoint_ms(2) == spark_s.checkpoint_ms(2) == OUTSIDE_MS + 50
    assert (made_up.num_input_rows, made_up.processed_rows_per_second) == (3000, 375.0)
    assert made_up.watermark_ms == (START_S + 11) * 1000


def test_what_is_journalled_is_not_told_again(checkpoint: Path) -> None:
    assert list(unreported(checkpoint, [*JOURNAL, reported(2, 20, 28)])) == []


def test_several_batches_are_told_in_their_order(checkpoint: Path) -> None:
    assert [each["batchId"] for each in unreported(checkpoint, JOURNAL[:2])] == [1, 2]


def test_a_batch_that_was_cut_off_and_run_again_began_when_the_query_did(checkpoint: Path) -> None:
    """Its file in the log of offsets is that of the first attempt."""
    commit(checkpoint, 3, 48)
    again = [*JOURNAL, reported(2, 20, 28), ready(42)]
    (report,) = unreported(checkpoint, again)
    assert (report["batchId"], report["timestamp"]) == (3, iso(42))
    assert report["durationMs"] == {"triggerExecution": 6000, "addBatch": 6000 - OUTSIDE_MS}


@pytest.mark.parametrize(
    "later",
    [
        [begun(42)],  # it died before it was ready
        [ready(42), ready(60)],  # the driver after it made nothing up, and died as well
        [ready(42), begun(60)],
    ],
)
def test_a_batch_began_with_the_driver_that_committed_it(checkpoint: Path, later: list) -> None:
    commit(checkpoint, 3, 48)
    (report,) = unreported(checkpoint, [*JOURNAL, reported(2, 20, 28), *later, begun(80)])
    assert (report["timestamp"], report["durationMs"]["triggerExecution"]) == (iso(42), 6000)


def test_the_driver_that_asks_has_committed_nothing_even_if_the_clock_of_the_disk_is_ahead(checkpoint: Path) -> None:
    commit(checkpoint, 3, 48)
    (report,) = unreported(checkpoint, [*JOURNAL, reported(2, 20, 28), ready(42), begun(47)])
    assert report["timestamp"] == iso(42)


ANOTHER = batch_committed(id="another", durationMs={"triggerExecution": 1})


@pytest.mark.parametrize("journal", [[], [ready()], [ready(), ANOTHER]])
def test_of_a_query_without_a_report_nothing_is_told(checkpoint: Path, journal: list) -> None:
    assert list(unreported(checkpoint, journal)) == []


def test_a_checkpoint_that_is_elsewhere_tells_nothing() -> None:
    assert list(unreported(Path("s3a://bucket/checkpoint"), JOURNAL)) == []


def written(path: Path) -> Journal:
    journal = Journal(path)
    for event in JOURNAL:
        journal.record(event)
    return journal


def test_a_checkpoint_that_cannot_be_read_ends_no_driver(checkpoint: Path, tmp_path: Path, capsys) -> None:
    begin(checkpoint, 2, 20, version="v2")
    record_unreported(checkpoint, tmp_path / "query.jsonl", written(tmp_path / "query.jsonl"))
    assert "offsets of batch 2 have version v2" in capsys.readouterr().err
    assert len(list(events(tmp_path / "query.jsonl", QUERY))) == len(JOURNAL)


def test_the_work_of_such_a_batch_is_not_lost_and_its_records_are_no_lag(checkpoint: Path, tmp_path: Path) -> None:
    """The driver is killed at 28.1 s, and batch 3 is run after the restart at 40 s."""
    path = tmp_path / "query.jsonl"
    record_unreported(checkpoint, path, written(path))
    journal = [*events(path, QUERY), reported(3, 40, 48)]
    found = batches(micro_batches(journal), {}, 2)
    assert [each.batch for each in found] == [0, 1, 2, 3]
    assert sum(each.records for each in found) == 3 * 4000
    cut = Outage(0, 1, *(round((START_S + at_s) * NS) for at_s in (28.1, 28.2, 40)))
    segments = ledger((START_S * NS, (START_S + 48) * NS), found, [cut], None, 10 * NS)
    assert [each for each in segments if each.kind == "lost"] == []
    assert sum(each.end_ns - each.start_ns for each in segments if each.batch == 2) == 8000 * MS
