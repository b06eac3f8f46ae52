"""The word count from a real broker through a real query to a real broker, against its oracle and plain Python."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from experiments.engines import EngineName, EngineSpec
from experiments.loads import LoadSpec
from experiments.workloads.catalogue import WordCountSpec
from infra.broker import Broker
from infra.cluster import Handle
from infra.services.kafka import create_topics
from journal.events.query import QUERY, QueryTerminated
from journal.reader import events
from journal.writer import Journal
from spark_jobs.streaming.config import JobConfig
from spark_jobs.streaming.driver import ProgressJournal
from spark_jobs.streaming.job import start
from spark_jobs.streaming.progress import micro_batches
from spark_jobs.tables import archive
from spark_jobs.tables.quality import closed, quality
from spark_jobs.tables.rows import closed_until_ms
from tests.unit.marked_processes import wait_for
from workloads.inputs import records
from workloads.schedule import Schedule
from workloads.sending.input_sender import InputSender
from workloads.topics import INPUT
from workloads.wordcount import corpus

RECORDS, RATE, PARTITIONS = 3000, 100.0, 2
BATCH_RECORDS, SMALL_BATCH = 600, 100
WINDOW_S, SLIDE_S = 6.0, 2.0
FEWEST_CLOSED = 10  # of the 17 windows that half a minute of input touches


@dataclass(frozen=True)
class Sent:
    """What the input topic holds."""

    broker: Broker
    corpus: str
    schedule: Schedule
    texts: list[bytes]

    def workload(self, depth: int) -> WordCountSpec:
        return WordCountSpec(depth=depth, window_s=WINDOW_S, slide_s=SLIDE_S, corpus=self.corpus)

    def counts(self, depth: int) -> dict[tuple[int, str], int]:
        """Words by start of window [ms] and key, counted one by one."""
        found: Counter[tuple[int, str]] = Counter()
        slide_ms, panes = round(SLIDE_S * 1000), round(WINDOW_S / SLIDE_S)
        for position in range(RECORDS):
            newest = self.schedule.due_ms(position) // slide_ms * slide_ms
            for word in self.texts[position % len(self.texts)].decode().lower().replace(",", " ").split():
                if len(word) > 1:
                    key = word if depth == 1 else word[:1]
                    found.update((newest - i * slide_ms, key) for i in range(panes))
        return dict(found)

    def words_by_record(self) -> dict[tuple[int, int, str], int]:
        """Words by due time [ms], twice, and a key made of partition, offset and word."""
        found: Counter[tuple[int, int, str]] = Counter()
        for position in range(RECORDS):
            due_ms, record = self.schedule.due_ms(position), f"{position % PARTITIONS}:{position // PARTITIONS}"
            words = self.texts[position % len(self.texts)].decode().lower().replace(",", " ").split()
            found.update((due_ms, due_ms, f"{record}:{word}") for word in words if len(word) > 1)
        return dict(found)


@pytest.fixture(scope="module")
def sent(cluster: Handle, tmp_path_factory: pytest.TempPathFactory) -> Sent:
    """Half a minute of input, made of random words, in the topic."""
    rng = random.Random(20)
    words = ["".join(rng.choices("abcde", k=rng.randint(1, 5))) for _ in range(150)]
    lines = ["".join(rng.choice(words).title() + rng.choice((" ", ", ")) for _ in range(12)) for _ in range(500)]
    text = tmp_path_factory.mktemp("corpus") / "words.txt"
    text.write_text("\n".join(lines), encoding="utf-8")
    create_topics(cluster.kafka, {INPUT: PARTITIONS})
    schedule = Schedule(time.time_ns() - 60 * 10**9, RATE, PARTITIONS)
    workload = WordCountSpec(corpus=str(text))
    feed = InputSender(cluster.kafka, INPUT, records(workload, schedule), schedule)
    feed.send_until(RECORDS)
    feed.finish()
    assert (feed.sent, feed.failed) == (RECORDS, 0)
    return Sent(cluster.kafka, str(text), schedule, corpus.passages(workload))


@dataclass(frozen=True)
class Bench:
    """A query over the input with an output topic of its own, and the raw directory of its run."""

    spark: SparkSession
    sent: Sent
    root: Path
    depth: int

    @property
    def raw(self) -> Path:
        return self.root / "raw"

    @property
    def output(self) -> str:
        return f"output-{self.root.name}"

    def start(self, batch_records: int) -> StreamingQuery:
        engine, checkpoint = EngineSpec(partitions=PARTITIONS), str(self.root / "checkpoint")
        workload = self.sent.workload(self.depth)
        config = JobConfig(self.sent.broker, "", workload, engine, 1, 2, checkpoint, "")
        topics = {"input_topic": INPUT, "output_topic": self.output}
        return start(self.spark, config, **topics, checkpoint=checkpoint, interval_s=0.0, batch_records=batch_records)

    def committed(self) -> int:
        return sum(archive.committed_offsets(self.raw, EngineName.STRUCTURED_STREAMING).get(INPUT, {}).values())

    def run_until(self, records: int, batch_records: int = BATCH_RECORDS) -> None:
        """Run the query until it has committed this number of records, then stop it as a restart would."""
        running = self.start(batch_records)
        wait_for(lambda: self.committed() >= records or not running.isActive, limit_s=180)
        if failure := running.exception():
            raise failure
        running.stop()
        wait_for(lambda: self.has_told_all(running))

    def has_told_all(self, ended: StreamingQuery) -> bool:
        """Whether the last word of a query is in the journal; each comes some time after what it tells."""
        told = events(self.raw / "query.jsonl", QUERY)
        return any(isinstance(each, QueryTerminated) and each.query_run == str(ended.runId) for each in told)

    def table(self, name: str) -> DataFrame:
        return self.spark.read.parquet(str(self.raw / f"{name}.parquet"))

    def judge(self) -> list[dict[str, int]]:
        """The quality of every closed window, from the archive of the run."""
        archive.archive(
            self.spark, self.raw, self.sent.broker, self.sent.workload(self.depth), EngineSpec(), LoadSpec()
        )
        watermark_ms = closed_until_ms(micro_batches(events(self.raw / "query.jsonl", QUERY))) or 0
        final = closed(
            self.sent.workload(self.depth),
            watermark_ms,
            archive.committed_offsets(self.raw, EngineName.STRUCTURED_STREAMING),
        )
        return [row.asDict() for row in quality(self.table("sink"), self.table("oracle"), final).collect()]


@pytest.fixture
def bench(
    sent: Sent, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, depth: int
) -> Iterator[Bench]:
    made = Bench(spark, sent, tmp_path, depth)
    monkeypatch.setattr(WordCountSpec, "output_topic", made.output)
    create_topics(sent.broker, {made.output: PARTITIONS})
    listener = ProgressJournal(Journal(made.raw / "query.jsonl"))
    spark.streams.addListener(listener)
    yield made
    spark.streams.removeListener(listener)


@pytest.mark.parametrize("depth", [1, pytest.param(2, marks=pytest.mark.extended), 3])
def test_every_closed_window_is_exact(bench: Bench, depth: int) -> None:
    bench.run_until(RECORDS)
    windows = bench.judge()
    assert len(windows) >= FEWEST_CLOSED
    assert all(window["exact"] == window["emitted"] > 0 for window in windows)
    assert {window[name] for window in windows for name in ("lost", "duplicated", "wrong")} == {0}
    oracle = {(row["start_ms"], row["key"]): int(row["value"]) for row in bench.table("oracle").collect()}
    assert oracle == bench.sent.counts(depth)


@pytest.mark.parametrize("depth", [0])
def test_without_state_every_record_yields_its_own_words(bench: Bench) -> None:
    bench.run_until(RECORDS)
    moments = bench.judge()
    assert sum(moment["exact"] for moment in moments) == sum(moment["emitted"] for moment in moments)
    assert {moment[name] for moment in moments for name in ("lost", "duplicated", "wrong")} == {0}
    found = {(row["start_ms"], row["end_ms"], row["key"]): int(row["value"]) for row in bench.table("oracle").collect()}
    assert found == bench.sent.words_by_record()
    assert bench.table("sink").count() == len(found)


@pytest.mark.parametrize("depth", [2])
def test_a_query_that_was_stopped_goes_on_from_its_checkpoint(bench: Bench) -> None:
    bench.run_until(SMALL_BATCH, SMALL_BATCH)  # thirty of them are its whole way
    before = bench.committed()
    assert 0 < before < RECORDS, "stopped on its way"
    bench.run_until(RECORDS)
    windows = bench.judge()
    assert len(windows) >= FEWEST_CLOSED
    assert {window[name] for window in windows for name in ("lost", "wrong")} == {0}


@pytest.mark.parametrize("depth", [1])
def test_the_archive_holds_what_was_committed_and_no_more(bench: Bench) -> None:
    bench.run_until(BATCH_RECORDS)
    bench.judge()
    ends = archive.committed_offsets(bench.raw, EngineName.STRUCTURED_STREAMING)[INPUT]
    found = {(row["partition"], row["offset"]): row["due_ms"] for row in bench.table("input").collect()}
    expected = {(int(p), offset) for p, end in ends.items() for offset in range(end)}
    assert set(found) == expected
    for (partition, offset), due_ms in found.items():
        assert due_ms == bench.sent.schedule.due_ms(offset * PARTITIONS + partition)
