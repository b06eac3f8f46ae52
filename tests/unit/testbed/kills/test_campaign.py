"""What the campaign of kills makes of a journal and of an output: that it would see what it looks for."""

import json
import multiprocessing
import signal
import time
from dataclasses import replace
from itertools import count

import pyarrow as pa
import pytest

from testbed.runtime.connectors.sinks import Files
from tests.integration.testbed.exact_results import Verdict, exact, judged
from tests.integration.testbed.kills import campaign as campaigns
from tests.integration.testbed.kills import slots
from tests.integration.testbed.kills.campaign import Campaign, Stuck
from tests.integration.testbed.kills.figures import RecoveryTimes, checkpoints, recoveries
from tests.integration.testbed.kills.jobs import job_of
from tests.integration.testbed.kills.moments import REPLAYED_NS, Moment, moment_at
from tests.integration.testbed.kills.rig import Rig
from tests.integration.testbed.kills.watching import Standing

S = 10**9


def journal(*events):
    """Entries a second apart, each given as its name and fields."""
    return [{"event": name, "at_ns": at * S, **fields} for at, (name, fields) in zip(count(1), events, strict=False)]


def joined(worker):
    return "worker-joined", {"worker": worker}


def lost(worker, *partitions):
    return "worker-lost", {"worker": worker, "partitions": partitions}


def stored(partition, number, size_bytes=10):
    return "checkpoint", {"partition": partition, "number": number, "size_bytes": size_bytes}


def recovering(**line):
    return "recovering", {"line": line}


READY, EXECUTORS_UP = ("ready", {}), ("executors-up", {})
BEGUN = (joined("a"), joined("b"), recovering(x=0), READY)


@pytest.mark.parametrize(
    ("then", "seen", "moment"),
    [
        ((), (), Moment.RUNNING),
        ((), (Moment.STORING,), Moment.STORING),
        ((), (Moment.ALIGNING, Moment.PUBLISHING), Moment.PUBLISHING),
        ((lost("a"),), (Moment.STORING,), Moment.SHORT),
        ((joined("c"), lost("a")), (), Moment.RUNNING),
        ((lost("a"), joined("c"), recovering(x=0)), (), Moment.RESTORING),
        ((lost("a"), joined("c"), recovering(x=0), READY), (), Moment.RUNNING),
    ],
)
def test_the_moment_that_a_blow_hit_is_told_by_the_journal_and_by_what_the_struck_left(then, seen, moment):
    standing, entries = Standing(slots=2), journal(*BEGUN, *then)
    for entry in entries:
        standing.take(entry)
    assert moment_at(standing, entries[-1]["at_ns"] + REPLAYED_NS, seen) is moment


def test_soon_after_all_have_gone_on_they_replay():
    standing, entries = Standing(slots=2), journal(*BEGUN)
    for entry in entries:
        standing.take(entry)
    assert moment_at(standing, entries[-1]["at_ns"] + REPLAYED_NS - 1, ()) is Moment.REPLAYING


BACK = joined("c"), recovering(x=0), READY


def test_a_recovery_counts_from_the_last_loss_and_the_next_beginning_before_all_went_on():
    again = (lost("a", "x"), joined("c"), recovering(x=0), lost("b", "y"), joined("d"), *[recovering(x=0)] * 2, READY)
    spark_s = (lost("a", "x"), EXECUTORS_UP, *BACK)
    assert list(recoveries(journal(EXECUTORS_UP, *BEGUN))) == []
    found = list(recoveries(journal(EXECUTORS_UP, *BEGUN, *again, *spark_s)))
    assert found == [
        RecoveryTimes(restart_s=2.0, executor_s=None, restore_s=2.0),
        RecoveryTimes(restart_s=3.0, executor_s=1.0, restore_s=1.0),
    ]
    assert [each.own_s for each in found] == [4.0, 3.0]


def test_a_loss_during_the_recovery_of_others_has_a_recovery_of_its_own():
    during = (lost("a", "x"), joined("c"), recovering(x=0), lost("b", "y"), READY, joined("d"), recovering(y=0), READY)
    assert list(recoveries(journal(*BEGUN, *during))) == [
        RecoveryTimes(restart_s=2.0, executor_s=None, restore_s=2.0),
        RecoveryTimes(restart_s=3.0, executor_s=None, restore_s=1.0),
    ]


@pytest.mark.parametrize(
    "then",
    [
        (lost("spare"), READY),  # who had nothing
        (lost("spare"), *BACK),  # as when somebody says late that it is tentative
        (lost("a", "x"), READY, lost("b", "y"), READY),  # placed again, and nothing went back
    ],
)
def test_a_loss_after_which_nothing_goes_back_for_it_is_no_recovery(then):
    assert list(recoveries(journal(*BEGUN, *then))) == []


def test_checkpoints_beyond_the_line_of_a_recovery_are_invalid_once():
    entries = journal(
        stored("x", 1), stored("x", 2), stored("y", 1), recovering(x=1, y=1), recovering(x=1, y=1), stored("x", 2)
    )
    assert checkpoints(entries) == (4, 1, 40)


def test_what_is_lost_doubled_or_wrong_is_seen(tmp_path):
    job = job_of("q12", "coordinated", 1, tmp_path, slots=1, kills=1)
    ends = {"bids.0": 20}
    columns = zip(*exact(job, ends), strict=True)
    rows = pa.RecordBatch.from_arrays([pa.array(each) for each in columns], names=["bidder", "window_start_ns", "bids"])
    outlet, first = Files(tmp_path / "output" / "out.0"), rows.slice(0, 1)
    outlet.publish({1: [rows.slice(1)]})
    assert judged(job, ends) == Verdict(rows.num_rows, lost=1, doubled=0, wrong=0)
    outlet.publish({2: [first]})
    assert judged(job, ends).exact
    outlet.publish({3: [first]})
    assert judged(job, ends) == Verdict(rows.num_rows, lost=0, doubled=1, wrong=0)
    outlet.publish({4: [first.set_column(2, "bids", pa.array([0]))]})
    assert judged(job, ends) == Verdict(rows.num_rows, lost=0, doubled=1, wrong=1)


class Quick(Rig):
    """A run that recovers at once, and whose coordinator is gone once it drains; it `ends` if all is out by then."""

    def __init__(self, job, root, ends):
        super().__init__(job, root / "journal.jsonl")
        self._ends, self._gone = ends, False
        self._write(joined("a"))
        self._go()

    def victims(self):
        return ["a"]

    def revive(self):
        pass

    def kill(self, victims):
        assert not self._gone, "no slot is there any more"
        self._write(lost("a"), joined("a"))
        self._go()
        return []

    def is_now(self, moment):
        return None

    def has_ended(self):
        return self._gone

    def drain(self):
        self._gone = True
        if self._ends:
            self._write(("finished", {"positions": {"bids.0": 1}}))

    def close(self):
        pass

    def _go(self):
        checkpoints = 0 if self.job.strategy.from_sources else 20
        self._write(recovering(x=0), READY, *(stored("x", number) for number in range(checkpoints)))

    def _write(self, *events):
        with self.journal.open("a") as file:
            for name, fields in events:
                file.write(json.dumps({"event": name, "at_ns": time.time_ns(), **fields}) + "\n")


def campaign(tmp_path, ends, moment=Moment.RUNNING, **changes):
    job = replace(job_of("q12", "coordinated", 1, tmp_path, slots=1, kills=2), **changes)
    return Campaign(Quick(job, tmp_path, ends), [moment], seed=1, limit_s=120.0)


def test_a_run_that_is_over_before_its_last_kill_was_not_struck_by_it(tmp_path):
    episode = campaign(tmp_path, ends=True).run(kills=2)
    assert [injection.kills for injection in episode.injections] == [1, 1]
    assert episode.verdict.lost == episode.verdict.compared > 0, "judged by where the end has the sources"


@pytest.mark.parametrize("moment", [Moment.RUNNING, Moment.RESTORING])
def test_a_run_that_never_stores_a_checkpoint_is_struck_all_the_same(tmp_path, monkeypatch, moment):
    """Also amid a recovery, of which there has to be one first."""
    for name in ("LONGEST_WORK_S", "MOMENT_LIMIT_S"):
        monkeypatch.setattr(campaigns, name, 0.1)
    never_stores = {"protocol": "batch-aligned", "recovery": "source-replay"}
    episode = campaign(tmp_path, ends=True, moment=moment, **never_stores).run(kills=4)
    assert sum(injection.kills for injection in episode.injections) >= 4
    assert {injection.target for injection in episode.injections} == {Moment.RUNNING, moment}


def test_a_coordinator_that_is_gone_before_the_end_is_told(tmp_path):
    with pytest.raises(Stuck, match="the coordinator is gone"):
        campaign(tmp_path, ends=False).run(kills=2)


def mute(*_):
    """In place of a coordinator."""
    signal.pause()


def test_a_coordinator_that_does_not_begin_is_not_left_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(slots, "coordinate", mute)
    monkeypatch.setattr(slots, "START_LIMIT_S", 0.0)
    before = multiprocessing.active_children()
    with pytest.raises(TimeoutError, match="not begun"):
        slots.Slots(job_of("q12", "coordinated", 1, tmp_path, slots=1, kills=1), tmp_path)
    left = [each for each in multiprocessing.active_children() if each not in before]
    for each in left:
        each.kill()
    assert left == []
