"""What steps, the observer and pages ask of a run's journals again and again: no line is read twice for it."""

import time
from collections import Counter

import pytest

from aftershock.run import progress, steps
from aftershock.run.engines.choice import engine_of
from aftershock.run.live_run import LiveRun
from aftershock.watch import live
from experiments import spec
from experiments.engines import ProtocolName
from experiments.fault_kinds import FaultKind
from experiments.spec import Experiment
from journal import reader
from journal.events.common import Failed
from journal.events.injector import Armed, Disarmed, Striking
from journal.events.query import QueryReady
from journal.events.testbed import Committed, Report
from journal.reader import raw_entries
from journal.writer import Journal
from results.runs import store
from tests.e2e.example_run import LIVE
from tests.unit.example_events import batch_committed, example

NS = 10**9


@pytest.fixture
def parsed(monkeypatch):
    """Every line of a journal that is read from now on."""
    lines, entry = [], reader._entry
    monkeypatch.setattr(reader, "_entry", lambda line: lines.append(line) or entry(line))
    return lines


def ask(live_run):
    """Everything that is asked of the journals of a live run each time that somebody looks."""
    return (
        steps._query_reported(live_run, QueryReady),
        steps._injector_reported(live_run, Armed),
        steps._commits(live_run, 0),
        str(live_run.dead_injector()),
        str(live_run.dead_service({"broker"})),
        str(progress.progress(LIVE)),
        live.state_of(LIVE)["faults"]["injected"],
    )


def test_no_line_is_read_twice_however_often_and_by_whom_it_is_asked(live_run, parsed):
    striking = example(Striking, host="gateway", kind=FaultKind.BROKER_KILL, fault=1)
    Journal(live_run.journal_path("injector")).record(striking)
    first = ask(live_run)
    assert first[:3] == (False, False, 1)
    assert first[4] == "None"  # a fault holds the broker
    Journal(live_run.journal_path("query")).record(QueryReady(()))
    Journal(live_run.journal_path("injector")).record(Armed(0))
    committed = batch_committed(time.time_ns(), numInputRows=5, batchId=8)
    Journal(live_run.journal_path("query")).record(committed)
    assert ask(LiveRun(LIVE))[:3] == (True, True, 2)
    whole = [
        entry for path in live_run.run.raw.glob("*.jsonl") for entry in path.read_bytes().splitlines(keepends=True)
    ]
    assert Counter(parsed) == Counter(whole)


def test_an_injector_that_failed_is_dead_by_what_has_come_since_the_last_poll(live_run):
    Journal(live_run.journal_path("injector")).record(Disarmed())
    assert live_run.dead_injector() is None
    Journal(live_run.journal_path("injector")).record(Failed("worker-1 does not answer"))
    Journal(live_run.journal_path("injector")).record(Failed("of no interest"))
    assert "the injector died (worker-1 does not answer)" in str(live_run.dead_injector())


def committed(experiment, *found):
    commits = engine_of(Experiment.model_validate(experiment)).commits()
    for event in found:
        commits.take(event)
    return commits


def batch(at_s, rows):
    return batch_committed(at_s * NS, numInputRows=rows)


def told(kind, at_s, read):
    return example(kind, at_s * NS, positions={"bids.0": read})


def test_a_batch_with_input_is_a_commit_and_only_what_came_after_a_moment_counts():
    commits = committed({}, QueryReady(()), batch(1, 5), batch(3, 0), batch(4, 5), batch(2, 5))
    assert [commits.since(at_s * NS) for at_s in (0, 1, 2, 3, 4)] == [3, 2, 1, 1, 0]


@pytest.mark.parametrize(("protocol", "count"), [(ProtocolName.COORDINATED, 1), (ProtocolName.NONE, 2)])
def test_of_the_testbed_lines_of_checkpoints_are_commits_or_reports_where_there_are_none(protocol, count):
    document = spec.load("dataflow-q12").model_dump(mode="json")
    document["engine"]["protocol"] = protocol
    found = [told(Report, 1, 0), told(Report, 2, 7), told(Report, 3, 9), told(Committed, 4, 9)]
    assert committed(document, *found).since(0) == count


def test_a_whole_journal_is_read_one_entry_at_a_time(live_run):
    path = live_run.journal_path("query")
    reading = raw_entries(path)
    assert next(reading)["event"] == "progress"
    Journal(path).record(QueryReady(()))
    assert [entry["event"] for entry in reading] == ["ready"]
    assert list(raw_entries(store.home() / "none.jsonl")) == []
