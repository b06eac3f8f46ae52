"""Rates of a cluster from its clocks: by hand, against fault plans, and against clocks that the test lets tick."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaos.plan import plan
from experiments.errors import BadInput
from experiments.faults import FaultProcess, FaultScope, FaultSpec
from models.failure_rates import FailureClocks, Shock, failure_clocks
from models.utilization import optimal_interval

RACKS = {"a1": ["rack-a", "power"], "a2": ["rack-a", "power"], "a3": ["rack-a"], "b1": ["rack-b", "power"], "c1": []}
OWN = {"a1": 0.01, "a2": 0.02, "a3": 0.03, "b1": 0.04, "c1": 0.05}
SHOCKS = (Shock("rack-a", 0.006), Shock("rack-b", 0.005), Shock("power", 0.008, 0.5))
CLOCKS = failure_clocks(RACKS, OWN, SHOCKS)


def ticks(clocks: FailureClocks, duration_s: float, seed: int) -> list[tuple[float, frozenset[str]]]:
    """Every event of the clocks in a duration, with the hosts that it takes: what the formulas are held against."""
    rng = np.random.default_rng(seed)
    laws = [((host,), rate, 1.0) for host, rate in clocks.own_rates.items()]
    for shock in clocks.shocks:
        members = tuple(sorted(host for host, domains in clocks.hosts.items() if shock.domain in domains))
        laws.append((members, shock.rate, shock.probability))
    events = []
    for members, rate, probability in laws:
        for at in rng.uniform(0, duration_s, rng.poisson(rate * duration_s)):
            struck = frozenset(host for host in members if rng.random() < probability)
            events.append((at, struck))
    return sorted(events, key=lambda event: event[0])


def test_independent_hosts_add_up():
    clocks = failure_clocks({f"host-{i}": [] for i in range(1000)}, 0.0022 / 3600)
    assert clocks.failure_rate() == pytest.approx(2.2 / 3600)  # figure 13 at 1000 nodes
    assert clocks.failure_rate(["host-3", "host-7", "host-3"]) == pytest.approx(0.0044 / 3600)
    assert clocks.mean_hosts_lost() == pytest.approx(1.0)
    assert clocks.rate_of_at_least(2) == 0.0
    assert np.isfinite(optimal_interval(clocks.failure_rate(), 5.0))


def test_rates_by_hand():
    power_takes_any = 0.008 * (1 - 0.5**3)
    assert CLOCKS.failure_rate() == pytest.approx(0.15 + 0.006 + 0.005 + power_takes_any)
    assert CLOCKS.host_rate("a1") == pytest.approx(0.01 + 0.006 + 0.004)
    assert CLOCKS.host_rate("c1") == 0.05
    deaths = 0.15 + 3 * 0.006 + 0.005 + 3 * 0.004
    assert CLOCKS.death_rate() == pytest.approx(deaths)
    assert CLOCKS.mean_hosts_lost() == pytest.approx(deaths / CLOCKS.failure_rate())
    assert CLOCKS.rate_of_at_least(2) == pytest.approx(0.006 + 0.008 * 0.5)  # 4 of 8 outcomes take two or three
    assert CLOCKS.rate_of_at_least(3) == pytest.approx(0.006 + 0.008 / 8)
    assert CLOCKS.rate_of_at_least(4) == 0.0


def test_shocks_to_hosts_that_the_job_does_not_use_do_not_count():
    assert CLOCKS.failure_rate(["b1", "c1"]) == pytest.approx(0.09 + 0.005 + 0.004)
    assert CLOCKS.rate_of_at_least(2, ["a1", "b1"]) == pytest.approx(0.008 / 4)
    assert CLOCKS.failure_rate([]) == 0.0


def test_lifetimes_by_hand():
    pair = CLOCKS.lifetimes("a1", "a2")
    assert (pair.first, pair.second) == pytest.approx((0.01 + 0.002, 0.02 + 0.002))
    assert pair.both == pytest.approx(0.006 + 0.002)
    assert pair.correlation == pytest.approx(0.008 / 0.042)
    assert pair.survival(10.0, 30.0) == pytest.approx(np.exp(-0.12 - 0.66 - 0.24))
    apart = CLOCKS.lifetimes("a3", "b1")
    assert (apart.first, apart.second, apart.both) == pytest.approx((0.036, 0.04 + 0.005 + 0.004, 0.0))
    assert apart.correlation == 0.0
    doomed = failure_clocks({"x": ["d"], "y": ["d"]}, 0.0, [Shock("d", 0.1), Shock("d", 0.1)]).lifetimes("x", "y")
    assert (doomed.first, doomed.both, doomed.correlation) == (0.0, 0.2, 1.0)
    assert failure_clocks({"x": [], "y": []}, 0.0).lifetimes("x", "y").correlation == 0.0


def test_survival_of_arrays_and_of_one_host():
    pair, times = CLOCKS.lifetimes("a1", "b1"), np.array([0.0, 5.0, 40.0])
    table = pair.survival(times[:, None], times)
    assert table.shape == (3, 3)
    np.testing.assert_allclose(table, [[pair.survival(float(s), float(t)) for t in times] for s in times], rtol=1e-15)
    np.testing.assert_allclose(table[:, 0], np.exp(-CLOCKS.host_rate("a1") * times), rtol=1e-14)


@pytest.mark.extended
@pytest.mark.parametrize("used", [None, ("a1", "a3", "b1"), ("a2",)])
def test_rates_are_those_of_ticking_clocks(used):
    duration_s = 300_000.0
    names = set(used or RACKS)
    lost = np.array([len(names & struck) for _, struck in ticks(CLOCKS, duration_s, seed=11)])
    for least in (1, 2, 3):
        expected = CLOCKS.rate_of_at_least(least, used) * duration_s
        assert abs((lost >= least).sum() - expected) <= 4 * np.sqrt(expected)  # a Poisson count
    hurt = lost[lost > 0]
    error = hurt.std() / np.sqrt(hurt.size)
    assert abs(hurt.mean() - CLOCKS.mean_hosts_lost(used)) <= 4 * error + 1e-12


@pytest.mark.extended
def test_lifetimes_are_those_of_ticking_clocks():
    """First deaths of two hosts after a fresh start, which is any time: the clocks have no memory."""
    deaths = {"a1": [], "a2": []}
    start, waiting = 0.0, {"a1", "a2"}
    for at, struck in ticks(CLOCKS, 1_000_000.0, seed=5):
        for host in struck & waiting:
            deaths[host].append(at - start)
        waiting -= struck
        if not waiting:
            start, waiting = at, {"a1", "a2"}
    count = min(map(len, deaths.values()))
    first, second = (np.array(deaths[host][:count]) for host in ("a1", "a2"))
    pair = CLOCKS.lifetimes("a1", "a2")
    for s, t in [(10.0, 10.0), (5.0, 40.0), (60.0, 20.0)]:
        expected = pair.survival(s, t)
        error = np.sqrt(expected * (1 - expected) / count)
        assert abs(np.mean((first > s) & (second > t)) - expected) < 4 * error
    products = (first - first.mean()) * (second - second.mean()) / (first.std() * second.std())
    assert abs(products.mean() - pair.correlation) < 4 * products.std() / np.sqrt(count)


def test_the_rate_of_a_fault_spec_and_of_the_plans_drawn_from_it():
    processes = (
        FaultProcess(scope=FaultScope.HOST, rate=0.002),
        FaultProcess(scope=FaultScope.DOMAIN, rate=0.004),
    )
    hosts = {"n1": ("a",), "n2": ("a",), "n3": ("b",)}
    spec = FaultSpec(duration=200_000.0, hosts=hosts, processes=processes)
    clocks = failure_clocks(hosts, 0.002, [Shock("a", 0.004), Shock("b", 0.004)])
    assert clocks.failure_rate() == pytest.approx(spec.failure_rate)
    planned = [set(event.targets) for event in plan(spec, seed=3)]
    for used in (None, ["n1"], ["n1", "n2"]):
        expected = clocks.failure_rate(used) * spec.duration
        struck = sum(bool(targets & set(used or hosts)) for targets in planned)
        assert abs(struck - expected) <= 4 * np.sqrt(expected)


probabilities = st.floats(1e-9, 1.0)


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 30), st.floats(0.0, 1.0), st.floats(0.0, 1.0), probabilities)
def test_more_losses_are_rarer_and_add_up_to_the_deaths(count, own, rate, probability):
    clocks = failure_clocks({f"h{i}": ["d"] for i in range(count)}, own, [Shock("d", rate, probability)])
    tail = [clocks.rate_of_at_least(k) for k in range(1, count + 2)]
    assert all(more <= fewer * (1 + 1e-12) for fewer, more in pairwise(tail))
    assert tail[-1] == 0.0
    assert sum(tail) == pytest.approx(clocks.death_rate(), rel=1e-9)
    if count > 1:
        pair = clocks.lifetimes("h0", "h1")
        assert pair.first + pair.both == pytest.approx(clocks.host_rate("h0"), rel=1e-12)
        assert 0.0 <= pair.correlation <= 1.0


MISTAKES = {
    "no hosts": ("hosts", lambda: failure_clocks({}, 0.1)),
    "domains as a text": ("hosts.a", lambda: failure_clocks({"a": "rack"}, 0.1)),
    "rate below 0": ("own_rates.a1", lambda: failure_clocks(RACKS, OWN | {"a1": -0.1})),
    "nan": ("own_rates.a1", lambda: failure_clocks(RACKS, float("nan"))),
    "hosts without a rate": ("own_rates", lambda: failure_clocks(RACKS, {"a1": 0.1})),
    "a rate without a host": ("own_rates", lambda: failure_clocks(RACKS, OWN | {"d1": 0.1})),
    "unknown domain": ("shocks.domain", lambda: failure_clocks(RACKS, OWN, [Shock("rack-z", 0.1)])),
    "no domains at all": ("shocks.domain", lambda: failure_clocks({"x": []}, 0.1, [Shock("rack-z", 0.1)])),
    "infinite shocks": ("shocks.power.rate", lambda: failure_clocks(RACKS, OWN, [Shock("power", float("inf"))])),
    "probability above 1": ("shocks.power.probability", lambda: failure_clocks(RACKS, OWN, [Shock("power", 0.1, 1.1)])),
    "probability 0": ("shocks.power.probability", lambda: failure_clocks(RACKS, OWN, [Shock("power", 0.1, 0.0)])),
    "unknown host in use": ("used", lambda: CLOCKS.failure_rate(["a1", "z9"])),
    "unknown host": ("host", lambda: CLOCKS.host_rate("z9")),
    "unknown pair": ("host", lambda: CLOCKS.lifetimes("a1", "z9")),
    "a pair of one": ("second", lambda: CLOCKS.lifetimes("a1", "a1")),
    "no loss": ("lost", lambda: CLOCKS.rate_of_at_least(0)),
    "nothing fails": ("failure_rate", lambda: failure_clocks(RACKS, 0.0).mean_hosts_lost()),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_bad_input_is_named(mistake):
    field, build = MISTAKES[mistake]
    with pytest.raises(BadInput) as caught:
        build()
    assert caught.value.field == field
    assert "\n" not in str(caught.value)
