"""Overlapping faults: a host is up only when no fault holds it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaos.composition import Composition, HostOutage, compose, down_shares, most_down
from chaos.events import FaultEvent
from experiments.fault_kinds import FaultKind


def outage_of(host, start_s, end_s, faults):
    return HostOutage(host, FaultKind.KILL, start_s, end_s, faults)


def fault(at, heal_after, *targets):
    return FaultEvent(at, "test", targets or ("a",), FaultKind.KILL, heal_after)


@pytest.mark.parametrize(
    ("faults", "outages"),
    [
        ([fault(1, 2)], [(1, 3, (0,))]),
        ([fault(1, 2), fault(5, 1)], [(1, 3, (0,)), (5, 6, (1,))]),
        ([fault(1, 9), fault(2, 1)], [(1, 10, (0, 1))]),  # the shorter hold ends within the longer one
        ([fault(1, 2), fault(2, 9)], [(1, 11, (0, 1))]),  # the heal of the first revives nothing
        ([fault(1, 2), fault(2, 2), fault(3, 2), fault(5, 1)], [(1, 6, (0, 1, 2, 3))]),  # a host is not back at once
        ([fault(1, 2), fault(1, 4)], [(1, 5, (0, 1))]),
        ([fault(1, 0), fault(1, 0)], [(1, 1, (0, 1))]),
        ([fault(0.7, 0.1), fault(0.8, 1)], [(0.7, 1.8, (0, 1))]),  # one moment, though .7 + .1 is below .8 in binary
    ],
    ids=["one", "apart", "within", "extends", "chain", "one moment", "without delay", "microseconds"],
)
def test_the_outages_of_one_host(faults, outages):
    assert compose(faults).outages == [outage_of("a", *outage) for outage in outages]


def test_a_fault_can_strike_one_host_and_be_absorbed_by_another():
    made = compose([fault(0, 10, "a"), fault(4, 2, "a", "b"), fault(20, 1, "b")])
    assert made.outages == [
        outage_of("a", 0, 10, (0, 1)), outage_of("b", 4, 6, (1,)), outage_of("b", 20, 21, (2,))
    ]  # fmt: skip
    assert (made.absorbed, made.withheld, made.struck) == ([(1, "a")], [], {(0, "a"), (1, "b"), (2, "b")})
    assert most_down(made) == 2
    assert down_shares(made, 20.5) == {"a": 10 / 20.5, "b": 2.5 / 20.5}  # what outlasts the duration is cut


def test_a_host_that_returns_as_another_is_struck_counts_no_more():
    assert most_down(compose([fault(0, 5, "a"), fault(5, 5, "b")])) == 1


def test_no_fault_no_outage():
    assert compose([]) == Composition([], [], [])
    assert most_down(compose([])) == 0


faults = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 12), st.sets(st.sampled_from("abc"), min_size=1)))


@pytest.mark.extended
@settings(max_examples=100, deadline=None)
@given(faults)
def test_composition_is_that_of_holds_second_by_second(drawn):
    events = sorted(fault(at, heal_after, *sorted(targets)) for at, heal_after, targets in drawn)
    held = {
        host: [any(e.at <= s < e.at + e.heal_after for e in events if host in e.targets) for s in range(45)]
        for host in "abc"
    }
    made = compose(events)
    for host in "abc":
        of_host = [outage for outage in made.outages if outage.host == host]
        assert [any(o.start_s <= s < o.end_s for o in of_host) for s in range(45)] == held[host]
    shares = down_shares(made, 45.0)
    assert sum(shares.values()) == pytest.approx(sum(map(sum, held.values())) / 45)
    assert most_down(made) == max(sum(at_once) for at_once in zip(*held.values(), strict=True))
    strikes = sum(len(event.targets) for event in events)
    assert len(made.absorbed) == strikes - len(made.outages)


@settings(max_examples=60, deadline=None)
@given(faults)
def test_every_strike_is_in_one_outage_of_its_host(drawn):
    events = sorted(fault(at, heal_after, *sorted(targets)) for at, heal_after, targets in drawn)
    held = [(f, outage.host) for outage in compose(events).outages for f in outage.faults]
    assert sorted(held) == sorted((number, host) for number, event in enumerate(events) for host in event.targets)
