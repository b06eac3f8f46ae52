"""Bursts: a number of hosts of a number of domains, one by one, and the best case of the same burst."""

import math

import pytest

from chaos.implications import drawn, implied
from chaos.plan import plan
from experiments.errors import BadInput
from experiments.faults import FaultSpec

HOSTS = {f"node-{i}": (f"rack-{i % 4}",) for i in range(1, 13)}
OVERLAPPING = {host: (*racks, f"power-{i % 3}") for i, (host, racks) in enumerate(HOSTS.items(), 1)}
NESTED = {
    "node-1": ("rack-a", "power-1"),
    "node-2": ("rack-a", "power-1"),
    "node-3": ("rack-b", "power-1"),
    "node-4": ("rack-c", "power-2"),
}


def spec(burst, **fields):
    return FaultSpec.model_validate({"duration": 600, "hosts": HOSTS, "bursts": [{"at": 30, **burst}], **fields})


@pytest.mark.parametrize(("hosts", "domains"), [(1, None), (3, None), (1, 1), (3, 1), (3, 2), (3, 3), (5, 4)])
def test_so_many_hosts_of_so_many_domains_die_within_the_spread(hosts, domains):
    for seed in range(20):
        events = plan(spec({"hosts": hosts, "domains": domains, "spread": 4}), seed)
        struck = {host for event in events for host in event.targets}
        assert len(struck) == len(events) == hosts
        assert domains is None or len({HOSTS[host] for host in struck}) == domains
        assert all(30 <= event.at <= 34 for event in events)


@pytest.mark.parametrize(("hosts", "domains"), [(3, 1), (3, 2), (5, 3), (6, 4), (12, 7)])
def test_so_many_hosts_die_where_domains_overlap(hosts, domains):
    for seed in range(20):
        events = plan(spec({"hosts": hosts, "domains": domains}, hosts=OVERLAPPING), seed)
        assert len({host for event in events for host in event.targets}) == len(events) == hosts


def test_a_burst_is_refused_that_some_of_the_nested_domains_have_too_few_hosts_for():
    """Domains rack-c and power-2 are the same host."""
    with pytest.raises(BadInput, match="at most 1, which any 2 domains have"):
        plan(spec({"hosts": 2, "domains": 2}, hosts=NESTED), 1)


def test_hosts_return_after_a_clouds_time_at_the_scale_of_the_experiment():
    events = plan(spec({"hosts": 12, "spread": 2}, time_scale=0.1), 5)
    assert all(12 <= event.heal_after <= 36 for event in events)
    assert len({event.heal_after for event in events}) == 12


def test_the_best_case_is_the_same_burst_with_all_hosts_back_when_the_first_would_be():
    one_by_one = plan(spec({"hosts": 8, "spread": 2}, time_scale=0.1), 5)
    together = plan(spec({"hosts": 8, "spread": 2, "arrivals": "together"}, time_scale=0.1), 5)
    assert [(event.at, event.targets) for event in together] == [(event.at, event.targets) for event in one_by_one]
    first_s = min(event.at + event.heal_after for event in one_by_one)
    assert [event.at + event.heal_after for event in together] == pytest.approx([first_s] * 8, abs=1e-5)


def test_a_further_burst_leaves_the_first_as_it_is():
    one = plan(spec({"hosts": 3}), 1)
    both = plan(spec({"hosts": 3}, bursts=[{"at": 30, "hosts": 3}, {"at": 50, "hosts": 2}]), 1)
    assert both[:3] == one
    assert [event.cause for event in both[3:]] == ["burst 1"] * 2


def test_a_burst_counts_in_what_a_spec_implies():
    found = spec({"hosts": 6, "spread": 2, "heal_after": 60})
    law, held = implied(found), drawn(found, plan(found, 3))
    assert law.failure_rate == held.failure_rate == 0.01
    assert (law.correlated_share, held.correlated_share) == (1, 1)
    assert (law.hosts_down, held.hosts_down) == (pytest.approx(0.6), pytest.approx(0.6))


@pytest.mark.parametrize(
    ("burst", "down_s"),
    [
        ({"hosts": 12, "heal_after": 300}, 12 * 300),
        ({"hosts": 4, "domains": 2, "at": 570, "heal_after": 60}, 4 * 30),  # the end of the duration comes first
        ({"hosts": 12, "at": 560, "spread": 30, "heal_after": 60}, 12 * 25),
    ],
)
def test_a_burst_keeps_its_hosts_out_of_service_for_a_time_that_is_known(burst, down_s):
    """It happens for certain: chance only chooses the hosts, and the moment of each death within the spread."""
    found = spec(burst)
    assert implied(found).hosts_down == pytest.approx(down_s / 600)
    tolls = [drawn(found, plan(found, seed)).hosts_down for seed in range(20)]
    assert sum(tolls) / len(tolls) == pytest.approx(down_s / 600, rel=0.1)


def test_bursts_and_clocks_hold_a_host_independently():
    process = {"rate": 0.001, "heal_after": 50}
    found = spec({}, bursts=[{"at": 30, "hosts": 6, "heal_after": 60}] * 2, processes=[process])
    assert implied(found).hosts_down == pytest.approx(12 * (1 - 0.95**2 * math.exp(-0.05)))


@pytest.mark.parametrize(
    ("burst", "field", "allowed"),
    [
        ({"hosts": 13}, "bursts.0.hosts", "at most 12"),
        ({"hosts": 4, "domains": 1}, "bursts.0.hosts", "at most 3, which any 1 domains have"),
        ({"hosts": 6, "domains": 5}, "bursts.0.domains", "at most 4"),
        ({"hosts": 1, "at": 599, "spread": 2}, "bursts.0.at", "a time more than 2 s, the spread, before the end"),
    ],
)
def test_a_burst_takes_no_more_than_there_is(burst, field, allowed):
    with pytest.raises(BadInput, match=allowed) as mistake:
        plan(spec(burst), 1)
    assert mistake.value.field == field


@pytest.mark.parametrize("burst", [{"hosts": 1, "domains": 2}, {"hosts": 1, "kind": "pause", "heal_after": 3}])
def test_what_no_burst_can_be_is_refused(burst):
    with pytest.raises(ValueError, match=r"as many as hosts are struck|new hosts replace"):
        spec(burst)
