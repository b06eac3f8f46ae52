"""Average prices on the testbed: exact under every protocol and strategy, and in the form of results."""

import json
from dataclasses import replace
from random import Random

import pyarrow as pa
import pytest

from testbed.core.by_batch.cutting import Batching
from testbed.protocols import PROTOCOLS
from testbed.queries import as_messages
from testbed.queries.cec_prices import packed_averages
from testbed.recovery import STRATEGIES
from testbed.runtime.job import Job
from testbed.simulation import CrashMoment, Fault, Simulation
from tests.unit.testbed.campaigns import first_and_rest
from tests.unit.testbed.queries.average_prices import FEW, MANY, SPECS, exact, inputs, laid_out
from tests.unit.testbed.runtime.source_reads import reads_of
from tests.unit.testbed.small_job import JOB

EVENTS, RATE, READ, SOURCES = 120, 20.0, 10, 2
BATCHING = Batching(500_000_000, 2)


def faults(seed):
    random = Random(seed)
    return [Fault(CrashMoment.ANY, random.randrange(100, 700), late=True), Fault(CrashMoment.RESTORING, 3, late=True)]


@pytest.mark.parametrize("seeds", first_and_rest(range(3), 1))
@pytest.mark.parametrize("name", list(SPECS))
@pytest.mark.parametrize("protocol", ["coordinated", "uncoordinated", "batch-aligned"])
def test_every_protocol_gives_what_the_definition_says_despite_crashes(name, protocol, seeds):
    spec = SPECS[name]
    given = inputs(spec, EVENTS, RATE, READ, SOURCES)
    wanted = exact(spec, given)
    assert len(wanted) >= 2
    for seed in seeds:
        options = {"faults": faults(seed), "batching": BATCHING}
        outcome = Simulation(laid_out(spec, SOURCES), PROTOCOLS[protocol], given, seed, **options).run()
        assert outcome.published == wanted, f"seed {seed}"


@pytest.mark.parametrize("seeds", first_and_rest(range(4), 2))
@pytest.mark.parametrize("strategy", ["passive", "blocking"])
def test_lost_partitions_alone_go_back(strategy, seeds):
    given, resumed = inputs(MANY, EVENTS, RATE, READ, SOURCES), 0
    for seed in seeds:
        options = {"faults": faults(seed), "batching": BATCHING, "recovery": STRATEGIES[strategy]()}
        outcome = Simulation(laid_out(MANY, SOURCES), PROTOCOLS["batch-aligned"], given, seed, **options).run()
        assert outcome.published == exact(MANY, given), f"seed {seed}"
        resumed += outcome.resumed
    assert resumed


def test_without_a_filter_there_is_no_operator_for_it():
    assert [each.operator for each in laid_out(FEW).partitions] == ["prices", "average", "out"]
    assert [each.operator for each in laid_out(MANY).partitions] == ["prices", "dear", "average", "out"]


def test_a_message_says_the_record_that_closes_the_window_and_the_average_in_thousandths():
    columns = [pa.array([5]), pa.array([17]), pa.array([3_000_000_000]), pa.array([100 / 3])]
    results = pa.RecordBatch.from_arrays(columns, names=["item", "position", "at_ns", "average"])
    spec = FEW.model_copy(update={"window_records": 3})
    assert list(packed_averages(results, spec)) == [(3000, 17, '{"item":5,"average_milli":33333}')]
    ((_, message),) = as_messages(spec, results, partitions=4)
    assert json.loads(message) | {"value": ""} == {"start_ms": 3000, "end_ms": 3000, "key": "1:4", "value": ""}


def test_the_sources_of_a_job_make_every_position_once_and_each_item_in_one_of_them():
    job = replace(JOB, workload=MANY, parallelism=3)
    assert Job.from_json(json.loads(json.dumps(job.to_json()))) == job
    positions = []
    for source, batches in reads_of(job):
        for batch in batches:
            positions += batch["position"].to_pylist()
            assert set(batch["item"].to_numpy() % 3) == {source.index}
    assert sorted(positions) == list(range(job.input.events))
