"""The usual pace of a query, by hand-made batches and outages of a window from 100 s to 200 s."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from experiments.engines import TriggerMode
from experiments.fault_kinds import FaultKind
from experiments.recovery_modes import RecoveryMode
from experiments.spec import LoadMode
from journal.events.common import ExecutorsLost
from journal.events.injector import Injected
from journal.events.query import QueryReady
from journal.events.services import LoadStarted, ProgramEnded
from spark_jobs.tables import logs as logs_module
from spark_jobs.tables.ledger import NS
from spark_jobs.tables.logs import Logs
from spark_jobs.tables.outages import Outage
from tests.unit.example_events import batch_committed, example
from tests.unit.spark_jobs.timelines import batch


def logs(batches, outages, load=LoadMode.SATURATING):
    asked = SimpleNamespace(engine=SimpleNamespace(trigger=TriggerMode.MICRO_BATCH), load=SimpleNamespace(mode=load))
    made = Logs(SimpleNamespace(window=(100 * NS, 200 * NS), experiment=asked))
    vars(made).update(batches=batches, outages=outages)  # in place of those that the files tell
    return made


BEFORE = [batch(1, 70, 79), batch(2, 80, 89)]
AFTER_RESTARTS = [batch(4, 120, 140), batch(5, 155, 177)]
OUTAGES = [Outage(0, 1, 110 * NS, 111 * NS, 120 * NS), Outage(1, 1, 145 * NS, 146 * NS, 155 * NS)]


def test_where_faults_leave_no_batch_of_the_window_alone_those_before_it_tell_the_pace():
    found = logs([*BEFORE, *AFTER_RESTARTS, batch(6, 201, 203), batch(7, 203, 205)], OUTAGES)
    assert found.undisturbed == []
    assert found.pace.rate == pytest.approx(1000 / (8 * NS))
    assert found.pace.excess_ns(AFTER_RESTARTS[0]) == pytest.approx(11 * NS)


def test_where_the_window_has_undisturbed_batches_it_alone_tells_the_pace():
    own = [batch(6, 177, 182), batch(7, 182, 187)]
    found = logs([*BEFORE, *AFTER_RESTARTS, *own], OUTAGES)
    assert found.undisturbed == own
    assert found.pace.rate == pytest.approx(1000 / (4 * NS))


def test_under_a_set_rate_the_batches_before_the_window_are_cold():
    assert logs([*BEFORE, *AFTER_RESTARTS], OUTAGES, LoadMode.RATE).pace is None


def test_a_single_undisturbed_batch_tells_no_pace():
    assert logs([BEFORE[0], *AFTER_RESTARTS], OUTAGES).pace is None


@pytest.mark.parametrize("mode", [RecoveryMode.QUERY, RecoveryMode.TASK])
@pytest.mark.parametrize("committed_ns", [110 * NS - 1, 110 * NS + 1])
def test_a_commit_whose_report_died_with_the_driver_does_not_end_the_outage_of_that_driver(mode, committed_ns):
    """The driver lives on for some milliseconds after it was killed, in which it may commit a batch."""
    unreported = replace(batch(3, 100, 110), ended_ns=committed_ns, made_up=True)
    killed = example(Injected, kind=FaultKind.DRIVER_KILL, fault=0, fired_ns=110 * NS)
    journals = {
        "supervisor": [ProgramEnded(7, -9, at_ns=111 * NS)],
        "injector": [killed],
        "query": [example(QueryReady, 120 * NS)],
    }
    asked = SimpleNamespace(engine=SimpleNamespace(recovery_run=mode))
    made = Logs(SimpleNamespace(window=(100 * NS, 200 * NS), experiment=asked, journal=lambda name, _: journals[name]))
    vars(made).update(batches=[*BEFORE, unreported, batch(4, 120, 140)])
    assert made.outages == [Outage(0, 1, 110 * NS, 111 * NS, 120 * NS)]


@pytest.mark.parametrize(
    ("others_s", "healed_s", "back_s"),
    [((), None, 200), ((), 203, 200), ((), 180, None), ((150,), 180, 200), ((150,), 203, 200)],
    ids=["held", "healed as the run ended", "no executor is told of", "no executor came", "others had theirs"],
)
def test_hosts_that_have_no_executor_again_are_away_until_the_window_ends(others_s, healed_s, back_s):
    def row(struck_s, healed_s, executor_s):
        moments_s = {"actual_ns": struck_s, "healed_ns": healed_s, "executors_ns": executor_s}
        return {"kind": "kill"} | {name: None if at is None else at * NS for name, at in moments_s.items()}

    killed, noticed = example(Injected, fault=1, fired_ns=160 * NS), example(ExecutorsLost, 161 * NS)
    journals = {"supervisor": [], "injector": [killed], "query": [noticed]}
    asked = SimpleNamespace(engine=SimpleNamespace(recovery_run=RecoveryMode.TASK))
    made = Logs(SimpleNamespace(window=(100 * NS, 200 * NS), experiment=asked, journal=lambda name, _: journals[name]))
    faults = [*(row(110, 120, other_s) for other_s in others_s), row(160, healed_s, None)]
    vars(made).update(batches=BEFORE, faults=faults)
    (found,) = made.outages
    assert found.back_ns == (None if back_s is None else back_s * NS)


def test_of_what_an_own_job_reads_only_its_input_counts(monkeypatch):
    """Its load makes records of the input due, and no others: lag would fall below zero."""
    monkeypatch.setattr(logs_module, "spark_events", lambda raw, kinds: [])
    ends = {"orders": {"0": 9}, "rates": {"0": 4}}
    committed = batch_committed(sources=[{"endOffset": ends}], durationMs={"triggerExecution": 1000})
    engine, workload = SimpleNamespace(partitions=2), SimpleNamespace(input_topics=("orders",))
    made = Logs(SimpleNamespace(raw=None, experiment=SimpleNamespace(cores=2, engine=engine, workload=workload)))
    vars(made).update(query=[committed])
    assert [(each.records, dict(each.ends)) for each in made.commits] == [(9, {("orders", "0"): 9})]


class Counted(list):
    """A list that counts how often all of it was looked at."""

    looks = 0

    def __iter__(self):
        self.looks += 1
        return super().__iter__()


def test_the_lag_at_a_moment_is_what_was_due_by_then_without_what_was_committed():
    """A lag that never becomes normal is asked for at every batch: each answer must not look at all batches."""
    batches = Counted([batch(2, 104, 108), batch(1, 100, 104), batch(3, 108, 112, records=500)])
    made = Logs(SimpleNamespace(schedule=LoadStarted(100 * NS, 200.0, 1)))
    vars(made).update(batches=batches)
    moments_s = (99, 103.5, 104, 108, 110, 112, 200)
    assert [made.lag(round(at_s * NS)) for at_s in moments_s] == [0, 700, -200, -400, 0, -100, 17_500]
    assert batches.looks == 1
