"""The queries over hashtags: their shape, their windows and totals, and exact results under any faults."""

import json
from dataclasses import replace
from random import Random

import pyarrow as pa
import pytest

from testbed.core.by_batch.cutting import Batching
from testbed.operators import END_OF_TIME_NS, Sink
from testbed.protocols import PROTOCOLS
from testbed.queries import as_messages
from testbed.queries.hashtags import COUNTS, TAGS, Totals, WindowedCounts, parsed
from testbed.recovery import STRATEGIES
from testbed.runtime.job import Job
from testbed.simulation import CrashMoment, Fault, Simulation
from tests.unit.testbed.campaigns import first_and_rest, quick
from tests.unit.testbed.operators.moving_states import moved
from tests.unit.testbed.queries.hashtag_queries import FIFTEEN, TWO, exact, inputs, laid_out
from tests.unit.testbed.runtime.source_reads import reads_of
from tests.unit.testbed.small_job import JOB, batch_of, tuples_in
from workloads.hashtags.input import TOTALS, TWEETS, tweets
from workloads.schedule import Schedule

S = 10**9
BATCHING = Batching(S, 1)
JOB_OF_TWEETS = replace(JOB, workload=TWO, parallelism=2)


def faults(seed, first, within):
    random = Random(seed)
    return [
        Fault(CrashMoment.ANY, first + random.randrange(within), late=True),
        Fault(CrashMoment.RESTORING, 3, late=True),
    ]


def test_fifteen_queries_share_what_they_read():
    layout = laid_out(FIFTEEN)
    names = [each.name for each in layout.partitions]
    assert len(names) == 1 + 15 + 15
    reads = {each.name: [names[channel.sender] for channel in each.inputs] for each in layout.partitions}
    assert reads["o3.0"] == ["tweets.0"]
    assert reads["o9.0"] == ["o4.0", "o5.0"]
    assert reads["q14.0"] == ["o14.0"]
    assert sum(isinstance(each.element, Sink) for each in layout.partitions) == 15
    assert FIFTEEN.depth == 4


@pytest.mark.parametrize("seeds", first_and_rest(range(3), 1))
@pytest.mark.parametrize("strategy", quick(["global", "passive", "blocking"], ["passive"]))
def test_batch_by_batch_with_crashes_every_query_gives_what_the_definition_says(strategy, seeds):
    given, resumed = inputs(FIFTEEN, 60, 10.0, 6), 0
    wanted = exact(FIFTEEN, given)
    assert {query for *_, query in wanted} == set(range(15))
    for seed in seeds:
        options = {"faults": faults(seed, 2170, 40), "batching": BATCHING, "recovery": STRATEGIES[strategy]()}
        outcome = Simulation(laid_out(FIFTEEN), PROTOCOLS["batch-aligned"], given, seed, **options).run()
        assert outcome.published == wanted, f"seed {seed}"
        resumed += outcome.resumed
    assert resumed


@pytest.mark.parametrize("seeds", first_and_rest(range(4), 2))
@pytest.mark.parametrize("protocol", ["coordinated", "uncoordinated"])
def test_in_any_order_of_arrival_with_crashes_the_windows_give_what_the_definition_says(protocol, seeds):
    given = inputs(TWO, 90, 10.0, 6, sources=2, start_ns=1_795_173_799_675_000_000)
    for seed in seeds:
        simulation = Simulation(laid_out(TWO, 2), PROTOCOLS[protocol], given, seed, faults=faults(seed, 150, 100))
        assert simulation.run().published == exact(TWO, given), f"seed {seed}"


def test_the_parser_takes_every_hashtag_out_with_the_time_of_its_tweet():
    assert tuples_in(parsed(batch_of(TWEETS, (0, 7, "#a #b"), (1, 9, "#a")))) == [("a", 7), ("b", 7), ("a", 9)]


def opened(operator, *schemas):
    operator.schema(*schemas)
    operator.open()
    return operator


def test_a_count_belongs_to_the_last_nanosecond_of_its_window():
    counts = opened(WindowedCounts(1, 2 * S, S), TAGS)
    counts.process(0, batch_of(TAGS, ("a", 0), ("a", S), ("b", S + 5)))
    assert tuples_in(counts.advance(2 * S - 1)) == [("a", S - 1, 1, 1)]
    assert tuples_in(counts.advance(2 * S)) == [("a", 2 * S - 1, 2, 1), ("b", 2 * S - 1, 1, 1)]
    assert tuples_in(counts.advance(END_OF_TIME_NS)) == [("a", 3 * S - 1, 1, 1), ("b", 3 * S - 1, 1, 1)]


def test_a_total_is_of_all_inputs_and_of_all_slides_and_stays_within_its_bound():
    totals = opened(Totals(4, 2, S), COUNTS, COUNTS)
    totals.process(0, batch_of(COUNTS, ("a", S - 1, TOTALS - 1, 0), ("b", 2 * S - 1, 7, 0)))
    totals.process(1, batch_of(COUNTS, ("a", S - 1, 3, 1)))
    assert tuples_in(totals.advance(S - 1)) == []
    assert tuples_in(totals.advance(S)) == [("a", S - 1, 2, 4)]
    totals.process(1, batch_of(COUNTS, ("b", 2 * S - 1, 1, 1), ("a", 3 * S - 1, 1, 1)))
    assert tuples_in(totals.advance(END_OF_TIME_NS)) == [("b", 2 * S - 1, 8, 4), ("a", 3 * S - 1, 3, 4)]


def test_restored_totals_go_on_where_they_were():
    totals, again = (opened(Totals(4, 1, S), COUNTS) for _ in range(2))
    totals.process(0, batch_of(COUNTS, ("a", S - 1, 5, 0), ("a", 2 * S - 1, 6, 0)))
    totals.advance(S)
    for name, state in totals.states().items():
        moved(state.changes(0), again.states()[name])
    assert tuples_in(again.advance(2 * S)) == tuples_in(totals.advance(2 * S)) == [("a", 2 * S - 1, 11, 4)]


def test_a_message_says_query_hashtag_and_window():
    results = batch_of(COUNTS, ("h7", 6 * S - 1, 9, 1), ("h7", 6 * S - 1, 2, 4))
    window, total = (json.loads(value) for _, value in as_messages(FIFTEEN, results, partitions=1))
    assert window == {"start_ms": 3000, "end_ms": 6000, "key": "q1 h7", "value": {"count": 9}}
    assert (total["start_ms"], total["key"]) == (5000, "q4 h7")


def test_a_job_survives_its_way_to_the_slots_and_its_sources_make_every_tweet_once():
    job = Job.from_json(json.loads(json.dumps(JOB_OF_TWEETS.to_json())))
    assert job == JOB_OF_TWEETS
    made = [batch for _, batches in reads_of(job) for batch in batches]
    events = tweets(TWO, Schedule(0, job.input.rate), 0, job.input.events)
    assert pa.Table.from_batches(made).sort_by("position") == pa.Table.from_batches([events])
