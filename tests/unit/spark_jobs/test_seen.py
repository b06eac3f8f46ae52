"""When the result of a record counts as seen: when it is out for good, which not every engine tells in the same way."""

from types import SimpleNamespace

import pyarrow as pa
import pytest

from experiments.spec import Experiment
from spark_jobs.tables import latency
from spark_jobs.tables.dataflow import logs as testbed_logs
from spark_jobs.tables.streaming.batches import Commit
from tests.unit.spark_jobs.timelines import at, told

DATAFLOW = {"name": "dataflow", "checkpoint_interval_s": 2, "partitions": 4}


def logs_of(query, engine, journal):
    """The logs of a run of the testbed with this journal."""
    document = {
        "name": "seen",
        "workload": {"name": "nexmark", "query": query},
        "engine": {**DATAFLOW, **engine},
        "load": {"mode": "rate", "rate": 5000},
    }
    experiment = Experiment.model_validate(document)
    told_by = {"parquet": lambda name: name, "journal": lambda name, vocabulary: journal}
    return testbed_logs.TestbedLogs(SimpleNamespace(experiment=experiment, input="input", **told_by))


@pytest.mark.parametrize(
    ("query", "engine", "way"),
    [
        ("q1", {"protocol": "coordinated"}, "at the commit"),
        ("q1", {"protocol": "batch-aligned"}, "in the sink"),
        ("q1", {"protocol": "batch-aligned", "recovery": "source-replay"}, "in the sink"),
        ("q1", {"protocol": "none"}, "in the sink"),
        ("q12", {"protocol": "batch-aligned"}, "at the commit"),
    ],
)
def test_output_by_batch_is_seen_when_it_comes_and_other_output_when_it_is_committed(monkeypatch, query, engine, way):
    monkeypatch.setattr(testbed_logs, "seen_in_sink", lambda sink: "in the sink")
    monkeypatch.setattr(testbed_logs, "seen_at_commit", lambda records, commits: "at the commit")
    assert logs_of(query, engine, []).seen() == way


@pytest.mark.parametrize(
    ("protocol", "seen_s"),
    [("coordinated", [4, 5, 8]), ("none", [2, 4])],
    ids=["each commit, though two make one batch", "without commits, what is read in an interval"],
)
def test_what_is_committed_is_seen_at_its_own_commit(monkeypatch, protocol, seen_s):
    journal = [told("ready", 0)]
    journal += [told("progress", second, positions={"bids.0": 10 * second}) for second in (1, 2, 3, 4)]
    journal += [told("committed", second, positions={"bids.0": 10 * second}) for second in (4, 5, 8)]
    monkeypatch.setattr(testbed_logs, "seen_at_commit", lambda records, commits: [each.at_ns for each in commits])
    assert logs_of("q12", {"protocol": protocol}, journal).seen() == [at(second) for second in seen_s]


def test_a_record_that_was_committed_twice_is_seen_at_the_first_commit():
    """A job without a checkpoint reads its input anew after a failure."""
    commits = [Commit(at(second), 0, {("input", "0"): end}) for second, end in ((1, 10), (2, 20), (3, 5), (4, 25))]
    columns = {"topic": ["input"] * 4, "partition": [0] * 4, "offset": [3, 9, 12, 22], "due_ms": [0] * 4}
    frame = SimpleNamespace(mapInArrow=lambda assign, schema: list(assign(iter([pa.RecordBatch.from_pydict(columns)]))))
    (seen,) = latency.seen_at_commit(frame, commits)
    assert seen["seen_ms"].to_pylist() == [1000, 1000, 2000, 4000]
