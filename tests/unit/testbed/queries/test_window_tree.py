"""The window tree: its shape, its windows, and exact results under any faults."""

import json
from dataclasses import replace
from random import Random

import pyarrow as pa
import pytest

from experiments.errors import BadInput
from testbed.core.by_batch.cutting import Batching
from testbed.operators import END_OF_TIME_NS, sliding
from testbed.protocols import PROTOCOLS
from testbed.queries import as_messages
from testbed.queries.window_tree import PassingWindow
from testbed.recovery import STRATEGIES
from testbed.runtime.job import Job
from testbed.simulation import CrashMoment, Fault, Simulation
from tests.unit.testbed.campaigns import first_and_rest, quick
from tests.unit.testbed.operators.moving_states import moved
from tests.unit.testbed.queries.window_trees import PAPER, SMALL, exact, inputs, laid_out
from tests.unit.testbed.runs import FAULT_TOLERANT
from tests.unit.testbed.runtime.source_reads import reads_of
from tests.unit.testbed.small_job import JOB, batch_of, tuples_in
from workloads.schedule import Schedule
from workloads.window_tree.input import FACTOR, MARKS, TUPLES, tuples

EVENTS, RATE, READ = 320, 40.0, 12
S = 10**9
BATCHING = Batching(S // 4, 2)
JOB_OF_TREE = replace(JOB, workload=SMALL, parallelism=4)


def faults(seed, most=3, within=900):
    random = Random(seed)
    moments = (CrashMoment.ANY, CrashMoment.STORING, CrashMoment.RESTORING)
    first = Fault(CrashMoment.ANY, random.randrange(within), late=True)
    others = [Fault(random.choice(moments), random.randrange(12), late=True) for _ in range(random.randrange(most))]
    return [first, *others]


def test_the_paper_s_tree_merges_two_by_two():
    layout = laid_out(PAPER)
    names = [each.name for each in layout.partitions]
    assert [name.split(".")[0] for name in names if name.endswith(".0")] == [
        "tuples",
        *(f"window-{i}" for i in range(1, 5)),
        "out",
    ]
    reads = {each.name: [names[channel.sender] for channel in each.inputs] for each in layout.partitions}
    assert reads["window-1.3"] == ["tuples.6", "tuples.7"]
    assert reads["window-4.0"] == ["window-3.0", "window-3.1"]
    assert len(names) == 16 + 15 + 1


@pytest.mark.parametrize("seeds", first_and_rest(range(6), 1))
@pytest.mark.parametrize("strategy", ["global", "passive", "blocking"])
def test_batch_by_batch_with_crashes_the_output_is_that_of_the_definition(strategy, seeds):
    given, resumed = inputs(SMALL, EVENTS, RATE, READ), 0
    wanted = exact(SMALL, given)
    assert 40 < len(wanted) < 120
    for seed in seeds:
        options = {"faults": faults(seed), "batching": BATCHING, "recovery": STRATEGIES[strategy]()}
        outcome = Simulation(laid_out(SMALL), PROTOCOLS["batch-aligned"], given, seed, **options).run()
        assert outcome.published == wanted, f"seed {seed}"
        resumed += outcome.resumed
    assert resumed


@pytest.mark.parametrize("seeds", first_and_rest(range(4), 1))
@pytest.mark.parametrize("protocol", FAULT_TOLERANT)
def test_in_any_order_of_arrival_with_crashes_the_output_is_that_of_the_definition(protocol, seeds):
    given, crashes = inputs(SMALL, EVENTS, RATE, READ, start_ns=1_795_173_799_675_000_000), 0
    wanted = exact(SMALL, given)
    for seed in seeds:
        outcome = Simulation(laid_out(SMALL), PROTOCOLS[protocol], given, seed, faults=faults(seed, within=200)).run()
        assert outcome.published == wanted, f"seed {seed}"
        crashes += outcome.crashes
    assert crashes >= len(seeds)


@pytest.mark.parametrize("strategy", quick(["global", "passive"], ["passive"]))
def test_the_paper_s_tree_with_crashes(strategy):
    given = inputs(PAPER, 800, 160.0, READ)
    options = {"faults": faults(1), "batching": BATCHING, "recovery": STRATEGIES[strategy](), "slots": 5}
    outcome = Simulation(laid_out(PAPER), PROTOCOLS["batch-aligned"], given, 1, **options).run()
    assert outcome.crashes
    assert outcome.published == exact(PAPER, given)
    assert outcome.published.total() > 20


def opened(window_s=3, bar=MARKS):
    found = PassingWindow(sliding("at_ns", window_s * S, S), bar)
    found.open()
    return found


def rows(*given):
    """Tuples of a time [s], a mark and a value; the position is their number."""
    return batch_of(TUPLES, *((number, round(at * S), *rest) for number, (at, *rest) in enumerate(given)))


def test_a_slide_goes_on_when_it_ends_with_the_sum_of_its_window():
    window = opened(bar=50)
    window.process(0, rows((0.0, 10, 1), (0.5, 60, 2), (1.2, 20, 4), (3.0, 30, 8)))
    assert tuples_in(window.advance(S - 1)) == []
    assert tuples_in(window.advance(S)) == [(0, S - 1, 10 * FACTOR % MARKS, 1 + 3)]
    window.process(0, rows((1.9, 99, 16)))
    assert tuples_in(window.advance(2 * S + 7)) == [(2, 2 * S - 1, 20 * FACTOR % MARKS, 4 + 23)]
    assert tuples_in(window.advance(3 * S)) == []
    assert tuples_in(window.advance(END_OF_TIME_NS)) == [(3, 4 * S - 1, 30 * FACTOR % MARKS, 8 + 28)]


def test_the_state_is_the_input_of_the_window_and_no_more():
    window = opened()
    for second in range(10):
        window.process(0, rows((second, 10, 1)))
        window.advance((second + 1) * S)
        assert sorted(window.states()["slides"].buckets()) == [s * S for s in range(max(0, second - 1), second + 1)]
    window.advance(END_OF_TIME_NS)
    assert window.states()["slides"].buckets() == []


def test_a_restored_window_goes_on_where_it_was():
    window, again = opened(), opened()
    window.process(0, rows((0.0, 10, 1), (1.5, 20, 2)))
    window.advance(S)
    for name, state in window.states().items():
        moved(state.changes(0), again.states()[name])
    assert tuples_in(again.advance(2 * S)) == tuples_in(window.advance(2 * S)) != []


def test_values_stay_within_their_bound():
    window = opened()
    window.process(0, rows((0.0, 1, 999_999), (0.1, MARKS - 1, 999_999)))
    assert [row[2:] for row in tuples_in(window.advance(S))] == [(FACTOR, 999_997), (MARKS - FACTOR, 999_997)]


def test_a_result_belongs_to_the_window_that_ends_with_its_slide():
    results = rows((5 - 1e-9, 1, 42))
    ((key, value),) = as_messages(SMALL, results.set_column(0, "position", pa.array([11])), partitions=4)
    assert key == "2000|3:2"
    assert json.loads(value) == {"start_ms": 2000, "end_ms": 5000, "key": "3:2", "value": {"value": 42}}


def test_a_job_survives_its_way_to_the_slots_and_its_sources_make_every_tuple_once():
    job = Job.from_json(json.loads(json.dumps(JOB_OF_TREE.to_json())))
    assert job == JOB_OF_TREE
    made = [batch for _, batches in reads_of(job) for batch in batches]
    events = tuples(SMALL, Schedule(0, job.input.rate), 0, job.input.events)
    assert pa.Table.from_batches(made).sort_by("position") == pa.Table.from_batches([events])


def test_a_job_with_other_partitions_than_its_source_is_refused():
    with pytest.raises(BadInput, match=r"4, the first of workload\.parallelism"):
        replace(JOB_OF_TREE, parallelism=8)
