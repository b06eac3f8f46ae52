"""How long faults last: what a spec says, what it leaves to the kind, and the laws in between."""

import math
from random import Random
from statistics import fmean

import pytest

from chaos.clocks import clocks
from chaos.laws import delay_s
from chaos.plan import plan
from experiments.delays import LognormalDelay, UniformDelay, set_delay
from experiments.fault_kinds import FaultKind
from experiments.faults import FaultProcess, FaultSpec, ListedFault

HOSTS = {"a": ("rack",), "b": ("rack",)}
OF_HOSTS = [kind for kind in FaultKind if not kind.service]
SERVICES = [kind for kind in FaultKind if kind.service]


def spec(**fields) -> FaultSpec:
    return FaultSpec.model_validate({"duration": 1000, "hosts": HOSTS, **fields})


@pytest.mark.parametrize("kind", [FaultKind.KILL, FaultKind.TERMINATE, FaultKind.POWER_OFF])
def test_a_lost_host_returns_as_a_new_machine_of_a_cloud_does(kind):
    process = FaultProcess(kind=kind, rate=1)
    assert spec().heal_delay(process) == UniformDelay(low=120, high=360)
    assert spec(time_scale=0.01).heal_delay(process) == UniformDelay(low=1.2, high=3.6)
    listed = ListedFault(kind=kind, at=1, targets=("a",))
    assert spec(time_scale=0.01).heal_delay(listed) == set_delay(2.4)


@pytest.mark.parametrize("kind", SERVICES)
def test_a_service_is_started_again_at_once(kind):
    assert spec().heal_delay(FaultProcess(kind=kind, rate=1)) == set_delay(0)
    assert spec().heal_delay(ListedFault(kind=kind, at=1)) == set_delay(0)
    assert spec().heal_delay(FaultProcess(kind=kind, rate=1, heal_after=9)) == set_delay(9)


@pytest.mark.parametrize("given", [0, 7, {"low": 1, "high": 9}, {"median": 5, "sigma": 0.5}])
def test_a_delay_that_is_given_means_what_it_says(given):
    law = spec(time_scale=0.01, processes=[{"rate": 1, "heal_after": given}])
    said = law.heal_delay(law.processes[0])
    assert said == (set_delay(given) if isinstance(given, int) else type(said)(**given))
    assert law.longest_heal_s == said.longest_s
    assert FaultSpec.model_validate(law.model_dump(mode="json")) == law


def test_the_plan_draws_from_the_default_too():
    law = spec(time_scale=0.1, processes=[{"rate": 0.1}], events=[{"at": 5, "targets": ["a"], "cause": "by hand"}])
    events = plan(law, seed=1)
    assert [event.heal_after for event in events if event.cause == "by hand"] == [24.0]
    drawn = [event.heal_after for event in events if event.cause != "by hand"]
    assert 12 <= min(drawn) < 13
    assert 35 < max(drawn) <= 36
    assert {clock.heal_delay for clock in clocks(law)} == {UniformDelay(low=12, high=36)}


@pytest.mark.extended
@pytest.mark.parametrize("sigma", [0.05, 0.6, 1.5, 2.5])
def test_lognormal_delays_have_the_stated_median_mean_and_cap(sigma):
    law, stream = LognormalDelay(median=180, sigma=sigma), Random("lognormal")
    drawn = sorted(delay_s(law, stream) for _ in range(40_000))
    cap_s = 180 * math.exp(3 * sigma)
    assert law.longest_s == pytest.approx(cap_s)
    assert max(drawn) <= law.longest_s
    assert sum(delay == law.longest_s for delay in drawn) == pytest.approx(40_000 * 0.00135, abs=4 * math.sqrt(54))
    assert math.log(drawn[20_000] / 180) == pytest.approx(0, abs=4 * sigma * 1.2533 / 200)
    spread_s = math.sqrt(fmean((delay - law.mean_s) ** 2 for delay in drawn))
    assert fmean(drawn) == pytest.approx(law.mean_s, abs=4 * spread_s / 200)


def test_the_mean_of_a_lognormal_delay_by_hand():
    """Nearly all of a narrow law lies below its cap, where the mean is median x exp(sigma^2 / 2)."""
    assert LognormalDelay(median=100, sigma=0.01).mean_s == pytest.approx(100 * math.exp(0.00005), rel=2e-5)


@pytest.mark.parametrize("kind", OF_HOSTS)
def test_the_longest_heal_knows_the_default(kind):
    if kind.loses_the_host:
        assert spec(time_scale=0.5, processes=[{"kind": kind, "rate": 1}]).longest_heal_s == 180
    else:
        options = {"cpu_share": 0.5} if kind is FaultKind.SLOW else {}
        assert spec(processes=[{"kind": kind, "rate": 1, "heal_after": 3, **options}]).longest_heal_s == 3
