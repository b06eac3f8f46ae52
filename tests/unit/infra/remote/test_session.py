"""How far a host's clock is from ours: what is measured over trips of any shape, and what is made of it."""

import itertools
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.clocks import ClockOffset
from infra.remote.session import measure_offset
from infra.strikes.strike import Proof

MILLISECOND = 1_000_000
TRIPS = st.lists(st.tuples(st.integers(0, 50 * MILLISECOND), st.integers(0, 50 * MILLISECOND)), min_size=1, max_size=9)


@pytest.fixture
def clock(monkeypatch):
    """A clock of ours that stands still unless it is told how much time has passed."""
    now = [10**18]
    monkeypatch.setattr(time, "time_ns", lambda: now[0])
    return now


@given(ahead_ns=st.integers(-(10**12), 10**12), trips=TRIPS)
def test_the_truth_is_within_the_uncertainty(ahead_ns, trips):
    now, there_and_back = [10**18], iter(trips)

    def ask():
        out_ns, back_ns = next(there_and_back)
        now[0] += out_ns
        said = now[0] + ahead_ns
        now[0] += back_ns
        return said

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "time_ns", lambda: now[0])
        found = measure_offset(ask, pings=len(trips))
    assert abs(found.offset_ns - ahead_ns) <= found.uncertainty_ns + 1, "but for half a nanosecond of rounding"
    assert found.uncertainty_ns == min(map(sum, trips)) // 2


def test_one_trip_out_of_many_is_enough(clock):
    trips = itertools.chain([30 * MILLISECOND, 2 * MILLISECOND], itertools.repeat(40 * MILLISECOND))

    def ask():
        half = next(trips) // 2
        clock[0] += half
        said = clock[0] + 7_000 * MILLISECOND
        clock[0] += half
        return said

    assert measure_offset(ask) == ClockOffset(7_000 * MILLISECOND, MILLISECOND)


def test_moments_are_told_to_the_host_and_from_it_in_each_ones_own_time():
    ahead = ClockOffset(5 * MILLISECOND, MILLISECOND)
    assert ahead.there(100 * MILLISECOND) == 105 * MILLISECOND
    told = Proof(105 * MILLISECOND, 106 * MILLISECOND, {"a": 1}, {"b": 0})
    assert ahead.here(told) == Proof(100 * MILLISECOND, 101 * MILLISECOND, {"a": 1}, {"b": 0})


@pytest.mark.parametrize("offset_ns", [0, 99, -100])
def test_an_offset_that_may_be_none_is_taken_for_none(offset_ns):
    assert ClockOffset(offset_ns, 100).there(10**18) == 10**18
