"""What a spec implies, by hand and against long plans; what a plan holds, by hand."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaos.implications import PlanToll, Toll, drawn, implied
from chaos.plan import plan
from experiments.errors import BadInput
from experiments.faults import FaultSpec

HOSTS = {"a": ("rack-1", "row"), "b": ("rack-1", "row"), "c": ("rack-2", "row")}


def spec(*processes, duration=1000.0, hosts=HOSTS, events=()) -> FaultSpec:
    document = {"duration": duration, "hosts": hosts, "processes": processes, "events": events}
    return FaultSpec.model_validate(document)


def test_independent_hosts():
    toll = implied(spec({"rate": 0.01, "heal_after": {"low": 10, "high": 30}}))
    assert toll == Toll(pytest.approx(0.03), pytest.approx(0.03), 0.0, pytest.approx(3 * (1 - math.exp(-0.01 * 20))))


def test_a_host_that_several_clocks_hold_is_down_once():
    processes = {"rate": 0.01, "heal_after": 20}, {"scope": "domain", "rate": 0.002, "heal_after": 50}
    toll = implied(spec(*processes, {"scope": "cluster", "rate": 0.001, "heal_after": 100}))
    held = 0.2 + 2 * 0.1 + 0.1  # every host has its own clock, a rack's and the row's, and the cluster's
    assert toll.hosts_down == pytest.approx(3 * (1 - math.exp(-held)))
    assert toll.failure_rate == pytest.approx(3 * 0.01 + 3 * 0.002 + 0.001)
    strikes = 3 * 0.01 + 0.002 * (2 + 1 + 3) + 0.001 * 3
    assert toll.host_failure_rate == pytest.approx(strikes)
    assert toll.correlated_share == pytest.approx((0.002 * (2 + 3) + 0.003) / strikes)  # rack-2 has one host


def test_a_spread_changes_the_events_but_no_hosts_failures():
    at_once, spread = (implied(spec({"scope": "domain", "rate": 0.01, "spread": s, "heal_after": 5})) for s in (0, 60))
    assert (at_once.failure_rate, spread.failure_rate) == (pytest.approx(0.03), pytest.approx(0.06))
    assert at_once.host_failure_rate == spread.host_failure_rate == pytest.approx(0.06)
    assert at_once.correlated_share == spread.correlated_share == pytest.approx(5 / 6)
    assert at_once.hosts_down == spread.hosts_down


def test_listed_faults_hold_their_hosts_for_the_time_that_they_say():
    events = [{"at": 100, "targets": ["a", "b"], "heal_after": 200}, {"at": 200, "targets": ["a"], "heal_after": 300}]
    toll = implied(spec({"rate": 0.001, "heal_after": 50}, events=events))
    up = math.exp(-0.05)
    assert toll.hosts_down == pytest.approx((1 - 0.6 * up) + (1 - 0.8 * up) + (1 - up))
    assert toll.failure_rate == pytest.approx(0.003 + 0.002)
    assert toll.correlated_share == pytest.approx(0.002 / (0.003 + 0.003))


def test_nothing_implies_nothing():
    assert implied(spec()) == Toll(0.0, 0.0, None, 0.0)
    assert drawn(spec(), []) == PlanToll(0.0, 0.0, None, 0.0, 0, 0, 0, 0)


def test_the_toll_of_a_plan_by_hand():
    events = [
        {"at": 100, "targets": ["a", "b"], "heal_after": 200},
        {"at": 200, "targets": ["a"], "heal_after": 300},
        {"at": 990, "targets": ["c"], "heal_after": 50},  # the end is at 1000
    ]
    law = spec(events=events)
    down = (400 + 200 + 10) / 1000
    toll = drawn(law, plan(law, 1))
    assert toll == PlanToll(
        0.003, 0.004, 0.5, pytest.approx(down), absorbed=1, withheld=0, most_hosts_down=2, late_heals=1
    )


def test_a_burst_counts_as_correlated_though_its_events_strike_one_host_each():
    law = spec({"scope": "domain", "domains": ["row"], "rate": 0.01, "spread": 5}, {"rate": 0.01})
    events = plan(law, seed=2)
    bursts = sum("row" in event.cause for event in events)
    assert drawn(law, events).correlated_share == bursts / len(events)
    assert implied(law).correlated_share == pytest.approx(0.5)


def test_host_figures_count_the_kinds_that_strike_hosts():
    """Slow hosts and full disks are struck, but stay in service; services are no hosts."""
    lasting = {"rate": 0.01, "heal_after": 20}
    slow, full = {"kind": "slow", "cpu_share": 0.5, **lasting}, {"kind": "disk-full", **lasting}
    law = spec(slow, full, {"kind": "broker-kill", "rate": 0.05, "heal_after": 50}, {"kind": "pause", **lasting})
    toll = implied(law)
    assert toll.failure_rate == pytest.approx(3 * 3 * 0.01 + 0.05)
    assert toll.host_failure_rate == pytest.approx(3 * 3 * 0.01)
    assert toll.hosts_down == pytest.approx(3 * (1 - math.exp(-0.01 * 20)))
    events = plan(law, seed=3)
    found, of_services = drawn(law, events), sum(event.kind.service is not None for event in events)
    assert of_services > 20
    assert found.host_failure_rate == (len(events) - of_services) / 1000
    assert drawn(law, [event for event in events if event.kind != "pause"]).hosts_down == 0


def test_a_plan_withholds_what_is_beyond_max_down():
    events = [{"at": at, "targets": ["a", "b"], "heal_after": 100, "kind": "pause"} for at in (0, 200)]
    free = spec(events=[*events, {"at": 210, "targets": ["c"], "heal_after": 10}])
    limited = free.model_copy(update={"max_down": 1})
    ample = free.model_copy(update={"max_down": 99})
    assert drawn(free, plan(free, 1)) == drawn(ample, plan(ample, 1))
    toll = drawn(limited, plan(limited, 1))
    assert (toll.withheld, toll.absorbed, toll.most_hosts_down) == (3, 0, 1)
    assert toll.hosts_down == pytest.approx(0.2)


def test_a_pause_beside_losses_is_shorter_than_holds_that_add_up():
    """A pause is absorbed by a loss and ended by it, so with mixed kinds the implied figure is an upper bound.

    A host that is not lost has been so since its last return, for an exponential time of mean 1 / rate of losses; it is
    paused if a pause struck since then and still lasts. The integral of that is what long plans hold.
    """
    loss, pause, lost_s, paused_s = 0.01, 0.012, 40.0, 30.0
    law = spec(
        {"rate": loss, "heal_after": lost_s},
        {"kind": "pause", "rate": pause, "heal_after": paused_s},
        duration=200_000.0,
        hosts={"a": ()},
    )
    steps = 50_000
    ages = ((step + 0.5) * 20 / loss / steps for step in range(steps))
    free = sum(loss * math.exp(-loss * age - pause * min(age, paused_s)) for age in ages) * 20 / loss / steps
    exact = 1 - math.exp(-loss * lost_s) * free
    toll = implied(law)
    tolls = [drawn(law, plan(law, seed)).hosts_down for seed in range(6)]
    mean = sum(tolls) / len(tolls)
    error = math.sqrt(sum((value - mean) ** 2 for value in tolls) / (len(tolls) - 1) / len(tolls))
    assert abs(mean - exact) < 4 * error < 0.02
    assert 1 - math.exp(-loss * lost_s) < exact < toll.hosts_down
    assert toll.hosts_down - exact < loss * lost_s * pause * paused_s


@pytest.mark.extended
@pytest.mark.parametrize(
    "processes",
    [
        [{"rate": 0.01, "heal_after": {"low": 10, "high": 50}}],
        [{"rate": 0.01, "heal_after": 60}, {"scope": "domain", "rate": 0.005, "spread": 40, "heal_after": 90}],
        [{"scope": "cluster", "rate": 0.004, "heal_after": 100}, {"scope": "domain", "rate": 0.003, "heal_after": 30}],
        [{"rate": 0.004}, {"kind": "power-off", "rate": 0.004, "heal_after": {"median": 50, "sigma": 1}}],
        [{"kind": "partition", "rate": 0.01, "heal_after": 60}, {"kind": "driver-kill", "rate": 0.01}],
    ],
    ids=["hosts", "bursts", "cluster", "a cloud's delays", "partitions"],
)
def test_a_long_plan_holds_what_its_laws_imply(processes):
    """Twenty windows of 2,000 mean holds each; edges of the window are a thousandth of it."""
    law = spec(*processes, duration=100_000.0)
    expected = implied(law)
    tolls = [drawn(law, plan(law, seed)) for seed in range(20)]
    for name in ("failure_rate", "host_failure_rate", "correlated_share", "hosts_down"):
        found = [getattr(toll, name) for toll in tolls]
        mean = sum(found) / len(found)
        error = math.sqrt(sum((value - mean) ** 2 for value in found) / (len(found) - 1) / len(found))
        assert abs(mean - getattr(expected, name)) <= 4 * error + 2e-3 * getattr(expected, name), name


@settings(max_examples=60, deadline=None)
@given(st.floats(1e-9, 10), st.floats(1e-9, 10), st.floats(0, 1e6), st.integers(0, 5))
def test_shares_and_means_stay_within_their_bounds(per_host, per_domain, heal_after, listed):
    events = [{"at": i, "targets": ["a", "c"], "heal_after": heal_after} for i in range(listed)]
    processes = {"rate": per_host, "heal_after": heal_after}, {"scope": "domain", "rate": per_domain}
    toll = implied(spec(*processes, events=events))
    assert 0 <= toll.hosts_down <= len(HOSTS)
    assert 0 < toll.correlated_share < 1
    assert toll.failure_rate <= toll.host_failure_rate


def test_a_spec_without_a_duration_implies_nothing():
    with pytest.raises(BadInput, match="duration"):
        implied(FaultSpec(hosts={"a": ()}, processes=({"rate": 1},)))
