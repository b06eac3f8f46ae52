"""The fault plan: literal, deterministic, of the right law, and untouched by what is added beside it."""

import math
import random
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.plan import FaultEvent, load_fault_spec, plan
from experiments.errors import BadInput
from experiments.faults import FaultKind, FaultSpec

HOSTS = {"node-1": ("rack-a",), "node-2": ("rack-a",), "node-3": ("rack-b",)}
LITERAL = [
    ("kill", 1313.093384, ["node-3"], "host node-3 (process 0)", 30.0),
    ("kill", 2462.545528, ["node-2"], "host node-2 (process 0)", 30.0),
    ("kill", 3252.473361, ["node-1"], "domain rack-a (process 1)", 272.877233),
    ("kill", 3254.314398, ["node-2"], "domain rack-a (process 1)", 311.677904),
    ("pause", 3389.858374, ["node-1", "node-2"], "domain rack-a (process 2)", 5.0),
]


def spec(*processes, duration=3600.0, hosts=HOSTS) -> FaultSpec:
    return FaultSpec.model_validate({"duration": duration, "hosts": hosts, "processes": processes})


def test_a_plan_as_it_must_be_on_every_machine():
    drawn = plan(
        spec(
            {"kind": "kill", "rate": 0.0002, "heal_after": 30},
            {"kind": "kill", "scope": "domain", "rate": 0.0003, "spread": 20, "heal_after": {"low": 120, "high": 360}},
            {"kind": "pause", "scope": "domain", "rate": 0.0002, "heal_after": 5},
        ),
        seed=28,
    )
    fields = ("kind", "at", "targets", "cause", "heal_after")
    assert [event.to_json() for event in drawn] == [dict(zip(fields, event, strict=True)) for event in LITERAL]


def test_a_clock_is_the_inverse_transform_of_its_own_stream():
    stream = random.Random("11\nhost node-2 (process 0)\nclock")
    first = -math.log(1 - stream.random()) / 0.01
    second = first - math.log(1 - stream.random()) / 0.01
    drawn = plan(spec({"rate": 0.01, "heal_after": 2}, hosts={"node-2": ()}), seed=11)
    assert [event.at for event in drawn[:2]] == pytest.approx([first, second], abs=1e-6)
    assert drawn[0] == FaultEvent(drawn[0].at, "host node-2 (process 0)", ("node-2",), FaultKind.KILL, 2.0)


def test_the_rate_of_the_cluster_is_the_sum_of_its_clocks():
    law = spec({"rate": 0.02}, {"kind": "pause", "rate": 0.01}, {"scope": "domain", "rate": 0.03}, duration=50_000.0)
    expected = law.failure_rate * law.duration
    assert law.failure_rate == pytest.approx(3 * 0.03 + 2 * 0.03)
    assert abs(len(plan(law, seed=2)) - expected) < 4 * math.sqrt(expected)


def test_gaps_of_one_clock_are_exponential():
    times = [event.at for event in plan(spec({"rate": 0.1}, duration=100_000.0, hosts={"h": ()}), seed=4)]
    gaps = sorted(later - earlier for earlier, later in pairwise(times))
    empirical = [(rank + 0.5) / len(gaps) for rank in range(len(gaps))]
    distance = max(abs(share - -math.expm1(-0.1 * gap)) for share, gap in zip(empirical, gaps, strict=True))
    assert len(gaps) > 9000
    assert distance < 1.95 / math.sqrt(len(gaps))  # Kolmogorov-Smirnov at 0.1 %


def test_clocks_of_different_hosts_and_seeds_are_independent():
    counts = [Counter(event.targets for event in plan(spec({"rate": 0.001}), seed)) for seed in range(2000)]
    one, two = ([count[(host,)] - 3.6 for count in counts] for host in ("node-1", "node-2"))
    assert abs(sum(a * b for a, b in zip(one, two, strict=True)) / 2000 / 3.6) < 4 / math.sqrt(2000)
    assert abs(sum(a * b for a, b in pairwise(one)) / 1999 / 3.6) < 4 / math.sqrt(1999)


@given(st.integers(0, 2**63), st.floats(0, 60))
def test_what_is_added_leaves_the_other_events_as_they_were(seed, spread):
    shocks = {"scope": "domain", "rate": 0.001, "spread": spread, "heal_after": {"low": 1, "high": 9}}
    processes = ({"rate": 0.002}, shocks)
    before = plan(spec(*processes), seed)
    grown_hosts = {"node-0": ("rack-c",), **HOSTS, "node-4": ("rack-c",)}
    after = plan(spec(*processes, {"kind": "pause", "rate": 0.002}, hosts=grown_hosts), seed)
    added = {"node-0", "node-4"}
    assert [e for e in after if not added.intersection(e.targets) and e.kind is FaultKind.KILL] == before


def test_a_host_more_in_a_spread_domain_leaves_its_other_hosts_as_they_were():
    shocks = {"scope": "domain", "rate": 0.01, "spread": 30, "heal_after": {"low": 1, "high": 9}}
    before = plan(spec(shocks), seed=6)
    after = plan(spec(shocks, hosts={"node-0": ("rack-a",), **HOSTS}), seed=6)
    assert [event for event in after if event.targets != ("node-0",)] == before


def test_a_longer_duration_only_adds_events():
    processes = ({"rate": 0.01}, {"scope": "domain", "rate": 0.01, "spread": 30})
    short, long = (plan(spec(*processes, duration=duration), seed=9) for duration in (500.0, 5000.0))
    assert [event for event in long if event.at < 500.0] == short


def test_a_domain_without_spread_dies_in_one_event():
    drawn = plan(spec({"scope": "domain", "rate": 0.01, "heal_after": 7}), seed=1)
    targets = {event.cause: event.targets for event in drawn}
    assert targets == {
        "domain rack-a (process 0)": ("node-1", "node-2"),
        "domain rack-b (process 0)": ("node-3",),
    }


def test_a_domain_with_spread_dies_host_by_host_within_it():
    spread_s = 20.0
    shocks = {"scope": "domain", "rate": 1e-4, "spread": spread_s}
    drawn = plan(spec(shocks, duration=3e6, hosts={"a": ("r",), "b": ("r",)}), seed=3)
    a, b = ([event.at for event in drawn if event.targets == (host,)] for host in "ab")
    assert len(a) == len(b) > 200
    assert {event.cause for event in drawn} == {"domain r (process 0)"}
    gaps = [abs(one - other) for one, other in zip(a, b, strict=True)]
    assert max(gaps) < spread_s
    # two uniform offsets lie spread / 3 apart on average, with a standard deviation of spread / sqrt(18)
    assert abs(sum(gaps) / len(gaps) - spread_s / 3) < 4 * spread_s / math.sqrt(18 * len(gaps))


def test_heal_delays_are_uniform_between_their_bounds():
    delays = [event.heal_after for event in plan(spec({"rate": 0.5, "heal_after": {"low": 120, "high": 360}}), seed=1)]
    assert 120 <= min(delays) < 125
    assert 355 < max(delays) <= 360
    assert abs(sum(delays) / len(delays) - 240) < 4 * 240 / math.sqrt(12 * len(delays))


def test_events_are_ordered_and_within_the_duration():
    drawn = plan(spec({"rate": 0.1}, {"scope": "domain", "rate": 0.1, "spread": 500}), seed=1)
    assert [event.at for event in drawn] == sorted(event.at for event in drawn)
    assert all(0 <= event.at < 3600 for event in drawn)


def test_no_process_no_fault():
    assert plan(spec(), seed=1) == []


@pytest.mark.parametrize(
    ("field", "law"),
    [
        ("duration", FaultSpec(hosts={"a": ()}, processes=({"rate": 1},))),
        ("hosts", FaultSpec(duration=10, processes=({"rate": 1},))),
        ("processes.1.scope", spec({"rate": 1e-3}, {"scope": "domain", "rate": 1e-3}, hosts={"a": ()})),
        ("processes", spec({"rate": 1e6})),
    ],
    ids=["no duration", "no hosts", "no domain", "too many"],
)
def test_a_spec_that_gives_no_plan_is_refused(field, law):
    with pytest.raises(BadInput) as caught:
        plan(law, seed=1)
    assert caught.value.field == field


def test_a_fault_spec_is_read_as_the_design_writes_it(tmp_path):
    path = tmp_path / "FAULTS.yaml"
    path.write_text(
        "duration: 3600\n"
        "hosts: {node-1: [rack-a], node-2: [rack-a], node-3: [rack-b]}\n"
        "processes:\n"
        "  - {kind: kill, scope: host, rate: 0.001, heal_after: 30}\n"
        "  - {kind: kill, scope: domain, rate: 0.0002, spread: 20, heal_after: {low: 120, high: 360}}\n"
        "  - {kind: pause, scope: host, rate: 0.0005, heal_after: 5}\n"
    )
    law = load_fault_spec(path)
    assert law.hosts == HOSTS
    assert law.failure_rate == pytest.approx(3 * 0.001 + 3 * 0.0002 + 3 * 0.0005)


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("faults", "- a list"),
        ("faults", ": : :"),
        ("durations", "durations: 5"),
        ("duration", "duration: -1"),
        ("duration", "duration: .inf"),
        ("hosts.a", "hosts: {a: }"),
        ("processes.0.kind", "processes: [{kind: boom, rate: 1}]"),
        ("processes.0.rate", "processes: [{rate: -0.5}]"),
        ("processes.0.rate", "processes: [{kind: kill}]"),
        ("processes.0.heal_after", "processes: [{rate: 1, heal_after: -3}]"),
        ("processes.0.heal_after", "processes: [{rate: 1, heal_after: {low: 3, high: 1}}]"),
        ("processes.0.heal_after.high", "processes: [{rate: 1, heal_after: {low: 3}}]"),
        ("processes.0", "processes: [{rate: 1, spread: 3}]"),
    ],
)
def test_a_bad_fault_spec_is_one_line_that_names_the_field(tmp_path, field, text):
    path = tmp_path / "FAULTS.yaml"
    path.write_text(text)
    with pytest.raises(BadInput) as caught:
        load_fault_spec(path)
    assert caught.value.field == field
    assert "\n" not in str(caught.value)


def test_a_missing_fault_spec_is_named(tmp_path):
    with pytest.raises(BadInput, match=r"faults: .*nowhere\.yaml.*No such file"):
        load_fault_spec(tmp_path / "nowhere.yaml")
