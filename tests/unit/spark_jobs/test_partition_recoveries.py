"""How partitions came back, and the ledger of their time: from a hand-made journal, with values by hand."""

from collections import Counter
from itertools import pairwise

import pytest

from journal.events.query import QueryReady
from results.tables.schema import RUN_TABLES
from spark_jobs.tables.dataflow.journal_tables import follow_parts
from spark_jobs.tables.dataflow.partial_ledger import ledger
from spark_jobs.tables.dataflow.partition_recoveries import partition_recoveries
from spark_jobs.tables.ledger import NS
from spark_jobs.tables.losses import as_query_journal, losses
from spark_jobs.tables.outages import Outage
from spark_jobs.tables.recoveries import lost_to, recoveries
from tests.unit.spark_jobs.recovering_in_parts import (
    CHECKPOINT,
    DRIVER_STRUCK,
    FIRST,
    HOSTS,
    IDLE,
    INJECTED,
    JOURNAL,
    RATE,
    SECOND,
    WITH_A_SECOND_DRIVER,
    line,
)
from tests.unit.spark_jobs.timelines import at, told

WINDOW = (at(5), at(55))


def followed(journal):
    ordered = sorted(journal, key=lambda each: each.at_ns)
    return partition_recoveries(ordered, losses(ordered, INJECTED, HOSTS))


def of(recoveries, partition):
    return [each for each in recoveries if each.partition == partition]


def test_all_partitions_come_back_from_the_death_of_the_driver():
    lost = losses(WITH_A_SECOND_DRIVER, [*INJECTED, DRIVER_STRUCK], HOSTS)
    found = [each for each in partition_recoveries(WITH_A_SECOND_DRIVER, lost) if each.loss.fault == 3]
    seconds = [(each.partition, *(ns / NS for ns in (each.left_ns, each.ready_ns, each.reached_ns))) for each in found]
    assert seconds == [*((name, 61, 65, 66) for name in FIRST), *((name, 61, 69, 70) for name in SECOND)]
    assert [each.rate for each in found] == [RATE, 3 * RATE] * 2, "as the driver before has reported"


def test_a_row_for_each_lost_partition_with_all_that_the_journal_tells():
    found = followed(JOURNAL)
    assert [each.partition for each in found] == [*FIRST, *SECOND]
    assert found[0].row() == {
        "fault": 0,
        "epoch": 2,
        "partition": "in.0",
        "how": "restored",
        "death_ns": at(20),
        "notice_ns": at(20.5),
        "ready_ns": at(21),
        "reached_ns": at(22),
        "checkpoint_age_s": 4.0,
        "rate": RATE,
        "replayed_records": 400,
        "replayed_bytes": 800,
        "loaded_bytes": 1000,
        "load_s": 0.2,
    }
    assert found[3].row()["rate"] == 3 * RATE, "of an operator by its tally"
    assert RUN_TABLES["partition_recoveries"].of(each.row() for each in found).num_rows == 4


def test_a_checkpoint_of_which_its_slot_could_not_tell_was_taken_when_those_of_its_number_were():
    (count,) = of(followed(JOURNAL), "count.0")
    assert count.checkpoint_age_s == 4.0
    uneven = told("recovering", 20.6, epoch=2, line=line(4) | {"in.1": 3}, restored=FIRST)
    own_numbers = [uneven if each.at_ns == uneven.at_ns else each for each in JOURNAL]
    assert of(followed(own_numbers), "count.0")[0].checkpoint_age_s is None, "a line of different numbers is no border"


def test_nobody_has_arrived_before_they_may_go():
    early = [each for each in JOURNAL if each.name != "partition-reached"]
    early.append(told("partition-reached", 20.7, partition="in.0", epoch=2))
    assert of(followed(early), "in.0")[0].reached_ns == at(21)
    assert of(followed(early), "count.0")[0].reached_ns is None


def test_a_partition_that_is_lost_again_on_its_way_has_a_row_for_each_time():
    again = told("worker-lost", 44.8, worker="slot-3", partitions=SECOND)
    back = [told("recovering", 50, epoch=4, line=line(9), restored=SECOND), told("ready", 51, epoch=4)]
    back += [told("partition-loaded", 50.5, partition=name, epoch=4, seconds=0.1) for name in SECOND]
    first, second = of(followed([*JOURNAL, again, *back]), "in.1")
    assert (first.ready_ns, first.reached_ns) == (None, None)
    assert (second.loss.notice_ns, second.ready_ns) == (at(44.8), at(51))


def test_whoever_goes_back_without_having_been_lost_is_told_apart():
    """As when an object of the line could not be read: everybody goes back."""
    everybody = told("recovering", 46, epoch=4, line=line(4), restored=(*FIRST, *SECOND))
    found = followed([*JOURNAL, everybody, told("ready", 46.5, epoch=4)])
    assert Counter(each.how.value for each in found) == {"restored": 4, "rolled-back": 4}
    assert of(found, "in.0")[-1].checkpoint_age_s == 46 - 16


def test_a_partition_that_its_copy_replaces_loses_no_work():
    """The copy of `in.0` takes its place, and `count.0` is restored in a recovery that follows."""
    promoted = told("recovering", 20.55, epoch=2, line=line(4), promoted=["in.0"])
    restored = told("recovering", 20.6, epoch=3, line=line(4), restored=["count.0"])
    rest = [each for each in JOURNAL if not at(20.5) < each.at_ns < at(40)]
    back = [promoted, told("ready", 20.7, epoch=2), restored, told("ready", 21, epoch=3)]
    back.append(told("partition-loaded", 20.9, partition="count.0", epoch=3, seconds=0.2))
    back.append(told("partition-reached", 20.8, partition="in.0", epoch=2, records=3))
    found = followed([*rest, *back])
    (copied,), (other,) = of(found, "in.0"), of(found, "count.0")
    assert (copied.how.value, copied.epoch, copied.taken_ns) == ("promoted", 2, None)
    assert (copied.ready_ns, copied.reached_ns, copied.row()["replayed_records"]) == (at(20.7), at(20.8), 3)
    assert (other.how.value, other.ready_ns) == ("restored", at(21))
    assert copied.row()["death_ns"] == at(20)
    moments = as_query_journal(sorted([*rest, *back], key=lambda each: each.at_ns))
    assert [each.at_ns for each in moments if isinstance(each, QueryReady)][1:2] == [at(21)], "when the last went on"
    totals = seconds(ledger((at(19), at(22)), sorted([*rest, *back], key=lambda each: each.at_ns), [copied]))
    assert totals["restart", 0] == pytest.approx(0.2 / 4)
    assert not totals["lost", 0]


def test_a_partition_that_nobody_restores_stays_lost():
    (left, *_) = of(followed(each for each in JOURNAL if each.at_ns < at(44)), "in.1")
    assert (left.how.value, left.epoch, left.ready_ns) == ("lost", None, None)
    assert left.row()["death_ns"] == at(40)


def seconds(segments):
    totals = Counter()
    for each in segments:
        totals[each.kind, each.fault] += (each.end_ns - each.start_ns) / NS
    return totals


def test_the_ledger_books_the_time_of_partitions():
    """Half of the partitions are lost each time: of every second they are down, half is theirs."""
    found = ledger(WINDOW, JOURNAL, followed(JOURNAL))
    assert (found[0].start_ns, found[-1].end_ns) == WINDOW
    assert all(before.end_ns == after.start_ns for before, after in pairwise(found))
    totals = seconds(found)
    assert totals["detect", 0] == pytest.approx(0.5 / 2)
    assert totals["restart", 0] == pytest.approx(0.5 / 2)
    assert totals["detect", 2] == pytest.approx(0.5 / 2)
    assert totals["restart", 2] == pytest.approx(4.5 / 2)
    assert totals["lost", 0] == pytest.approx(4 / 2 * (1 - IDLE))
    assert totals["lost", 2] == pytest.approx(4 / 2 * (1 - IDLE))
    down_s, lost_s = 1 / 2 + 5 / 2, 4.0
    assert totals["idle", None] == pytest.approx((50 - down_s) * IDLE)
    assert totals["checkpoint", None] == pytest.approx((50 - down_s - lost_s) * CHECKPOINT)
    assert sum(totals.values()) == pytest.approx(50)


def test_what_is_lost_twice_is_booked_once():
    """The second loss goes back to the same checkpoint as the first: only what was done since counts."""
    again = told("worker-lost", 24, worker="slot-3", partitions=FIRST)
    back = [told("recovering", 24, epoch=9, line=line(4), restored=FIRST), told("ready", 25, epoch=9)]
    back += [told("partition-loaded", 24.5, partition=name, epoch=9, seconds=0.1) for name in FIRST]
    journal = sorted([*JOURNAL, again, *back], key=lambda each: each.at_ns)
    totals = seconds(ledger(WINDOW, journal, followed(journal)))
    assert totals["lost", 0] == pytest.approx(4 / 2 * (1 - IDLE))
    assert totals["lost", None] == pytest.approx(3 / 2 * (1 - IDLE)), "from 21 s on, by no fault"
    assert sum(totals.values()) == pytest.approx(50)


def test_what_nobody_brings_back_is_down_to_the_end():
    journal = [each for each in JOURNAL if each.at_ns < at(44)]
    assert seconds(ledger(WINDOW, journal, followed(journal)))["restart", 2] == pytest.approx((55 - 40.5) / 2)


def test_a_run_without_faults_has_nothing_but_work():
    journal = [each for each in JOURNAL if each.at_ns <= at(20)]
    assert seconds(ledger((at(5), at(15)), journal, [])) == {
        ("useful", None): pytest.approx(10 * (1 - IDLE - CHECKPOINT)),
        ("checkpoint", None): pytest.approx(10 * CHECKPOINT),
        ("idle", None): pytest.approx(10 * IDLE),
    }


def test_an_outage_of_some_ends_when_the_last_of_them_is_where_it_was():
    outage = Outage(2, 1, at(40), at(40.5), at(45))
    recoveries = followed(JOURNAL)
    lost_ns = lost_to(outage, [outage], ledger(WINDOW, JOURNAL, recoveries))
    found = follow_parts(outage, JOURNAL, lost_ns, recoveries)
    assert (found.restored_ns, found.lost_s) == (at(47), pytest.approx(4 / 2 * (1 - IDLE)))
    without = followed(each for each in JOURNAL if each.name != "partition-reached" or each.partition != "in.1")
    assert follow_parts(outage, JOURNAL, 0, without).restored_ns is None


def test_an_outage_while_partitions_are_on_their_way_ends_when_these_have_arrived_too():
    """`in.0`, lost at 20 s, has caught up only at 50 s, and the partitions lost at 40 s at 47 s."""
    late = told("partition-reached", 50, partition="in.0", epoch=2, records=400, size_bytes=800)
    slow = [late if (each.name, getattr(each, "partition", "")) == (late.name, "in.0") else each for each in JOURNAL]
    followed_s = {}
    for name, journal in {"slow": slow, "in time": JOURNAL}.items():
        known = followed(journal)
        cuts = [Outage(0, 1, at(20), at(20.5), at(21)), Outage(2, 1, at(40), at(40.5), at(45))]
        found = recoveries(cuts, lambda cut, known=known: follow_parts(cut, JOURNAL, 0, known), [], [], None)
        followed_s[name] = [each.restored_ns / NS for each in found]
    assert followed_s == {"slow": [50], "in time": [22, 47]}
