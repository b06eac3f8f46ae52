"""What the protocol testbed can run, and what each engine refuses, in one line each."""

import pytest

from experiments import spec
from experiments.engines import Protocol
from experiments.errors import BadInput
from experiments.workloads import TESTBED
from testbed.protocols import PROTOCOLS
from testbed.queries import QUERIES

EXAMPLE, BATCHED = "dataflow-q12", "{name: dataflow, protocol: batch-aligned"


def test_experiments_and_the_testbed_know_the_same_queries_and_protocols():
    assert set(QUERIES) == TESTBED
    assert [protocol.value for protocol in Protocol] == list(PROTOCOLS)


def test_the_testbed_has_defaults_of_its_own():
    engine = spec.load("nexmark-q1", ["engine.name=dataflow"]).engine
    assert (engine.protocol_run, engine.records_per_message_run) == (Protocol.COORDINATED, 1024)
    assert engine.chaining_run
    assert not spec.load(EXAMPLE, ["engine.chaining=false"]).engine.chaining_run


@pytest.mark.parametrize(
    ("override", "field", "allowed"),
    [
        ("engine.protocol=hope", "engine.protocol", "'none', 'coordinated', 'uncoordinated'"),
        ("engine.records_per_message=0", "engine.records_per_message", "1 or more"),
        ("workload.query=q5", "workload.query", "q1, q3, q8, q12 with engine dataflow"),
        ("workload={}", "workload.name", "nexmark or reachability with engine dataflow"),
        ("workload={name: reachability}", "engine.protocol", "uncoordinated, .* would wait for itself"),
        ("engine.batch_length_s=0.5", "engine.batch_length_s", "left out unless engine.protocol is batch-aligned"),
        (f"engine={BATCHED}, batch_length_s: 60}}", "engine.batch_length_s", "at most the checkpoint interval, 8"),
        (f"engine={BATCHED}, batch_length_s: 0}}", "engine.batch_length_s", "a number above 0"),
        ("engine.store=/tmp/x", "engine.store", "s3://"),
        ("engine.store_endpoint=http://127.0.0.1:9000", "engine.store_endpoint", "left out without engine.store"),
        ("engine.partitions=1", "engine.partitions", "at least 2 with engine dataflow"),
        ("engine.trigger=real-time", "engine.trigger", "left out with engine dataflow"),
        ("engine.recovery=task", "engine.recovery", "left out with engine dataflow"),
        ("faults={events: [{at: 1, kind: driver-kill}]}", "faults", "any other kind with engine dataflow"),
        ("engine.name=structured-streaming", "engine.protocol", "left out with engine structured-streaming"),
    ],
)
def test_what_does_not_fit_is_named_in_one_line(override, field, allowed):
    with pytest.raises(BadInput, match=allowed) as mistake:
        spec.load(EXAMPLE, [override])
    assert mistake.value.field == field
    assert "\n" not in str(mistake.value)
