"""What a run does instead of what it was asked to, and that it says so: operators by chance, and queries that wait."""

from dataclasses import replace
from types import SimpleNamespace

import pyarrow.compute as pc
import pytest

from experiments.errors import BadInput
from journal.events.testbed import TESTBED, FellBack, QueriesWaiting
from journal.reader import events
from journal.writer import Journal
from testbed.core.coordinator.coordinator import Coordinator
from testbed.core.dataflow.chaining import chained
from testbed.core.dataflow.graph import Dataflow
from testbed.core.dataflow.layout import lay_out
from testbed.operators import Delivery
from testbed.operators.stateless import Filter, Map
from testbed.protocols import PROTOCOLS
from testbed.recovery import Blocking, QueryCentric
from testbed.runtime.job import Job
from testbed.runtime.server.fallback import not_deterministic, settled
from testbed.runtime.server.waiting_queries import WaitingQueries
from tests.unit.testbed.queries.hashtag_queries import FIFTEEN, laid_out
from tests.unit.testbed.small_flows import EVENTS
from tests.unit.testbed.small_job import JOB

ALIGNED = replace(JOB, protocol="batch-aligned", recovery="passive")
FAVOURED = {"q14": 10, "q8": 5}


def by_chance(deterministic=False, chaining=False):
    """A dataflow with a filter and a map that make another choice each time, or say that they do not."""
    flow = Dataflow("by-chance")
    rows = flow.source("rows", EVENTS, 2, time="at_ns")
    some = flow.operator("some", Filter(lambda batch: pc.greater(batch.column("value"), 0), deterministic), rows)
    flow.operator("others", Map(lambda batch: batch, deterministic), some).sink("out", Delivery.EXACTLY_ONCE)
    return lay_out(chained(flow) if chaining else flow)


def test_operators_by_chance_are_found_also_where_a_source_runs_them():
    assert not_deterministic(by_chance()) == ["some", "others"]
    assert not_deterministic(by_chance(chaining=True)) == ["rows"]
    assert not_deterministic(by_chance(deterministic=True)) == []
    assert not_deterministic(laid_out(FIFTEEN)) == []


def test_a_job_with_operators_by_chance_goes_back_whole_and_says_so(monkeypatch):
    monkeypatch.setattr(Job, "layout", lambda self: by_chance())
    changed, why = settled(ALIGNED)
    assert (changed.recovery, changed.protocol) == ("global", "coordinated")
    assert changed == replace(ALIGNED, recovery="global", protocol="coordinated")
    instead = "recovery global with protocol coordinated instead of recovery passive with protocol batch-aligned"
    assert why == f"{instead}: operator some is not deterministic"


def test_a_job_that_cannot_go_back_whole_is_refused_in_one_line(monkeypatch):
    job = replace(ALIGNED, recovery="query-centric", slots=ALIGNED.parallelism + 1)
    monkeypatch.setattr(Job, "layout", lambda self: by_chance())
    with pytest.raises(BadInput, match="so that every slot has work"):
        settled(job)


def test_what_does_not_tell_by_numbers_may_have_operators_by_chance(monkeypatch):
    monkeypatch.setattr(Job, "layout", lambda self: by_chance())
    assert settled(JOB) == (JOB, None)


@pytest.mark.parametrize("job", [JOB, ALIGNED], ids=["global", "passive"])
def test_a_deterministic_job_stays_as_it_is(job):
    assert settled(job) == (job, None)


def waiting_through(strategy, path, arriving):
    layout = laid_out(FIFTEEN)
    coordinator = Coordinator(layout, PROTOCOLS["batch-aligned"], 10, recovery=strategy)
    watch = WaitingQueries(layout, coordinator, strategy, Journal(path))
    for number in range(10):
        coordinator.on_joined(f"w{number}")
        watch.look()
    for number in range(2, 10):
        coordinator.on_lost(f"w{number}")
    watch.look()
    for number in range(arriving):
        coordinator.on_joined(f"new-{number}")
        watch.look()
    return [each for each in events(path, TESTBED) if isinstance(each, QueriesWaiting | FellBack)]


def test_a_cluster_that_stays_too_small_says_which_queries_wait_the_dearest_first(tmp_path):
    told = waiting_through(QueryCentric(4, priorities=FAVOURED), tmp_path / "small.jsonl", arriving=3)
    assert told
    assert told[0].queries[0] == "q14.0"
    assert "q8.0" in told[0].queries
    assert "q8.0" not in told[-1].queries
    assert 0 < len(told[-1].queries) < len(told[0].queries) <= 15


def test_once_all_are_back_none_waits(tmp_path):
    assert waiting_through(QueryCentric(4), tmp_path / "whole.jsonl", arriving=8)[-1].queries == ()


def test_other_strategies_know_no_queries(tmp_path):
    assert waiting_through(Blocking(by_room=True), tmp_path / "blocking.jsonl", arriving=8) == []


def test_the_notes_of_planners_are_told_once(tmp_path):
    strategy, path = QueryCentric(4), tmp_path / "notes.jsonl"
    coordinator = SimpleNamespace(epoch=1, down=frozenset())
    watch = WaitingQueries(laid_out(FIFTEEN), coordinator, strategy, Journal(path))
    strategy._notes.append("planner density-beam instead of dp")
    watch.look()
    watch.look()
    assert [each.why for each in events(path, TESTBED)] == ["planner density-beam instead of dp"]
