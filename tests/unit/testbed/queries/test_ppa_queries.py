"""The queries of `ppa`: their shape, and exact results under any faults."""

import json
from dataclasses import replace
from random import Random

import pyarrow as pa
import pytest

from experiments.errors import BadInput
from testbed.core.by_batch.cutting import Batching
from testbed.operators import END_OF_TIME_NS, Source, sliding
from testbed.protocols import PROTOCOLS
from testbed.queries import as_messages
from testbed.queries.incidents import Jams
from testbed.queries.top_100 import COUNTS, TopEntries
from testbed.recovery import STRATEGIES
from testbed.runtime.job import Job
from testbed.runtime.slot.inputs import feeds
from testbed.simulation import CrashMoment, Fault, Simulation
from tests.unit.testbed.campaigns import first_and_rest, paired
from tests.unit.testbed.queries.ppa_queries import ROADS, SITE, SPREAD, exact, inputs, laid_out, made
from tests.unit.testbed.runs import FAULT_TOLERANT
from tests.unit.testbed.small_job import JOB, batch_of, tuples_in

QUERIES = {"bound": (SITE, 800, 100.0), "spread": (SPREAD, 800, 100.0), "incidents": (ROADS, 1440, 120.0)}
BATCHING, READ = Batching(10**9 // 4, 2), 12
START_NS = 1_795_173_799_675_000_000
S = 10**9
SPEED_COLUMNS = pa.schema([(name, pa.int64()) for name in ("at_ns", "segment", "total", "measured")])
INCIDENT_COLUMNS = pa.schema([(name, pa.int64()) for name in ("at_ns", "incident", "segment", "reports")])


def faults(seed, within):
    random = Random(seed)
    moments = (CrashMoment.ANY, CrashMoment.STORING, CrashMoment.RESTORING)
    first = Fault(CrashMoment.ANY, random.randrange(within), late=True)
    return [first, *(Fault(random.choice(moments), random.randrange(12), late=True) for _ in range(seed % 3))]


@pytest.mark.parametrize("seeds", first_and_rest(range(2), 1))
@pytest.mark.parametrize(("query", "strategy"), paired(QUERIES, ["passive", "global"]))
def test_batch_by_batch_with_crashes_the_output_is_that_of_the_definition(query, strategy, seeds):
    spec, count, rate = QUERIES[query]
    wanted, crashes = exact(spec, made(spec, count, rate)), 0
    assert wanted.total() >= 10
    for seed in seeds:
        options = {"faults": faults(seed, 900), "batching": BATCHING, "recovery": STRATEGIES[strategy]()}
        given = inputs(spec, count, rate, READ)
        outcome = Simulation(laid_out(spec), PROTOCOLS["batch-aligned"], given, seed, **options).run()
        assert outcome.published == wanted, f"seed {seed}"
        crashes += outcome.crashes
    assert crashes >= len(seeds)


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("protocol", FAULT_TOLERANT)
def test_in_any_order_of_arrival_with_crashes_the_output_is_that_of_the_definition(query, protocol):
    spec, count, rate = QUERIES[query]
    given, wanted = inputs(spec, count, rate, READ, START_NS), exact(spec, made(spec, count, rate, START_NS))
    outcome = Simulation(laid_out(spec), PROTOCOLS[protocol], given, 1, faults=faults(1, 200)).run()
    assert outcome.crashes
    assert outcome.published == wanted


def test_partitions_that_have_the_same_region_meet_in_the_join():
    layout = laid_out(ROADS.model_copy(update={"parallelism": (8, 4, 2)}))
    names = [each.name for each in layout.partitions]
    reads = {each.name: [names[channel.sender] for channel in each.inputs] for each in layout.partitions}
    assert reads["speeds.1"] == reads["distinct.1"] == ["events.2", "events.3"]
    assert reads["jams.1"] == ["speeds.2", "speeds.3", "distinct.2", "distinct.3"]
    assert reads["all-jams.0"] == ["jams.0", "jams.1"]
    assert reads["out.0"] == ["all-jams.0"]


def rows(schema, *given):
    """Rows of a time [s] and numbers."""
    return batch_of(schema, *((round(at * S), *rest) for at, *rest in given))


def test_windows_that_end_at_once_have_their_own_slides_only():
    top = TopEntries(sliding("at_ns", 2 * S, S))
    top.open()
    top.process(0, rows(COUNTS, *((second, 7, 10**second) for second in range(4))))
    assert tuples_in(top.advance(END_OF_TIME_NS)) == [
        (end * S - 1, 7, count) for end, count in zip((1, 2, 3, 4), (1, 11, 110, 1100), strict=True)
    ]


def jams(speeds, incidents):
    """The results from speeds (time, segment, total, measured) and incidents (time, incident, segment, reports)."""
    found = Jams(sliding("at_ns", 4 * S, 2 * S), ("speeds", "incidents"))
    found.open()
    for port, (schema, given) in enumerate(((SPEED_COLUMNS, speeds), (INCIDENT_COLUMNS, incidents))):
        if given:
            found.process(port, rows(schema, *given))
    return tuples_in(found.advance(END_OF_TIME_NS))


def test_an_incident_is_judged_by_the_mean_speed_since_its_first_report_in_the_window():
    fast, slow, slower = (0, 5, 800, 10), (2, 5, 390, 10), (4, 5, 100, 5)
    assert jams([fast, slow, slower], [(3, 1, 5, 2)]) == [(4 * S - 1, 1, 5, 2, 39), (6 * S - 1, 1, 5, 2, 32)]
    assert jams([fast, slow], [(1, 1, 5, 2), (2, 1, 5, 3)]) == []
    assert jams([(0, 5, 400, 10)], [(1, 1, 5, 2)]) == []
    assert jams([(0, 5, 399, 10), (3, 5, 1, 1)], [(1, 1, 5, 2), (2, 1, 5, 3)])[1] == (4 * S - 1, 1, 5, 5, 36)


def test_an_incident_is_judged_only_where_somebody_measured_the_speed_in_the_slide_that_ends():
    assert jams([(0, 5, 10, 1), (2, 6, 10, 1)], [(1, 1, 5, 2)]) == [(2 * S - 1, 1, 5, 2, 10)]
    assert jams([(0, 6, 10, 1)], [(1, 1, 5, 2)]) == jams([], [(1, 1, 5, 2)]) == []


def test_only_the_join_has_correlated_inputs():
    found = {each.operator for each in laid_out(ROADS).partitions if getattr(each.element, "joins", False)}
    assert found == {"jams"}


def test_counts_go_up_the_hierarchy_to_one_partition():
    layout = laid_out(SITE)
    assert [each.name for each in layout.partitions] == [
        *(f"requests.{i}" for i in range(4)),
        *(f"slices.{i}" for i in range(2)),
        *(f"merged.{i}" for i in range(2)),
        "top.0",
        "out.0",
    ]


def test_a_result_belongs_to_the_window_that_ends_with_its_slide():
    results = batch_of(COUNTS, (5 * S - 1, 17, 42))
    ((key, value),) = as_messages(SITE, results, partitions=4)
    assert key == "2000|17"
    assert json.loads(value) == {"start_ms": 2000, "end_ms": 5000, "key": "17", "value": {"requests": 42}}


@pytest.mark.parametrize("spec", [SITE, ROADS])
def test_a_job_survives_its_way_to_the_slots_and_knows_its_width(spec):
    job = replace(JOB, workload=spec, parallelism=4)
    assert Job.from_json(json.loads(json.dumps(job.to_json()))) == job
    with pytest.raises(BadInput, match=r"4, the first of workload\.parallelism"):
        replace(job, parallelism=8)


def test_regions_are_partitions_of_a_topic_only():
    job = replace(JOB, workload=ROADS, parallelism=4)
    source = next(each for each in job.layout().partitions if isinstance(each.element, Source))
    with pytest.raises(BadInput, match="kafka with incidents"):
        feeds(job)(source)
