"""Outages, ledger and recoveries on small hand-made timelines; times in seconds are turned into nanoseconds."""

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.fault_kinds import FaultKind
from experiments.recovery_modes import RecoveryMode
from journal.events.common import ExecutorsLost
from journal.events.injector import Absorbed, Healed, Injected
from journal.events.query import QUERY, QueryReady
from journal.events.services import ProgramEnded
from results.tables.schema import RUN_TABLES, LedgerClass
from spark_jobs.tables.ledger import NS, LedgerSegment, UndisturbedPace, ledger, pace, steady
from spark_jobs.tables.outages import Moment, MomentKind, Outage, moments, outages, with_hosts_back
from spark_jobs.tables.recoveries import by_batches, lost_to, recoveries
from tests.unit.example_events import batch_committed, example, named
from tests.unit.spark_jobs.timelines import batch, classes

INTERVAL_NS = 10 * NS
COLD_LATER = ((0, 9), (10, 10), (20, 12), (32, 11), (43, 9))  # start and length [s]; usual are 9


def outage(fault, death_s, notice_s, ready_s, faults=1, went_on=False):
    times = (None if x is None else round(x * NS) for x in (death_s, notice_s, ready_s))
    return Outage(fault, faults, *times, went_on=went_on)


def outlived(fault, death_s, seen_s, faults=1):
    """Recovery by task: others went on, and were seen to."""
    return outage(fault, death_s, seen_s, seen_s, faults, went_on=True)


def by(made, segments=(), usual=None):
    return lambda outage: by_batches(outage, made, lost_to(outage, [outage], segments), usual)


def test_without_faults_a_batch_is_work_then_checkpoint_then_idle_until_the_next():
    found = ledger((0, 20 * NS), [batch(0, 0, 9), batch(1, 10, 18, 2.0), batch(2, 20, 29)], [], None, INTERVAL_NS)
    assert classes(found) == {"useful": 8 + 6, "checkpoint": 1 + 2, "idle": 1 + 2}


def test_a_batch_that_a_fault_cuts_off_is_lost_from_its_start():
    # batch 1 started at 10 (the trigger), the host died at 16, noticed at 16.5, the query ran again at 22
    cut = outage(0, 16, 16.5, 22)
    found = ledger((0, 40 * NS), [batch(0, 0, 9), batch(1, 22, 31), batch(2, 31, 40)], [cut], None, INTERVAL_NS)
    assert classes(found) == {"useful": 24, "checkpoint": 3, "idle": 1, "lost": 6, "detect": 0.5, "restart": 5.5}


def test_what_cold_executors_take_longer_is_warm_up():
    cut = outage(0, 16, 16.5, 22)
    usual = UndisturbedPace(rate=1000 / (8 * NS))
    found = ledger((0, 40 * NS), [batch(0, 0, 9), batch(1, 22, 34), batch(2, 34, 43)], [cut], usual, INTERVAL_NS)
    assert classes(found)["restart"] == pytest.approx(5.5)
    assert classes(found)["warm-up"] == pytest.approx(3)
    assert classes(found)["useful"] == pytest.approx(8 + 8 + 6)


def test_a_slow_batch_that_is_committed_as_the_query_dies_is_not_lost():
    """It took 2 s longer than usual, and the host died while it was being committed."""
    usual, cut = UndisturbedPace(rate=1000 / (8 * NS)), outage(0, 20.5, 21.5, 25)
    found = ledger((0, 34 * NS), [batch(0, 0, 9), batch(1, 10, 21), batch(2, 25, 34)], [cut], usual, INTERVAL_NS)
    assert classes(found) == {"useful": 8 + 10 + 8, "checkpoint": 3, "idle": 1, "detect": 0.5, "restart": 3.5}


def test_a_fault_while_idle_loses_no_work():
    found = ledger((0, 20 * NS), [batch(0, 0, 6)], [outage(0, 8, 8.5, 12)], None, INTERVAL_NS)
    assert "lost" not in classes(found)
    assert classes(found)["detect"] == 0.5


def test_a_batch_that_outlives_a_fault_does_its_lost_work_again():
    usual = UndisturbedPace(rate=1000 / (8 * NS))
    survived = outlived(0, 4, 4.2)
    found = ledger((0, 12 * NS), [batch(0, 0, 12)], [survived], usual, INTERVAL_NS)
    assert classes(found) == {"lost": 3, "useful": 8, "checkpoint": 1}


def test_what_a_batch_lost_to_a_fault_that_it_outlived_comes_after_it_and_evenly():
    """Of the 7 s from 4 to 11 three are lost, also where the window cuts them: of 2.5 s until 6.5 this is 15/14 s."""
    usual, survived = UndisturbedPace(rate=1000 / (8 * NS)), outlived(0, 4, 4.2)
    first, rest = ((0, 6.5), (6.5, 12))
    found = [
        classes(ledger((round(start * NS), round(end * NS)), [batch(0, 0, 12)], [survived], usual, INTERVAL_NS))
        for start, end in (first, rest)
    ]
    assert found[0] == pytest.approx({"useful": 6.5 - 15 / 14, "lost": 15 / 14})
    assert found[1] == pytest.approx({"lost": 3 - 15 / 14, "useful": 4.5 - 3 + 15 / 14, "checkpoint": 1})


def test_what_a_batch_takes_longer_that_warms_up_and_outlives_a_fault_comes_evenly():
    """It takes 7 s of 15 s longer than usual: of its first 5 s in the window this is a third of that."""
    usual, made = UndisturbedPace(rate=1000 / (8 * NS)), [batch(0, 0, 9), batch(1, 9, 25)]
    cuts = [outlived(0, 4, 4.1), outlived(1, 12, 12.1)]
    found = classes(ledger((9 * NS, 14 * NS), made, cuts, usual, INTERVAL_NS))
    assert found == pytest.approx({"warm-up": 7 / 3, "useful": 8 / 3})


def test_a_batch_that_was_slow_before_a_host_died_lost_no_more_than_its_time():
    usual, survived = UndisturbedPace(rate=1000 / (8 * NS)), outlived(0, 10.5, 10.6)
    found = ledger((0, 12 * NS), [batch(0, 0, 12)], [survived], usual, INTERVAL_NS)
    assert classes(found) == {"lost": 3, "useful": 8, "checkpoint": 1}


@pytest.mark.parametrize(("death_s", "seen_s"), [(7, 7.3), (9, 9.3), (9, 14)], ids=["amid", "between", "unnoticed"])
def test_a_query_that_goes_on_waits_for_its_next_batch_as_ever(death_s, seen_s):
    """The trigger is due every 6 s, and a batch takes 2 s: so it is idle from 8 to 12, whoever has died."""
    made = [batch(number, start, start + 2, 0.5) for number, start in enumerate((0, 6, 12, 18))]
    found = ledger((0, 20 * NS), made, [outlived(0, death_s, seen_s)], None, 6 * NS)
    assert classes(found) == {"useful": 4 * 1.5, "checkpoint": 4 * 0.5, "idle": 3 * 4}


def test_after_a_death_between_batches_the_next_one_is_cold():
    usual, made = (
        UndisturbedPace(rate=1000 / (1.5 * NS)),
        [batch(0, 0, 2, 0.5), batch(1, 6, 9, 0.5), batch(2, 12, 14, 0.5)],
    )
    found = ledger((0, 14 * NS), made, [outlived(0, 4, 4.2)], usual, 6 * NS)
    assert classes(found) == pytest.approx({"useful": 4.5, "warm-up": 1, "checkpoint": 1.5, "idle": 4 + 3})


def test_every_batch_without_a_host_loses_what_that_would_have_done():
    """The host is back at 45. All batches until then take 12 s instead of 9, and so does the one that it is cold in."""
    spans = [(0, 9), (10, 19), (20, 32), (32, 44), (44, 56), (56, 65), (66, 75)]
    made = [batch(number, *span) for number, span in enumerate(spans)]
    (away,) = with_hosts_back([outlived(0, 19.5, 20)], [(round(19.5 * NS), 45 * NS), (70 * NS, 75 * NS)])
    assert away.back_ns == 45 * NS
    assert [b.batch for b in steady(made, [away])] == [0, 1, 6]
    usual = pace(steady(made, [away]), real_time=False)
    found = ledger((0, 75 * NS), made, [away], usual, INTERVAL_NS)
    assert classes(found) == pytest.approx({"useful": 7 * 8, "lost": 3 * 3, "checkpoint": 7, "idle": 3})
    assert {segment.fault for segment in found if segment.kind == "lost"} == {0}


@pytest.mark.parametrize(("back_s", "warmed"), [(None, (1, 1)), (10, (1, 1)), (12, (2, 3)), (20, (2, 3)), (30, (3, 2))])
def test_the_first_batch_that_begins_with_a_cold_executor_warms_up(back_s, warmed):
    """The host died at 9.5 between batches. Whoever is slow without a host that is away has lost that time."""
    made = [batch(number, start, start + length) for number, (start, length) in enumerate(COLD_LATER)]
    away = [] if back_s is None else [(round(9.5 * NS), back_s * NS)]
    cut = with_hosts_back([outlived(0, 9.5, 9.6)], away)
    found = ledger((0, 60 * NS), made, cut, UndisturbedPace(rate=1000 / (8 * NS)), INTERVAL_NS)
    (warm,) = (each for each in found if each.kind == "warm-up")
    assert (warm.batch, round((warm.end_ns - warm.start_ns) / NS, 6), warm.fault) == (*warmed, 0)


def test_a_batch_that_lacks_one_host_as_another_is_back_loses_its_time():
    """Of two hosts that died before batch 1, one is back before batch 2, and the other before batch 4."""
    made = [batch(number, start, start + length) for number, (start, length) in enumerate(COLD_LATER)]
    away = [(round(9.2 * NS), 20 * NS), (round(9.5 * NS), 43 * NS)]
    cuts = with_hosts_back([outlived(0, 9.2, 9.3), outlived(1, 9.5, 9.6)], away)
    found = ledger((0, 60 * NS), made, cuts, UndisturbedPace(rate=1000 / (8 * NS)), INTERVAL_NS)
    assert classes(found)["lost"] == pytest.approx(1 + 3 + 2)
    assert "warm-up" not in classes(found)


def test_of_two_absent_hosts_the_batch_is_the_one_s_that_died_last():
    made = [batch(number, start, start + 9 + 3 * (number > 0)) for number, start in enumerate((0, 10, 22, 34))]
    cuts = with_hosts_back(
        [outlived(0, 9.2, 9.3), outlived(1, 9.5, 9.6)], [(round(9.2 * NS), 20 * NS), (round(9.5 * NS), 30 * NS)]
    )
    found = ledger((0, 34 * NS), made, cuts, UndisturbedPace(rate=1000 / (8 * NS)), INTERVAL_NS)
    assert classes(found) == pytest.approx({"useful": 3 * 8, "lost": 2 * 3, "checkpoint": 3, "idle": 1})
    assert {segment.fault for segment in found if segment.kind == "lost"} == {1}


def test_a_cold_batch_in_which_another_host_dies_loses_its_time_to_that():
    """A died at 5 and is back at 15. Batch 2 has its cold executor, and B dies in it at 26 and is back at 37."""
    made = [batch(number, *span) for number, span in enumerate([(0, 9), (10, 22), (22, 38)])]
    away = [(5 * NS, 15 * NS), (26 * NS, 37 * NS)]
    cuts = with_hosts_back([outlived(0, 5, 5.1), outlived(1, 26, 26.1)], away)
    found = ledger((0, 38 * NS), made, cuts, UndisturbedPace(rate=1000 / (8 * NS)), INTERVAL_NS)
    booked = {(each.kind, each.fault): each.end_ns - each.start_ns for each in found if each.fault is not None}
    assert {key: round(ns / NS, 6) for key, ns in booked.items() if ns} == {("lost", 0): 3.0, ("lost", 1): 7.0}


def test_a_query_that_goes_on_and_then_fails_was_idle_until_its_next_batch_was_due():
    """Host 0 died at 10 between batches. The next one was due at 20, and cut off at 23."""
    made = [batch(0, 0, 9), batch(1, 30, 39)]
    found = ledger((0, 39 * NS), made, [outlived(0, 10, 10.2), outage(1, 23, 24, 30)], None, 20 * NS)
    assert classes(found) == {"useful": 16, "checkpoint": 2, "idle": 20 - 9, "lost": 3, "detect": 1, "restart": 6}


def test_what_a_restarted_query_did_until_it_failed_again_is_lost_also_if_a_host_died_amid_it():
    """It ran again at 30, went on when a host died at 31, and failed at 50 before any commit."""
    cuts = [outage(0, 12, 13, 30), outlived(1, 31, 31.5), outage(2, 50, 51, 60)]
    found = ledger((0, 69 * NS), [batch(0, 0, 9), batch(1, 60, 69)], cuts, None, INTERVAL_NS)
    assert classes(found) == {"useful": 16, "checkpoint": 2, "idle": 1, "lost": 22, "detect": 2, "restart": 26}
    assert all(a.end_ns == b.start_ns for a, b in itertools.pairwise(found))


def test_whether_hosts_are_back_matters_only_where_the_query_went_on():
    down = outage(0, 10, 11, 20)
    assert with_hosts_back([down], [(10 * NS, 30 * NS)]) == [down]
    assert with_hosts_back([outlived(0, 10, 11)], [(12 * NS, 30 * NS)]) == [outlived(0, 10, 11)]


def test_a_query_that_never_comes_back_is_restarting_until_the_end():
    found = ledger((0, 30 * NS), [batch(0, 0, 9)], [outage(0, 12, 13, None)], None, INTERVAL_NS)
    assert classes(found) == {"useful": 8, "checkpoint": 1, "idle": 1, "lost": 2, "detect": 1, "restart": 17}


@st.composite
def timelines(draw):
    """Batches and outages as they alternate in a run, in milliseconds of any length."""
    at, number, made, cuts = draw(st.integers(0, 20_000)), 0, [], []
    for fault in range(draw(st.integers(0, 5))):
        for _ in range(draw(st.integers(0, 4))):
            length = draw(st.integers(1, 30_000))
            made.append(batch(number, at / 1e3, (at + length) / 1e3, draw(st.integers(0, length)) / 1e3))
            at, number = at + length + draw(st.integers(0, 5_000)), number + 1
        death = at + draw(st.integers(-1, 9_000))
        notice = death + draw(st.integers(0, 2_000))
        ready = notice + draw(st.integers(0, 20_000))
        if draw(st.booleans()):
            cuts.append(outlived(fault, death / 1e3, ready / 1e3))
        else:
            cuts.append(outage(fault, death / 1e3, notice / 1e3, ready / 1e3))
        at = max(at, ready) + draw(st.integers(0, 500))
    return made, cuts


@given(timelines(), st.integers(0, 60), st.integers(1, 120), st.booleans())
def test_the_classes_add_up_to_the_window_exactly(timeline, start_s, length_s, with_pace):
    made, cuts = timeline
    usual = UndisturbedPace(rate=1000 / (8 * NS)) if with_pace else None
    window = (start_s * NS, (start_s + length_s) * NS)
    found = ledger(window, made, cuts, usual, INTERVAL_NS)
    assert found[0].start_ns == window[0]
    assert found[-1].end_ns == window[1]
    assert all(a.end_ns == b.start_ns for a, b in itertools.pairwise(found))


def test_the_usual_pace_is_that_of_undisturbed_batches():
    made = [batch(0, 0, 9), batch(1, 10, 19), batch(2, 30, 49), batch(3, 49, 58), batch(4, 58, 59, records=0)]
    quiet = steady(made, [outage(0, 22, 23, 30)])
    assert [b.batch for b in quiet] == [0, 1, 3]
    assert pace(quiet, real_time=False).rate == pytest.approx(1000 / (8 * NS))
    assert pace(quiet[:1], real_time=False) is None


def test_a_batch_that_was_all_checkpoint_tells_no_pace():
    quiet, stalled = [batch(0, 0, 9), batch(1, 10, 19)], batch(2, 20, 29, checkpoint_s=9.0)
    assert pace([*quiet, stalled], real_time=False) == pace(quiet, real_time=False)
    assert pace([quiet[0], stalled], real_time=False) is None


def test_by_task_neither_a_batch_that_outlived_a_death_nor_the_next_one_is_undisturbed():
    """The death at 12 was noticed at once, and the batch went on; the host came back in the next one, or after it."""
    made = [batch(0, 0, 9), batch(1, 10, 22), batch(2, 22, 33), batch(3, 33, 42), batch(4, 42, 51)]
    quiet = steady(made, [outlived(0, 12, 12.1)])
    assert [b.batch for b in quiet] == [0, 3, 4]
    assert pace(quiet, real_time=False).rate == pytest.approx(1000 / (8 * NS))


def test_a_real_time_batch_takes_its_set_length_whatever_its_records():
    usual = pace([batch(0, 0, 6), batch(1, 6, 12, records=20), batch(2, 12, 18, records=700)], real_time=True)
    assert usual.rate is None
    assert usual.excess_ns(batch(3, 20, 26, records=9000)) == 0
    assert usual.excess_ns(batch(3, 20, 27.5, records=9000)) == round(1.5 * NS)
    assert pace([batch(0, 0, 6)], real_time=True) is None


def test_real_time_batches_follow_at_once_and_one_that_a_fault_cuts_off_is_lost_from_its_start():
    # T is 10 s of processing; batch 3 started at 33, the host died at 40, the query ran again at 45
    made = [batch(0, 0, 11), batch(1, 11, 22), batch(2, 22, 33), batch(3, 45, 57), batch(4, 57, 68)]
    cut = [outage(0, 40, 41, 45)]
    found = ledger((0, 68 * NS), made, cut, pace(steady(made, cut), real_time=True), INTERVAL_NS)
    assert classes(found) == {"useful": 50, "checkpoint": 5, "lost": 7, "detect": 1, "restart": 4, "warm-up": 1}


def test_a_fault_before_the_restart_extends_the_outage():
    events = [
        (10, MomentKind.DEATH, 0),
        (11, MomentKind.NOTICE, None),
        (14, MomentKind.DEATH, 1),
        (20, MomentKind.READY, None),
    ]
    found = outages([Moment(at * NS, kind, fault) for at, kind, fault in events])
    assert found == [outage(0, 10, 11, 20, faults=2)]


def test_a_fault_on_several_hosts_is_one_fault():
    """Fault 1 strikes its two hosts one after the other, the second one just before the query is ready."""
    faults = [struck(0, "kill", 10), struck(0, "kill", 10), struck(1, "kill", 14), struck(1, "kill", 19)]
    begun = [("executors-lost", 11), ("executors-lost", 15), ("ready", 20)]
    assert by_query(begun, faults) == [outage(0, 10, 11, 20, faults=2)]
    again = [("executors-lost", 21), ("ready", 35)]
    assert by_query([*begun, *again], faults) == [outage(0, 10, 11, 20, faults=2), outage(1, 20, 21, 35)]


@pytest.mark.parametrize(("noticed_s", "blamed"), [(21, 1), (29, 1), (31, None)])
def test_a_death_that_the_restarted_query_notices_only_then_begins_the_next_outage(noticed_s, blamed):
    """A host died at 19. Its executor counted as up, so the query was ready at 20, and failed."""
    query = [("executors-lost", 11), ("ready", 20), ("executors-lost", noticed_s), ("ready", 35)]
    found = by_query(query, [struck(0, "kill", 10), struck(1, "kill", 19)])
    if blamed is None:
        assert found == [outage(0, 10, 11, 20, faults=2), outage(None, noticed_s, noticed_s, 35, faults=0)]
    else:
        assert found == [outage(0, 10, 11, 20), outage(1, 20, noticed_s, 35)]


def test_all_deaths_of_which_it_did_not_know_belong_to_that_outage():
    query = [("executors-lost", 11), ("ready", 20), ("executors-lost", 21), ("ready", 35)]
    found = by_query(query, [struck(fault, "kill", at_s) for fault, at_s in enumerate((10, 18, 19))])
    assert found == [outage(0, 10, 11, 20), outage(1, 20, 21, 35, faults=2)]


def test_such_an_outage_begins_with_the_last_commit():
    query = [("executors-lost", 11), ("ready", 20), ("executors-lost", 26), ("ready", 35)]
    found = by_query(query, [struck(0, "kill", 10), struck(1, "kill", 19)], [9, 24])
    assert found == [outage(0, 10, 11, 20), outage(1, 24, 26, 35)]


def test_a_query_that_fails_by_itself_is_an_outage_without_a_fault():
    found = outages([Moment(5 * NS, MomentKind.NOTICE), Moment(9 * NS, MomentKind.READY)])
    assert found == [outage(None, 5, 5, 9, faults=0)]


def test_an_outage_that_is_still_open_has_no_end():
    assert outages([Moment(5 * NS, MomentKind.DEATH, 3)]) == [outage(3, 5, None, None)]


def test_moments_of_the_journals_by_recovery_mode():
    query = [
        ExecutorsLost(("1",), at_ns=7),
        QueryReady((), at_ns=9),
        batch_committed(10),
    ]
    injector = [example(Injected, fired_ns=5), example(Absorbed, fault=1)]
    by_query = moments(query, [], injector, RecoveryMode.QUERY, [8, 10])
    assert [m.kind for m in by_query] == [
        MomentKind.DEATH,
        MomentKind.NOTICE,
        MomentKind.COMMIT,
        MomentKind.READY,
        MomentKind.COMMIT,
    ]
    by_task = moments(query[:1], [], injector, RecoveryMode.TASK, [6])
    assert [(m.at_ns, m.kind) for m in by_task] == [(5, MomentKind.DEATH), (6, MomentKind.ALIVE), (7, MomentKind.ALIVE)]
    ended = moments([], [ProgramEnded(1, 0, at_ns=4)], [], RecoveryMode.QUERY, [])
    assert ended == [Moment(4, MomentKind.NOTICE)]


def struck(fault, kind, at_s):
    return example(Injected, fault=fault, kind=FaultKind(kind), fired_ns=at_s * NS)


def undone(kind, at_s):
    return example(Healed, at_s * NS, fault=0, kind=FaultKind(kind))


def by_query(query, injector, commits_s=()):
    """The outages in mode query from the query's events (name, second) and the injector's journal."""
    journal = [named(QUERY, name, s * NS) for name, s in query]
    return outages(moments(journal, [], injector, RecoveryMode.QUERY, [s * NS for s in commits_s]))


def test_a_fault_that_loses_no_work_and_is_never_noticed_is_no_outage():
    assert by_query([], [struck(0, "pause", 10), undone("pause", 15)], [9, 19]) == []


@pytest.mark.parametrize("kind", ["pause", "slow", "partition", "disk-full", "broker-kill", "master-kill"])
def test_a_query_that_fails_under_such_a_fault_has_been_out_since_the_fault(kind):
    failed = [("query-failed", 30), ("ready", 33)]
    assert by_query(failed, [struck(0, kind, 10), undone(kind, 60)], [9]) == [outage(0, 10, 30, 33)]


def test_until_its_last_commit_the_query_worked_whatever_was_in_force():
    failed = [("executors-lost", 40), ("ready", 45)]
    assert by_query(failed, [struck(0, "pause", 10)], [9, 19, 29]) == [outage(0, 29, 40, 45)]


def test_a_failure_soon_after_the_end_of_a_fault_is_still_its_doing_and_later_its_own():
    faults = [struck(0, "broker-kill", 10), undone("broker-kill", 14)]
    assert by_query([("query-failed", 134), ("ready", 140)], faults, [9]) == [outage(0, 10, 134, 140)]
    assert by_query([("query-failed", 135), ("ready", 140)], faults, [9]) == [outage(None, 135, 135, 140, faults=0)]


@pytest.mark.parametrize(("noticed_s", "blamed"), [(150, 0), (320, 0), (321, None)])
def test_a_fault_is_in_force_until_the_last_of_its_hosts_is_healed(noticed_s, blamed):
    faults = [struck(0, "pause", 10), struck(0, "pause", 10), undone("pause", 14), undone("pause", 200)]
    (found,) = by_query([("query-failed", noticed_s)], faults, [9])
    assert found.fault == blamed


def test_of_several_faults_in_force_the_last_one_is_to_blame_and_outages_never_overlap():
    faults = [struck(0, "slow", 10), struck(1, "kill", 20), struck(2, "broker-kill", 50)]
    query = [("executors-lost", 21), ("ready", 25), ("query-failed", 30), ("ready", 35), ("query-failed", 60)]
    assert by_query(query, faults) == [outage(1, 20, 21, 25), outage(0, 25, 30, 35), outage(2, 50, 60, None)]


def test_the_death_of_the_query_driver_is_an_outage_until_it_is_ready_again():
    dead = [ProgramEnded(1, 0, at_ns=11 * NS)]
    again = [QueryReady((), at_ns=30 * NS)]
    found = moments(again, dead, [struck(0, "driver-kill", 10)], RecoveryMode.QUERY, [])
    assert outages(found) == [outage(0, 10, 11, 30)]


def by_task(query, deaths_s, commits_s=()):
    """The outages in mode task from the query's events (name, second), with deaths of faults 0, 1, ..."""
    injector = [struck(fault, "kill", s) for fault, s in enumerate(deaths_s)]
    journal = [named(QUERY, name, s * NS) for name, s in query]
    return outages(moments(journal, [], injector, RecoveryMode.TASK, [s * NS for s in commits_s]))


def test_by_task_a_death_that_nobody_notices_ends_with_the_next_commit():
    # fault 1 kills a healed host before its executor has registered: only fault 2 is noticed again, at 61
    query = [("executors-lost", 11), ("executors-lost", 61)]
    made = [batch(n, s, s + 9) for n, s in enumerate(range(0, 70, 10))]
    found = by_task(query, [10, 15, 60], [b.ended_ns // NS for b in made])
    assert found == [outlived(0, 10, 11), outlived(1, 15, 19), outlived(2, 60, 61)]
    spent = classes(ledger((0, 70 * NS), made, found, pace(steady(made, found), real_time=False), INTERVAL_NS))
    assert spent == {"useful": 7 * 8, "checkpoint": 7, "idle": 7}  # all batches were committed, none took longer


def test_by_task_a_second_notice_is_no_outage():
    assert by_task([("executors-lost", 12), ("executors-lost", 13)], [10, 11]) == [outlived(0, 10, 12, faults=2)]


def test_by_task_a_query_that_failed_is_down_until_it_is_ready():
    query = [("query-failed", 12), ("ready", 15)]
    assert by_task(query, [10], [9, 19]) == [outage(0, 10, 12, 15)]


def test_phases_of_a_recovery():
    made, cuts = [batch(0, 0, 9), batch(1, 22, 34), batch(2, 34, 43)], [outage(0, 16, 16.5, 22)]
    usual = UndisturbedPace(rate=1000 / (8 * NS))
    segments = ledger((0, 43 * NS), made, cuts, usual, INTERVAL_NS)
    (found,) = recoveries(cuts, by(made, segments, usual), made, steady(made, cuts), None)
    row = found.row(0)
    assert set(row) == set(RUN_TABLES["recoveries"].by_name)
    assert (row["fault"], row["faults"]) == (0, 1)
    assert (row["detect_s"], row["restart_s"], row["restore_s"]) == (0.5, pytest.approx(8.5), pytest.approx(9))
    assert (row["catch_up_s"], row["executor_s"]) == (None, None)
    assert row["lost_s"] == pytest.approx(6)


@pytest.mark.parametrize("began_s", [21.98, 22, 22.5])
def test_a_recovery_has_the_warm_up_of_the_ledger_whenever_its_first_batch_began(began_s):
    """Spark may begin it a moment before the driver journals that the query is ready, at 22 s."""
    made, cuts = [batch(0, 0, 9), batch(1, began_s, 34), batch(2, 34, 43)], [outage(0, 16, 16.5, 22)]
    usual = UndisturbedPace(rate=1000 / (8 * NS))
    segments = ledger((0, 43 * NS), made, cuts, usual, INTERVAL_NS)
    (found,) = recoveries(cuts, by(made, segments, usual), made, steady(made, cuts), None)
    down_s = sum(classes(segments)[kind] for kind in ("detect", "restart", "warm-up"))
    assert down_s == pytest.approx(6 + 3, abs=0.05)
    assert found.row(0)["detect_s"] + found.row(0)["restart_s"] == pytest.approx(down_s)


def test_a_first_batch_without_records_ends_the_recovery_where_the_ledger_ends_it():
    """A query that had nothing to read when the fault struck is ready long before the next input comes."""
    made, cuts = [batch(0, 0, 9), batch(1, 22, 24, 0.5, records=0), batch(2, 31, 43)], [outage(0, 16, 16.5, 22)]
    usual = UndisturbedPace(rate=1000 / (8 * NS))
    segments = ledger((0, 43 * NS), made, cuts, usual, INTERVAL_NS)
    (found,) = recoveries(cuts, by(made, segments, usual), made, steady(made, cuts), None)
    assert (found.ready_ns, found.restored_ns) == (23.5 * NS, 24 * NS)
    spent = classes(segments)
    down_s = spent["detect"] + spent["restart"] + spent["warm-up"]
    assert found.row(0)["detect_s"] + found.row(0)["restart_s"] == pytest.approx(down_s)
    assert [b.batch for b in steady(made, cuts)] == [0], "batch 2 runs on executors that have processed no record"


@pytest.mark.parametrize("fault", [None, 3], ids=["no known fault", "a pause"])
def test_what_was_lost_is_counted_once_if_two_outages_have_one_fault(fault):
    made = [batch(0, 0, 9), batch(1, 22, 31), batch(2, 31, 40), batch(3, 55, 64)]
    cuts = [outage(fault, 16, 16, 22), outage(fault, 44, 44, 55)]
    segments = ledger((0, 64 * NS), made, cuts, None, INTERVAL_NS)
    found = recoveries(
        cuts, lambda cut: by_batches(cut, made, lost_to(cut, cuts, segments), None), made, steady(made, cuts), None
    )
    assert [each.lost_s for each in found] == [6, 4]
    assert classes(segments)["lost"] == 6 + 4


def test_an_outage_has_what_was_lost_to_any_of_its_faults_and_no_other_has_that():
    """Where partitions are lost one by one, the ledger names the fault of each."""

    def lost(fault, start_s, end_s):
        return LedgerSegment(start_s * NS, end_s * NS, LedgerClass.LOST, fault=fault)

    first = replace(outage(0, 16, 17, 22, faults=2), others=frozenset({1}))
    second = replace(outage(2, 30, 31, 36, faults=2), others=frozenset({1}))
    segments = [lost(0, 10, 16), lost(1, 17, 19), lost(1, 28, 29), lost(2, 29, 30), lost(3, 31, 40)]
    assert [lost_to(cut, [first, second], segments) for cut in (first, second)] == [8 * NS, 2 * NS]


def test_a_rack_that_is_noticed_host_by_host_loses_its_work_once():
    """By task, each host begins an outage of its own, with the fault of the rack."""
    usual, made = UndisturbedPace(rate=1000 / (8 * NS)), [batch(0, 0, 12)]
    cuts = [outlived(0, 4, 4.2), outlived(0, 4.5, 4.7)]
    segments = ledger((0, 12 * NS), made, cuts, usual, INTERVAL_NS)
    assert sum(lost_to(cut, cuts, segments) for cut in cuts) == classes(segments)["lost"] * NS == 3 * NS


def test_a_fault_before_the_progress_is_restored_extends_the_recovery():
    cuts = [outage(0, 16, 16.5, 22), outage(1, 25, 25.5, 30)]
    (found,) = recoveries(cuts, by([batch(0, 0, 9), batch(1, 30, 39)]), [], [], None)
    assert (found.faults, found.death_ns, found.notice_ns) == (2, 16 * NS, round(16.5 * NS))
    assert (found.ready_ns, found.restored_ns) == (30 * NS, 39 * NS)


@pytest.mark.parametrize(("fault", "faults"), [(0, 1), (1, 2), (None, 1)])
def test_a_fault_that_begins_two_outages_of_a_recovery_counts_once(fault, faults):
    cuts = [outage(0, 16, 16.5, 22), outage(fault, 25, 25.5, 30, faults=int(fault is not None))]
    (found,) = recoveries(cuts, by([batch(0, 0, 9), batch(1, 30, 39)]), [], [], None)
    assert found.faults == faults


@pytest.mark.parametrize(
    ("strikes", "faults"),
    [
        ([(16, 0), (17, 4), (23, 4)], 2),
        ([(16, 0), (17, 4), (23, 5), (23, 4)], 3),
        ([(16, 0), (17, 0), (23, 5), (23, 6)], 3),
        ([(16, 0), (17, 4), (23, 5), (23, 0), (31, 4)], 3),
    ],
)
def test_a_fault_that_strikes_in_several_outages_of_a_recovery_counts_once(strikes, faults):
    """A fault on several hosts may strike one of them late: after the query has restarted without the others."""
    restarts = [(18, MomentKind.NOTICE), (22, MomentKind.READY), (24, MomentKind.NOTICE), (30, MomentKind.READY)]
    restarts += [(32, MomentKind.NOTICE), (35, MomentKind.READY)] if strikes[-1][0] > 30 else []
    told = [Moment(at_s * NS, MomentKind.DEATH, fault) for at_s, fault in strikes]
    told += [Moment(at_s * NS, kind) for at_s, kind in restarts]
    cuts = outages(sorted(told, key=lambda moment: (moment.at_ns, moment.kind)))
    (found,) = recoveries(cuts, by([batch(0, 0, 9), batch(1, 36, 45)]), [], [], None)
    assert found.faults == faults


@pytest.mark.parametrize(("first", "second", "last"), [(20, 28, 28), (20, None, 20), (None, 28, 28)])
def test_an_extended_recovery_waits_for_the_last_executor(first, second, last):
    up = {0: first, 1: second}
    cuts = [outage(0, 16, 16.5, 22), outage(1, 25, 25.5, 30)]
    alone = by([batch(0, 0, 9), batch(1, 30, 39)])

    def follow(cut):
        at_s = up[cut.fault]
        return replace(alone(cut), executor_ns=None if at_s is None else at_s * NS)

    (found,) = recoveries(cuts, follow, [], [], None)
    assert found.row(0)["executor_s"] == last - 16.5


def test_catch_up_ends_when_the_lag_is_back_in_its_band():
    made = [batch(0, 0, 9), batch(1, 22, 31), batch(2, 31, 40), batch(3, 40, 49)]
    lags = {9: 100.0, 31: 900.0, 40: 400.0, 49: 80.0}
    cuts = [outage(0, 16, 16.5, 22)]
    (found,) = recoveries(cuts, by(made), made, steady(made, cuts), lambda at_ns: lags[at_ns // NS])
    assert found.normal_ns == 49 * NS


def test_the_lag_of_a_cold_start_is_not_normal():
    # the window begins at 10: the backlog at 9 is that of the start
    made = [batch(0, 0, 9), batch(1, 10, 19), batch(2, 32, 41), batch(3, 41, 50), batch(4, 50, 59)]
    lags = {9: 5000.0, 19: 100.0, 41: 900.0, 50: 400.0, 59: 80.0}
    cuts = [outage(0, 26, 26.5, 32)]
    for undisturbed, normal_ns in (([made[1], made[4]], 59 * NS), ([made[4]], None)):
        (found,) = recoveries(cuts, by(made), made, undisturbed, lambda at_ns: lags[at_ns // NS])
        assert found.normal_ns == normal_ns
