"""Plans fit the laws that they were drawn from, and no others; injections fit the plan that they carried out."""

import math

import numpy as np
import pytest
from scipy import stats

from chaos.events import FaultEvent
from chaos.goodness import Fit, fit_to_laws, fit_to_plan
from chaos.plan import plan
from experiments.fault_kinds import FaultKind
from experiments.faults import FaultSpec

HOSTS = {f"h{i:02}": (f"rack-{i % 4}",) for i in range(24)}
LAWS = {
    "exponential": {"rate": 0.005},
    "weibull": {"rate": 0.005, "law": "weibull", "shape": 0.5},
    "ageing": {"rate": 0.005, "law": "weibull", "shape": 3},
    "lognormal": {"rate": 0.005, "law": "lognormal", "shape": 1.3},
    "domains": {"rate": 0.03, "scope": "domain"},
    "bursts": {"rate": 0.03, "scope": "domain", "spread": 400},
    "cluster": {"rate": 0.1, "scope": "cluster", "spread": 400},
}


def spec(*processes, duration=1000.0, hosts=HOSTS) -> FaultSpec:
    return FaultSpec.model_validate({"duration": duration, "hosts": hosts, "processes": processes})


def p_values(law, events, test):
    return [fit.p_value for fit in fit_to_laws(law, events) if fit.test == test]


def kill(at, host="a", cause=None, heal_after=0.0):
    return FaultEvent(at, cause or f"host {host} (process 0)", (host,), FaultKind.KILL, heal_after)


@pytest.mark.extended
@pytest.mark.parametrize("name", LAWS)
def test_a_plan_fits_the_law_that_it_was_drawn_from(name):
    """Over many seeds the probabilities are themselves uniform, and none is tiny."""
    law = spec(LAWS[name])
    found = {test: [] for test in ("count", "gaps", "dispersion")}
    for seed in range(60):
        for fit in fit_to_laws(law, plan(law, seed)):
            found[fit.test].append(fit.p_value)
    assert len(found["count"]) == len(found["gaps"]) == 60
    assert len(found["dispersion"]) == (0 if "law" in LAWS[name] or name == "cluster" else 60)
    for test in ("gaps", "dispersion"):
        if found[test]:
            assert stats.kstest(found[test], "uniform").pvalue > 1e-3, test
    assert min(min(values, default=1) for values in found.values()) > 1e-4


@pytest.mark.parametrize("name", LAWS)
def test_a_plan_of_another_rate_does_not_fit(name):
    other = spec(LAWS[name] | {"rate": LAWS[name]["rate"] * 2}, duration=3000.0)
    assert p_values(spec(LAWS[name], duration=3000.0), plan(other, seed=1), "count")[0] < 1e-4


@pytest.mark.parametrize(
    ("drawn_from", "held_against"),
    [
        ("weibull", "exponential"),
        ("ageing", "exponential"),
        ("lognormal", "exponential"),
        ("exponential", "weibull"),
        ("exponential", "ageing"),
        ("exponential", "lognormal"),
        ("lognormal", "weibull"),
    ],
)
def test_a_plan_of_another_law_does_not_fit(drawn_from, held_against):
    events = plan(spec(LAWS[drawn_from], duration=5000.0), seed=1)
    assert p_values(spec(LAWS[held_against], duration=5000.0), events, "gaps")[0] < 1e-4


def test_faults_that_pile_up_on_some_hosts_are_too_dispersed():
    law = spec(LAWS["exponential"])
    events = plan(law, seed=1)
    piled = [e._replace(cause=f"host h{i % 3:02} (process 0)", targets=(f"h{i % 3:02}",)) for i, e in enumerate(events)]
    assert p_values(law, events, "dispersion")[0] > 0.01
    assert p_values(law, piled, "dispersion")[0] < 1e-4


def test_bursts_without_their_thin_start_do_not_fit():
    """Where shocks from before the window opens reached into it, there would be more at the start."""
    law = spec({"rate": 0.3, "scope": "domain", "spread": 400})
    shifted = [event._replace(at=event.at - 300) for event in plan(law, seed=1) if event.at > 300]
    assert p_values(law, shifted, "gaps")[0] < 1e-4


def test_the_figures_by_hand():
    law = spec({"rate": 0.1}, hosts={"a": (), "b": ()}, duration=50.0)
    times = {"a": (5.0, 30.0, 45.0), "b": (20.0, 21.0, 50.0 - 1e-9)}
    events = sorted(kill(at, host) for host, of_host in times.items() for at in of_host)
    count, gaps, _ = fit_to_laws(law, events)
    assert (count.test, count.subject, count.samples, count.statistic) == ("count", "process 0", 6, pytest.approx(10.0))
    assert count.p_value == pytest.approx(2 * sum(math.exp(-10) * 10**n / math.factorial(n) for n in range(7)))
    residuals = np.array([0.5, 2.5, 1.5, 0.5 + 2.0, 0.1, 2.9])  # the rest of a's window goes on with b's
    assert (gaps.test, gaps.samples) == ("gaps", 6)
    assert gaps.statistic == pytest.approx(stats.kstest(residuals, "expon").statistic)


def test_the_count_by_hand_where_there_are_too_many():
    law = spec({"rate": 0.1}, hosts={"a": ()}, duration=10.0)
    count = fit_to_laws(law, [kill(at) for at in (1.0, 2.0, 3.0, 4.0)])[0]
    assert count.p_value == pytest.approx(2 * (1 - math.exp(-1) * (1 + 1 + 1 / 2 + 1 / 6)))


def test_the_dispersion_by_hand():
    law = spec({"rate": 0.1}, hosts={"a": (), "b": ()}, duration=100.0)
    events = [kill(at) for at in range(1, 100, 10)] + [kill(95.5, "b"), kill(97.5, "b")]
    (fit,) = [fit for fit in fit_to_laws(law, events) if fit.test == "dispersion"]
    assert fit.statistic == pytest.approx((16 + 16) / 6)
    assert fit.p_value == pytest.approx(math.erfc(math.sqrt(32 / 6 / 2)))  # chi-square of one degree of freedom


def test_every_process_is_judged_by_its_own_faults():
    law = spec(
        {"rate": 0.005},
        {"kind": "pause", "rate": 0.01, "heal_after": 5},
        {"scope": "cluster", "rate": 0.02},
        {"kind": "master-kill", "rate": 0.02},
    )
    fits = fit_to_laws(law, plan(law, seed=1))
    assert {fit.subject for fit in fits if fit.test == "gaps"} == {f"process {i}" for i in range(4)}
    assert all(fit.p_value > 1e-4 for fit in fits)


def test_an_empty_plan_has_a_probability_but_no_gaps():
    (fit,) = fit_to_laws(spec({"rate": 1e-4}), [])
    assert fit == Fit("count", "process 0", 0, pytest.approx(2.4), pytest.approx(2 * math.exp(-2.4)))


def test_listed_faults_and_spread_ticks_of_other_laws_are_not_judged():
    law = spec({"rate": 0.01, "scope": "cluster", "law": "weibull", "shape": 2, "spread": 9})
    assert fit_to_laws(law, plan(law, seed=1)) == []
    assert fit_to_laws(spec(), [kill(3.0, "h01", "listed")]) == []


@pytest.mark.parametrize("replayed", [1, 2])
def test_the_faults_of_a_replayed_plan_are_no_ticks_of_the_clocks_that_they_name(replayed):
    law = spec(LAWS["exponential"])
    events = [event.to_json() for event in plan(law, replayed)]
    both = FaultSpec.model_validate(
        {"duration": 1000.0, "hosts": HOSTS, "processes": [LAWS["exponential"]], "events": events}
    )
    assert len(plan(both, seed=1)) == len(plan(law, seed=1)) + len(events)
    assert fit_to_laws(both, plan(both, seed=1)) == fit_to_laws(law, plan(law, seed=1))


def test_service_faults_of_another_rate_do_not_fit():
    laws = [spec({"kind": "broker-kill", "rate": rate}, duration=3000.0) for rate in (0.1, 0.2)]
    assert p_values(laws[0], plan(laws[0], seed=1), "count")[0] > 1e-4 > p_values(laws[0], plan(laws[1], 1), "count")[0]


@pytest.mark.parametrize("shape", [0.2, 1.0, 100.0])
def test_ticks_that_no_law_would_draw_are_improbable_and_finite(shape):
    law = spec({"rate": 1.0, "law": "weibull", "shape": shape}, hosts={"a": ()}, duration=1e5)
    fits = fit_to_laws(law, [kill(at) for at in (0.0, 1e-6, 2e-6, 3e-6, 9e4, 9e4 + 1e-6)])
    assert all(math.isfinite(fit.statistic) and 0 <= fit.p_value <= 1 for fit in fits)
    assert min(fit.p_value for fit in fits) < 1e-3


START_NS = 1_790_000_000_000_000_000


def at(planned_s, late_s=0.0):
    return START_NS + round((planned_s + late_s) * 1e9)


def test_an_injection_that_kept_to_its_plan():
    events = [kill(1.0, heal_after=5.0), kill(2.0), kill(9.0, "b")]
    strikes_ns = {(0, "a"): at(1.0, 0.004), (1, "a"): None, (2, "b"): at(9.0, -0.002)}
    lateness, missing, composition = fit_to_plan(events, START_NS, strikes_ns)
    assert (lateness.test, lateness.samples) == ("lateness", 2)
    assert lateness.statistic == pytest.approx(0.002 + 0.99 * 0.002)
    assert missing == Fit("missing", "injected", 3, 0.0, None)
    assert composition == Fit("composition", "injected", 3, 0.0, None)


def test_strikes_that_are_missing_or_came_out_otherwise():
    events = [kill(1.0, heal_after=5.0), kill(2.0), kill(9.0, "b"), kill(9.5, "b")]
    strikes_ns = {(0, "a"): None, (1, "a"): at(2.0), (3, "b"): at(9.5)}
    _, missing, composition = fit_to_plan(events, START_NS, strikes_ns)
    assert missing.statistic == 1.0
    assert composition.statistic == 2.0


def test_what_was_withheld_or_ended_fits_the_plan_that_says_so():
    """With at most one host down: b is spared; the kill of a puts an end to its pause, which is no strike."""
    pause = kill(1.0, heal_after=8.0)._replace(kind=FaultKind.PAUSE)
    events = [pause, kill(2.0, "b"), kill(3.0, heal_after=1.0)]
    struck_ns = {(0, "a"): at(1.0), (2, "a"): at(3.0)}
    strikes_ns = struck_ns | {(1, "b"): None}
    lateness, missing, composition = fit_to_plan(events, START_NS, strikes_ns, max_down=1)
    assert (lateness.samples, lateness.statistic) == (2, 0.0)
    assert (missing.statistic, composition.statistic) == (0.0, 0.0)
    assert fit_to_plan(events, START_NS, strikes_ns)[2].statistic == 1.0  # without the limit b should have been struck
    assert fit_to_plan(events, START_NS, struck_ns, max_down=1)[1].statistic == 1.0


def test_a_fault_on_several_hosts_is_several_strikes():
    both = FaultEvent(1.0, "cluster", ("a", "b"), FaultKind.KILL, 1.0)
    assert fit_to_plan([both], START_NS, {(0, "a"): at(1.0)})[1] == Fit("missing", "injected", 2, 1.0, None)


def test_no_injection_has_no_lateness():
    assert fit_to_plan([], START_NS, {})[0] == Fit("lateness", "injected", 0, None, None)
