"""The benchmarks that go through Kafka: what they count is there."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from benchmarks.engines.nexmark_spark import Cut, Session, Topic
from benchmarks.engines.peer_engine import Engine, Task
from benchmarks.engines.side_by_side import measured
from experiments.workloads.catalogue import NexmarkQuery
from infra.cluster import Handle

pytestmark = pytest.mark.extended

EVENTS, BATCH, BIDS = 5000, 2000, 0.92
COPYING = Path(__file__).with_name("copying_engine.py")
RATE, WARM_S, SECONDS = 150.0, 0.5, 10.0


def test_every_bid_is_counted_at_the_output(spark: SparkSession, broker: Handle, tmp_path: Path) -> None:
    topic = Topic(broker.kafka, EVENTS, 1000.0, 2)
    topic.fill()
    session = Session(spark, topic, BATCH, tmp_path)
    whole = session.measure(NexmarkQuery.Q0, Cut.WHOLE)
    assert whole.results == EVENTS * BIDS
    assert 0 < whole.records <= EVENTS - BATCH
    assert min(whole.measured_s, whole.cpu_s) > 0
    read = session.measure(NexmarkQuery.Q0, Cut.READ)
    assert (read.results, read.until) == (None, "read")
    assert topic.written("results-2") == 0


@pytest.mark.parametrize("times", [1, 2])
def test_somebody_elses_engine_is_measured(broker: Handle, tmp_path: Path, times: int) -> None:
    words = f"{{broker}} {{credentials}} {{input}} {{output}} {{partitions}} {times}"
    engine = Engine.parse(f"copying={sys.executable} {COPYING} {words}")
    task = Task(broker.kafka, "q0", 2.0, f"input-{times}", f"output-{times}", 2, 1.0, tmp_path)
    row = measured(engine, task, RATE, WARM_S, SECONDS)
    assert row.engine == "copying"
    assert row.timing.results == pytest.approx(BIDS * row.records, abs=50)  # sent up to a third of a second late
    assert row.timing.missing == 0
    assert bool(row.doubled) == (times == 2)
    assert 0 < row.timing.p50_s <= row.timing.p99_s
    assert row.cpu_s > 0
