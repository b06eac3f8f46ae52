"""The schedule of the load: when each record is due."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.schedule import Schedule

START_NS = 1_795_173_799_675_000_000
RATES = st.floats(0.1, 1e7)


def test_records_are_due_at_an_even_pace():
    schedule = Schedule(START_NS, 4.0, 3)
    start_ms = START_NS // 10**6
    assert [schedule.due_ms(p) - start_ms for p in range(5)] == [0, 250, 500, 750, 1000]
    assert schedule.due_count(START_NS + 10**9) == 4


def test_a_record_counts_as_soon_as_it_is_due():
    schedule = Schedule(START_NS, 0.5)
    assert [schedule.due_count(START_NS + round(s * 1e9)) for s in (0, 0.001, 2, 2.001, 4, 4.001)] == [0, 1, 1, 2, 2, 3]


def test_the_topics_that_take_turns_have_all_records_that_are_due_and_no_more():
    schedule = Schedule(START_NS, 10.0)
    for tenths in range(1, 40):
        now_ns = START_NS + tenths * 10**8 - 10**6
        turns = [schedule.turn(number, 3).due_count(now_ns) for number in range(3)]
        assert sum(turns) == schedule.due_count(now_ns) == tenths


def test_nothing_is_due_before_the_start():
    schedule = Schedule(START_NS, 1000.0, 1)
    assert schedule.due_count(START_NS - 5 * 10**9) == schedule.due_count(START_NS) == 0


@given(RATES, st.integers(0, 3600 * 10**9))
def test_what_is_sent_is_due_and_what_is_not_sent_is_not(rate, elapsed_ns):
    schedule, now_ns = Schedule(START_NS, rate, 3), START_NS + elapsed_ns
    count = schedule.due_count(now_ns)
    now_ms = now_ns / 1e6
    assert schedule.due_ms(max(0, count - 1)) <= now_ms
    assert schedule.due_ms(count) >= now_ms - 1, "the stamp is cut to whole milliseconds"


@given(RATES, st.integers(0, 10**9), st.integers(0, 10**6))
def test_due_times_never_go_back(rate, position, further):
    schedule = Schedule(START_NS, rate, 3)
    assert schedule.due_ms(position) <= schedule.due_ms(position + further)


@given(RATES, st.integers(0, 3600 * 10**9), st.integers(0, 10**9))
def test_the_count_over_a_time_is_rate_times_time(rate, elapsed_ns, later_ns):
    schedule = Schedule(START_NS, rate, 3)
    sent = schedule.due_count(START_NS + elapsed_ns + later_ns) - schedule.due_count(START_NS + elapsed_ns)
    assert sent == pytest.approx(rate * later_ns / 1e9, abs=1.001)


@given(RATES, RATES, st.integers(1, 3600 * 10**9), st.integers(0, 600 * 10**9), st.integers(0, 3600 * 10**9))
def test_another_rate_goes_on_where_the_schedule_ended(rate, other, length_ns, pause_ns, later_ns):
    ended = Schedule(START_NS, rate, 3).ending(START_NS + length_ns)
    sent = ended.due_count(START_NS + length_ns)
    again_ns = START_NS + length_ns + pause_ns
    assert ended.due_count(again_ns) == sent, "nothing is due after the end"
    following = ended.then(again_ns, other)
    slack = 1 + sent * 1e-9
    assert following.due_count(again_ns) == pytest.approx(sent, abs=slack)
    assert following.due_count(again_ns + later_ns) - sent == pytest.approx(other * later_ns / 1e9, abs=slack + 1e-3)
    assert following.due_ms(sent) == pytest.approx(again_ns / 1e6, abs=1.001)
    assert (following.rate, following.partitions, following.end_ns) == (other, 3, None)
