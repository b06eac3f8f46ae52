"""The vocabularies of the journals: what is written comes back, in the format of stored runs, and nothing else does."""

import logging
import subprocess
import sys
from dataclasses import replace

import pytest

from chaos.holds import StrikeOutcome
from chaos.injector import LEFT_AS
from experiments.fault_kinds import FaultKind
from infra.launch import REPOSITORY
from journal.codec import encode
from journal.events.common import FAILURES, LOSSES, DriverStarted, ExecutorsLost, Failed
from journal.events.injector import INJECTOR, Healed, Injected
from journal.events.query import QUERY, BatchesMeasured, BatchTiming, QueryTerminated
from journal.events.search import SEARCH
from journal.events.services import GENERATOR, HOSTS, MACHINE, SUPERVISOR, HostSample, MachineSample
from journal.events.testbed import TESTBED, CheckpointStored, Report, RunPhase
from journal.reader import events
from journal.writer import Journal
from testbed.core.coordinator.coordinator import Phase
from tests.unit.example_events import example, named

VOCABULARIES = {
    "common": (LOSSES, FAILURES),
    "injector": (INJECTOR,),
    "query": (QUERY,),
    "search": (SEARCH,),
    "services": (GENERATOR, HOSTS, MACHINE, SUPERVISOR),
    "testbed": (TESTBED,),
}
KINDS = [
    pytest.param(each, name, id=f"{journal}-{name}")
    for journal, vocabularies in VOCABULARIES.items()
    for each in vocabularies
    for name in each.kinds
]
BATCHES = (BatchTiming(5, 1.5, 0.5), BatchTiming(7, 2.0, 0.5))
KILLED = Injected(3, "worker-1", FaultKind.POWER_OFF, 5, 6, 7, {"processes killed": 4}, {"survivors": 0}, at_ns=9)
REPORT = Report(2, RunPhase.RESTORING, {"out.0": {"forced": 1}}, {"bids.0": 4}, 2, 8, 1.5, 0.5, 0.25, at_ns=9)
STORED = CheckpointStored("bids.0", 4, 0.5, 70, True, at_ns=9)


@pytest.mark.parametrize(("vocabulary", "name"), KINDS)
def test_every_kind_of_event_comes_back_as_it_was_written(tmp_path, vocabulary, name):
    written = named(vocabulary, name, 17)
    if name == "progress" and vocabulary is QUERY:
        written = replace(written, progress={"batchId": 4, "sources": [{"endOffset": None}]})
    Journal(tmp_path / "log.jsonl").record(written)
    assert list(events(tmp_path / "log.jsonl", vocabulary)) == [written]


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (DriverStarted(at_ns=9), '{"event": "driver-started", "at_ns": 9}'),
        (ExecutorsLost(("0", "1"), at_ns=9), '{"event": "executors-lost", "at_ns": 9, "executors": ["0", "1"]}'),
        (
            KILLED,
            '{"event": "injected", "at_ns": 9, "fault": 3, "host": "worker-1", "kind": "power-off", "planned_ns": 5,'
            ' "fired_ns": 6, "proved_ns": 7, "done": {"processes killed": 4}, "left": {"survivors": 0}}',
        ),
        (
            BatchesMeasured("calibration-1", BATCHES, at_ns=9),
            '{"event": "calibration", "at_ns": 9, "topic": "calibration-1", "batches":'
            ' [{"records": 5, "duration_s": 1.5, "overhead_s": 0.5},'
            ' {"records": 7, "duration_s": 2.0, "overhead_s": 0.5}]}',
        ),
        (
            MachineSample(2.5, 4, monotonic_ns=8, at_ns=9),
            '{"event": "machine", "at_ns": 9, "monotonic_ns": 8, "busy_s": 2.5, "cores": 4}',
        ),
        (
            QueryTerminated("a-run", None, at_ns=9),
            '{"event": "query-terminated", "at_ns": 9, "query_run": "a-run", "error": null}',
        ),
        (
            STORED,
            '{"event": "checkpoint", "at_ns": 9, "partition": "bids.0", "number": 4, "seconds": 0.5, "size_bytes": 70,'
            ' "forced": true, "taken_ns": null}',
        ),
        (
            REPORT,
            '{"event": "progress", "at_ns": 9, "epoch": 2, "phase": "restoring", "tallies": {"out.0": {"forced": 1}},'
            ' "positions": {"bids.0": 4}, "slots": 2, "sent_bytes": 8, "cpu_s": 1.5, "idle_s": 0.5,'
            ' "checkpoint_s": 0.25, "logs": {}, "reached": {}}',
        ),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_a_line_is_written_as_in_stored_runs(event, line):
    assert encode(event).decode() == line + "\n"


def test_entries_of_the_first_machine_samples_had_one_clock(tmp_path):
    path = tmp_path / "machine.jsonl"
    path.write_text('{"event": "machine", "at_ns": 9, "busy_s": 2.5, "cores": 4}\n', encoding="utf-8")
    assert list(events(path, MACHINE)) == [MachineSample(2.5, 4, monotonic_ns=None, at_ns=9)]


@pytest.mark.parametrize(
    "line",
    [
        '{"event": "sample", "at_ns": 1, "host": "a", "cpu_s": 1.0}',
        '{"event": "sample", "at_ns": 1, "host": "a", "cpu_s": "1.0", "rss_bytes": 1}',
        '{"event": "sample", "at_ns": 1, "host": "a", "cpu_s": true, "rss_bytes": 1}',
        '{"event": "sample", "at_ns": 1, "host": "a", "cpu_s": 1.0, "rss_bytes": 1.5}',
        '{"event": "sample", "at_ns": 1, "host": null, "cpu_s": 1.0, "rss_bytes": 1}',
        '{"event": "sample", "at_ns": 1, "host": "\\ud800", "cpu_s": 1.0, "rss_bytes": 1}',
    ],
)
def test_an_event_whose_fields_do_not_fit_is_left_out_and_logged_on_one_line(tmp_path, caplog, line):
    path, sample = tmp_path / "hosts.jsonl", HostSample("b", 1.0, 2, at_ns=3)
    path.write_text(line + "\n", encoding="utf-8")
    Journal(path).record(sample)
    assert list(events(path, HOSTS)) == [sample]
    (told,) = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert str(path) in told.getMessage()
    assert "\n" not in told.getMessage()


def test_a_field_that_the_kind_does_not_have_is_ignored(tmp_path):
    path = tmp_path / "hosts.jsonl"
    path.write_text('{"event": "sample", "at_ns": 1, "host": "a", "cpu_s": 1, "rss_bytes": 1, "x": {}}\n')
    assert list(events(path, HOSTS)) == [HostSample("a", 1.0, 1, at_ns=1)]


def test_an_event_of_another_vocabulary_is_passed_over(tmp_path, caplog):
    """An entry that tells of losses, or of a later version, is no sample of a host."""
    path, sample = tmp_path / "hosts.jsonl", HostSample("a", 1.0, 2, at_ns=3)
    for event in (example(Healed), Failed("no room"), sample):
        Journal(path).record(event)
    assert list(events(path, HOSTS)) == [sample]
    assert not caplog.messages


def test_a_journal_that_was_never_begun_has_no_events(tmp_path):
    assert list(events(tmp_path / "none.jsonl", HOSTS)) == []


def test_who_writes_needs_no_library_but_python_s_own(tmp_path):
    modules = ", ".join(f"journal.events.{name}" for name in VOCABULARIES)
    code = f"import {modules}, journal.writer, sys, pathlib\n"
    code += "event = journal.events.common.DriverStarted(at_ns=9)\n"
    code += "journal.writer.Journal(pathlib.Path(sys.argv[1])).record(event)\n"
    path = tmp_path / "log.jsonl"
    subprocess.run([sys.executable, "-S", "-c", code, str(path)], cwd=REPOSITORY, check=True)
    assert path.read_text() == '{"event": "driver-started", "at_ns": 9}\n'


def test_the_journal_names_the_phases_of_the_coordinator():
    assert [phase.value for phase in RunPhase] == [phase.value for phase in Phase]


def test_the_journal_names_the_outcomes_of_strikes():
    kinds = LEFT_AS | {StrikeOutcome.INJECTED: Injected}
    assert {outcome: outcome.value for outcome in StrikeOutcome} == {o: kind.name for o, kind in kinds.items()}
