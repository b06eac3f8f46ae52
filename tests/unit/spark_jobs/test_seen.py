"""When the result of a record counts as seen: when it is out for good, which not every engine tells in the same way."""

from types import SimpleNamespace

import pytest

from experiments.spec import Experiment
from spark_jobs.tables.dataflow import logs as testbed_logs

DATAFLOW = {"name": "dataflow", "checkpoint_interval_s": 2, "partitions": 4}


def way_of(monkeypatch, query, engine):
    """How the moments are found for a run of the testbed."""
    document = {
        "name": "seen",
        "workload": {"name": "nexmark", "query": query},
        "engine": {**DATAFLOW, **engine},
        "load": {"mode": "rate", "rate": 5000},
    }
    files = SimpleNamespace(experiment=Experiment.model_validate(document), parquet=lambda name: name, input="input")
    logs = testbed_logs.TestbedLogs(files)
    logs.__dict__.update(batches=[])
    monkeypatch.setattr(testbed_logs, "seen_in_sink", lambda sink: "in the sink")
    monkeypatch.setattr(testbed_logs, "seen_at_commit", lambda records, batches: "at the commit")
    return logs.seen()


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
    assert way_of(monkeypatch, query, engine) == way
