"""The journal of the testbed as batches, ledger, recoveries and checkpoints: hand-made, times in seconds."""

import time
from dataclasses import replace
from itertools import pairwise

import pytest

from journal.events.testbed import Report
from results.tables.schema import RUN_TABLES
from spark_jobs.tables.dataflow.journal_tables import (
    batches,
    commits,
    follow,
    ledger,
    message_overhead,
    pace,
    partition_checkpoints,
)
from spark_jobs.tables.ledger import NS
from spark_jobs.tables.outages import Outage
from spark_jobs.tables.recoveries import lost_to, recoveries
from spark_jobs.tables.rows import checkpoints
from tests.unit.example_events import report
from tests.unit.spark_jobs.timelines import at, classes, told

RATE, SLOTS, STEP_S = 1000, 2, 0.5
IDLE, CHECKPOINT = 0.1, 0.2  # shares of the time


def reports(start_s, end_s, epoch, read_from):
    """Every half second from the start on: so much more read, so much more time idle and in checkpoints."""
    for step in range(round((end_s - start_s) / STEP_S) + 1):
        passed_s = step * STEP_S
        read = round(read_from + RATE * passed_s)
        spent = {"idle_s": IDLE * SLOTS * passed_s, "checkpoint_s": CHECKPOINT * SLOTS * passed_s, "slots": SLOTS}
        positions = {
            "persons.0": read // 2,
            "auctions.0": read // 2 + 7,
            "persons.1": read // 2,
            "auctions.1": read // 2,
        }
        tallies = {"out.0": {"data_bytes": 200, "protocol_bytes": 50}}
        yield report(at(start_s + passed_s), epoch=epoch, positions=positions, tallies=tallies, **spent)


def positions(read):
    return {"persons.0": read // 2, "auctions.0": read, "persons.1": read // 2, "auctions.1": read // 2}


KILLED = Outage(3, 1, at(20), at(21), at(25))
JOURNAL = sorted(
    [
        told("recovering", 0, epoch=1, line={"a": 0}, positions=positions(0)),
        told("ready", 0),
        *reports(0, 19.5, 1, 0),
        told("checkpoint", 6, partition="a", number=1, seconds=0.5, size_bytes=10, forced=False),
        told("checkpoint", 16, partition="a", number=2, seconds=0.7, size_bytes=30, forced=True),
        told("committed", 8, positions=positions(5000)),
        told("committed", 9, positions=positions(5500)),
        told("committed", 18, positions=positions(15_000)),
        told("worker-lost", 21),
        told("recovering", 22, epoch=2, line={"a": 1}, positions=positions(16_000)),
        told("ready", 25),
        *reports(25, 40, 2, 16_000),
        told("finished", 40, positions=positions(31_000)),
    ],
    key=lambda each: each.at_ns,
)


def test_what_is_committed_by_interval():
    found = batches(JOURNAL, 10 * NS, commits=True)
    assert [(b.started_ns / NS, b.ended_ns / NS, b.records) for b in found] == [
        (0, 8, 5000),
        (8, 18, 10_000),
        (18, 40, 16_000),
    ], "what comes 1 s after another is no interval; the last one ends when everything is out"
    assert [b.offsets["input", "0"] for b in found] == [(0, 2500), (2500, 7500), (7500, 15_500)]
    assert found[1].checkpoint_ns == pytest.approx(10 * NS * CHECKPOINT)
    assert [b.state_bytes for b in found] == [10, 30, 0]


def test_a_commit_soon_after_another_is_one_of_its_own_though_both_make_one_batch():
    """What came out at 9 s was not out at 18 s only."""
    again = told("committed", 10, positions=positions(5500))  # the line moved, and covers no more than before
    found = commits(sorted([*JOURNAL, again], key=lambda each: each.at_ns))
    assert [(each.at_ns / NS, each.records) for each in found] == [(8, 5000), (9, 500), (18, 9500), (40, 16_000)]
    assert [each.ends["input", "0"] for each in found] == [2500, 2750, 7500, 15_500]
    assert sum(each.records for each in found) == sum(b.records for b in batches(JOURNAL, 10 * NS, commits=True))


def test_a_commit_names_the_partitions_that_it_brings_further():
    ends = ({"bids.0": 0, "bids.1": 0}, {"bids.0": 0, "bids.1": 7}, {"bids.0": 5, "bids.1": 7}, {"bids.0": 4})
    journal = [told("committed", second, positions=of) for second, of in enumerate(ends)]
    found = [(each.at_ns / NS, each.records, dict(each.ends)) for each in commits(journal)]
    assert found == [(1, 7, {("input", "1"): 7}), (2, 5, {("input", "0"): 5})]


def test_what_the_testbed_does_not_measure_of_a_batch_is_unknown_and_not_zero():
    made = batches(JOURNAL, 10 * NS, commits=True)
    found = checkpoints(made, (at(0), at(40)), made)
    assert {row[name] for row in found for name in ("wal_s", "commit_log_s", "state_rows", "stages")} == {None}
    assert RUN_TABLES["checkpoints"].of(found).num_rows == 3


def test_without_commits_it_is_what_was_read():
    found = batches(JOURNAL[:30], NS, commits=False)
    assert {b.records for b in found} == {RATE}


def test_what_a_lost_source_has_read_counts_once_though_a_report_lacks_it():
    lacking = [_without_partition_1(event) if event.at_ns == at(5) else event for event in JOURNAL[:30]]
    found, whole = (batches(journal, NS, commits=False) for journal in (lacking, JOURNAL[:30]))
    assert at(5) in {b.ended_ns for b in found}
    assert sum(b.records for b in found) == sum(b.records for b in whole)


def test_the_ledger_covers_the_window_and_knows_what_was_lost():
    window = (at(2), at(38))
    found = ledger(window, JOURNAL, [KILLED])
    assert (found[0].start_ns, found[-1].end_ns) == window
    assert all(a.end_ns == b.start_ns for a, b in pairwise(found))
    seconds = classes(found)
    lost_s = 4.0  # read 16,000 at 16 s, and went back to there
    assert seconds["detect"] == 1
    assert seconds["restart"] == 4
    assert seconds["lost"] == pytest.approx(lost_s * (1 - IDLE), abs=0.01)
    assert seconds["idle"] == pytest.approx((20 - 2 + 38 - 25) * IDLE, abs=0.01)
    assert seconds["checkpoint"] == pytest.approx((16 - 2 + 38 - 25) * CHECKPOINT, abs=0.01)
    assert {each.fault for each in found if each.kind in ("lost", "detect", "restart")} == {3}


def test_a_source_that_the_first_report_lacks_has_not_read_everything_since():
    """A fault at 29 takes back all since the recovery at 25, whether or not the report at 25 tells of all sources."""
    again = Outage(4, 1, at(29), at(30))
    whole = [event for event in JOURNAL if event.at_ns <= at(29)]
    whole.append(told("recovering", 30, epoch=3, line={"a": 1}, positions=positions(16_000)))
    lacking = [_without_partition_1(event) if event.at_ns == at(25) else event for event in whole]
    for journal in (whole, lacking):
        lost = [each for each in ledger((at(2), at(38)), journal, [KILLED, again]) if each.fault == 4]
        lost_s = sum(each.end_ns - each.start_ns for each in lost if each.kind == "lost") / NS
        assert lost_s == pytest.approx(4.0 * (1 - IDLE), abs=0.01)


def _without_partition_1(event):
    if not isinstance(event, Report):
        return event
    return replace(event, positions={name: read for name, read in event.positions.items() if name.endswith(".0")})


def test_a_second_recovery_takes_no_more_than_what_was_kept():
    """The second goes back to 17,000, beyond the line of the first: what was kept before the first death stays."""
    again = Outage(4, 1, at(30), at(31), at(33))
    journal = [each for each in JOURNAL if each.at_ns <= at(30)]
    journal += [told("recovering", 31.5, epoch=3, line={"a": 1}, positions=positions(17_000)), told("ready", 33)]
    journal += list(reports(33, 40, 3, 17_000))
    found = ledger((at(0), at(40)), journal, [KILLED, again])
    lost = {
        fault: sum(s.end_ns - s.start_ns for s in found if (s.kind, s.fault) == ("lost", fault)) for fault in (3, 4)
    }
    assert lost[3] / NS == pytest.approx(4 * (1 - IDLE), abs=0.01)
    assert lost[4] / NS == pytest.approx(4 * (1 - IDLE), abs=0.01)


@pytest.mark.parametrize(("line", "is_lost"), [(16_000, True), (15_000, True), (16_002, False)])
def test_what_ran_too_briefly_for_two_reports_is_lost_unless_the_line_moved(line, is_lost):
    """A second host dies 0.4 s after the recovery to 16,000."""
    again = Outage(4, 1, at(25.4), at(26), at(28))
    journal = [each for each in JOURNAL if each.at_ns <= at(25)]
    journal += [told("recovering", 26.5, epoch=3, line={"a": 1}, positions=positions(line)), told("ready", 28)]
    journal += list(reports(28, 40, 3, line))
    found = ledger((at(2), at(38)), journal, [KILLED, again])
    lost = [(each.start_ns, each.end_ns) for each in found if each.kind == "lost" and each.end_ns > at(25)]
    assert lost == ([(at(25), at(25.4))] if is_lost else [])


def test_the_pace_is_by_useful_time():
    segments = ledger((at(0), at(40)), JOURNAL, [KILLED])
    usual = pace(batches(JOURNAL, 10 * NS, commits=True)[:2], segments)
    useful = 1 - IDLE - CHECKPOINT
    before, then = 5000 / (8 * useful), 10_000 / (8 * useful)  # of the second the work after 16 s was lost
    assert usual.rate * NS == pytest.approx((before + then) / 2, rel=0.01)
    assert pace([], segments) is None


def test_a_recovery_ends_when_as_much_is_read_as_before():
    segments = ledger((at(0), at(40)), JOURNAL, [KILLED])
    found = follow(KILLED, JOURNAL, lost_to(KILLED, [KILLED], segments))
    assert found.restored_ns / NS == pytest.approx(25 + 3.5, abs=0.01), "19,500 had been read at the last report"
    assert found.lost_s == pytest.approx(4 * (1 - IDLE), abs=0.01)


def test_a_recovery_that_a_second_fault_extends_ends_when_as_much_is_read_as_before_the_first():
    """Of the 19,500 events before the first fault, 18,000 are read again when the second one takes them."""
    again = Outage(4, 1, at(27), at(28), at(30))
    journal = [each for each in JOURNAL if each.at_ns <= at(27)]
    journal += [told("recovering", 29, epoch=3, line={"a": 1}, positions=positions(16_000)), told("ready", 30)]
    journal += list(reports(30, 40, 3, 16_000))
    (found,) = recoveries([KILLED, again], lambda cut: follow(cut, journal, 0), [], [], None)
    assert found.restored_ns / NS == pytest.approx(30 + 3.5, abs=0.01)


@pytest.mark.parametrize(
    ("up_s", "executor_s"), [([0, 23.5, 24], 3.0), ([0, 20.5, 26], None), ([], None)], ids=["two", "others", "none"]
)
def test_spark_s_part_of_a_restart_ends_with_the_last_executor_before_all_are_ready(up_s, executor_s):
    journal = [*JOURNAL, *(told("executors-up", second, executors=["1"]) for second in up_s)]
    found = follow(KILLED, sorted(journal, key=lambda each: each.at_ns), 0)
    assert found.row(0)["executor_s"] == executor_s
    assert follow(replace(KILLED, ready_ns=None), journal, 0).row(0)["executor_s"] is None


def test_what_a_recovery_leaves_behind_is_invalid():
    rounds = [told("round-started", 4, epoch=1, number=7), told("round-stored", 6.5, epoch=1, number=7)]
    journal = sorted([*JOURNAL, *rounds], key=lambda each: each.at_ns)
    found = partition_checkpoints(journal, (at(5), at(10)))
    columns = ("partition", "number", "completed_ns", "seconds", "size_bytes", "forced", "invalid", "in_window")
    assert [tuple(row.get(name) for name in columns) for row in found] == [
        ("a", 1, at(6), 0.5, 10, False, False, True),
        ("round", 7, at(6.5), 2.5, None, False, False, True),
        ("a", 2, at(16), 0.7, 30, True, True, False),
    ]
    assert RUN_TABLES["partition_checkpoints"].of(found).num_rows == 3


def test_what_a_survivor_has_stored_is_not_left_behind():
    """Only `a` goes back to line 1. When `b` does so later, line 2 is complete."""
    lines = [dict.fromkeys("ab", number) for number in (1, 2)]
    kept = [told("checkpoint", 16, partition=name, number=2, seconds=0.5, forced=False) for name in "ab"]
    back = [
        told("recovering", second, epoch=epoch, line=line, restored=(name,))
        for epoch, (second, line, name) in enumerate(zip((20, 30), lines, "ab", strict=True), 2)
    ]
    found = partition_checkpoints([*kept, *back], (at(0), at(40)))
    assert [(row["partition"], row["invalid"]) for row in found] == [("a", True), ("b", False)]


def test_each_checkpoint_takes_as_little_time_in_a_long_run_as_in_a_short_one():
    """A run of an hour has tens of thousands of them. A look from each at all that follows would take minutes."""
    count = 30_000
    journal = [told("checkpoint", second, partition="a", number=second) for second in range(1, count)]
    journal.append(told("recovering", count, epoch=2, line={"a": count - 2}, restored=("a",)))
    began_s = time.process_time()
    found = partition_checkpoints(journal, (at(0), at(count)))
    assert time.process_time() - began_s < 5
    assert [row["number"] for row in found if row["invalid"]] == [count - 1]


def test_the_overhead_of_messages():
    assert message_overhead(JOURNAL) == pytest.approx(1.25)
    assert message_overhead([]) is None
